package access

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is no token is refused with the reason, and nothing of it is shown.
func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                   "is empty",
		" \n":                                "is empty",
		"hunter2\nhunter3\n":                 "has 2 lines",
		jwt(`{}`) + "\n" + jwt(`{}`):         "has 2 lines",
		"hunter2 hunter3":                    "has several words",
		"Bearer hunter2":                     "not even a Bearer before it",
		"Authorization: Bearer hunter2":      "not even a Bearer before it",
		`"hunter2"`:                          "has quotes or brackets in it",
		"'hunter2'":                          "has quotes or brackets in it",
		`["hunter2"]`:                        "has quotes or brackets in it",
		`{"access_token": "hunter2"}`:        "has quotes or brackets in it",
		"Bearer \n":                          "holds no token, but what is written where one is missing",
		"null\n":                             "holds no token, but what is written where one is missing",
		"hunter\x01":                         "has characters that a header can't hold",
		"hünter2":                            "has characters that a header can't hold",
		"\ufeffhunter2":                      "has characters that a header can't hold",
		"\xff\xfeh\x00u\x00n\x00t\x00e\x00r": "has characters that a header can't hold",
	} {
		a := Access{cfg: Config{Flags: "ledger", TokenFile: file(t, "token", text)}}
		_, err := a.tokenOfFile()
		require.ErrorContains(t, err, says, text)
		require.NotContains(t, err.Error(), "hunter", text)
	}
	for _, token := range []string{jwt(`{"sub":"alice"}`), "0paque-T.o_k~e+n/=="} {
		for _, text := range []string{token, token + "\r\n", "\n  " + token + " \t\n"} {
			a := Access{cfg: Config{Flags: "ledger", TokenFile: file(t, "token", text)}}
			got, err := a.tokenOfFile()
			require.NoError(t, err, text)
			require.Equal(t, token, got, text)
		}
	}
}
