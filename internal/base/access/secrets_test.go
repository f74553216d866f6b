package access

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedactFindsEveryFormOfASecret(t *testing.T) {
	t.Parallel()
	const secret = `p&ss"w<rd+/ä 1"`
	var s secrets
	s.addClient("the client", secret)
	s.addUser(url.UserPassword("joe", "h/unter&2"))
	s.addToken(jwt(`{"sub":"alice"}`))
	asJSON, err := json.Marshal(secret)
	require.NoError(t, err)
	parts := strings.Split(jwt(`{"sub":"alice"}`), ".")
	for text, want := range map[string]string{
		"got " + secret + "!":                             "got [secret]!",
		"client_secret=" + url.QueryEscape(secret) + "&x": "client_secret=[secret]&x",
		"/" + url.PathEscape(secret) + "/":                "/[secret]/",
		"<b>" + html.EscapeString(secret) + "</b>":        "<b>[secret]</b>",
		`{"got":` + string(asJSON) + `}`:                  `{"got":"[secret]"}`,
		"Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape("the client")+":"+url.QueryEscape(secret))): "Basic [secret]",
		"Basic " + base64.StdEncoding.EncodeToString([]byte("joe:h/unter&2")):                                           "Basic [password]",
		"https://joe:" + url.PathEscape("h/unter&2") + "@host":                                                          "https://joe:[password]@host",
		"Bearer " + jwt(`{"sub":"alice"}`):                                                                              "Bearer [token]",
		"signed " + parts[2] + " of " + parts[1]:                                                                        "signed [token] of [token]",
		"nothing to hide":                                                                                               "nothing to hide",
		"":                                                                                                              "",
	} {
		require.Equal(t, want, s.redact(text))
	}
}

// A secret may be part of another, and they are not forgotten as soon as another comes.
func TestRedactRemembers(t *testing.T) {
	t.Parallel()
	var s secrets
	s.addToken("token")
	s.addToken("token-and-more")
	require.Equal(t, "[token] [token]", s.redact("token-and-more token"))
	for i := range remembered {
		s.addToken(fmt.Sprintf("token-number-%d", i))
		s.addToken(fmt.Sprintf("token-number-%d", i))
	}
	require.Equal(t, "[token]", s.redact("token-number-0"))
	require.Len(t, s.tokens, remembered, "but not for ever")
	s.addToken("abc")
	require.Equal(t, "abcdef", s.redact("abcdef"), "too short to be a secret")
	s.addToken("sesame.open.1234")
	require.Equal(t, "[token] is open", s.redact("sesame.open.1234 is open"), "no JWT: its parts are just words")
}
