package access

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A token is read from what people and programs write into a file for one.
func TestTokensAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	signed := jwt(`{"sub":"alice"}`)
	for _, token := range []string{signed, "0paque-T.o_k~e+n/=="} {
		for _, text := range []string{
			token, token + "\n", token + "\r\n", "\n  " + token + " \t\n", "\ufeff" + token, `"` + token + `"`, "'" + token + "'\n", "\" " + token + " \"",
			"Bearer " + token, "bearer  " + token + "\n", `"Bearer ` + token + `"`, `Bearer "` + token + `"`, "Authorization: Bearer " + token + "\r\n",
			`{"access_token":"` + token + `"}`, "{\n \"token_type\": \"bearer\",\n \"access_token\": \"" + token + "\", \"expires_in\": 300}\n",
		} {
			got, err := readToken(text)
			require.NoError(t, err, text)
			require.Equal(t, token, got, text)
		}
	}
	got, err := readToken(signed[:10] + "\n" + signed[10:20] + "\r\n" + signed[20:] + "\n")
	require.NoError(t, err)
	require.Equal(t, signed, got, "wrapped, as base64 does it")
}

// What is no token is refused with the reason, and nothing of it is shown.
func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                   "is empty",
		" \n":                                "is empty",
		`""`:                                 "is empty",
		"hunter2\nhunter3\n":                 "has 2 lines",
		jwt(`{}`) + "\n" + jwt(`{}`):         "has 2 lines",
		"hunter2 hunter3":                    "has several words",
		"Basic hunter2":                      "has several words",
		`"hunter2`:                           "has quotes or brackets in it",
		"hunter2'":                           "has quotes or brackets in it",
		`""hunter2""`:                        "has quotes or brackets in it",
		`["hunter2"]`:                        "has quotes or brackets in it",
		"[hunter2]":                          "has quotes or brackets in it",
		"Bearer \n":                          "holds no token, but what is written where one is missing",
		"null\n":                             "holds no token, but what is written where one is missing",
		"Bearer null":                        "holds no token, but what is written where one is missing",
		"hunter\x01":                         "has characters that a header can't hold",
		"hünter2":                            "has characters that a header can't hold",
		"\xff\xfeh\x00u\x00n\x00t\x00e\x00r": "is no text in UTF-8",
		"h\x00u\x00":                         "is no text in UTF-8",
		`{"access_token":"hunter2"`:          "begins as JSON and is none",
		`{"access_token":12345}`:             "begins as JSON and is none, or its access_token is no text",
		`{"token":"hunter2"}`:                "is JSON without an access_token",
		`{"access_token":"hunter2 a"}`:       "has several words",
		`{"access_token":"hunter2","token_type":"mac"}`: "another type than Bearer",
	} {
		token, err := readToken(text)
		require.ErrorContains(t, err, says, text)
		require.NotContains(t, err.Error(), "hunter", text)
		if token != "" {
			require.NotContains(t, err.Error(), token)
		}
	}
}
