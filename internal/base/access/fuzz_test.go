package access

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// requireShown checks what may be printed: it is short, on one line, and text.
func requireShown(t *testing.T, text string) {
	t.Helper()
	require.Less(t, len(text), 4000)
	require.True(t, utf8.ValidString(text), "%q", text)
	require.False(t, strings.ContainsFunc(text, unicode.IsControl), "%q", text)
}

func FuzzParseClaims(f *testing.F) {
	for _, text := range []string{
		"", "a.b.c", "..", "e30.e30.e30", `x.eyJzdWIiOiJqb2UiLCJhdWQiOlsiYSIsImIiXSwiZXhwIjoxNzAwMDAwMDAwfQ.y`, "x.eyJleHAiOjFlOTl9.y",
		"x.bnVsbA.y", "x.eyJhdWQiOiJhIiwiZXhwIjoiMSJ9.y", "x.eyJzdWIiOiJcbiJ9.y", "a.e30=.c.d",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, token string) {
		claims, ok := ParseClaims(token)
		described := DescribeToken(token, time.Unix(1_700_000_000, 0))
		if !ok {
			require.Zero(t, claims)
			require.Empty(t, described)
			return
		}
		require.NotEmpty(t, described)
		requireShown(t, described)
		require.True(t, claims.Expires.IsZero() || claims.Expires.Unix() >= 1 && claims.Expires.Year() <= 10000)
	})
}

// FuzzTokenFile: what a file of a token holds is sent whole or not at all, and never printed.
func FuzzTokenFile(f *testing.F) {
	for _, text := range []string{"", "token\n", " a.b.c ", "two tokens", "to\x00ken", "tok\u00e9n", "\xef\xbb\xbftoken", "a\r\nb", "Bearer x", `"x"`, `{"access_token":"x"}`, "\xff\xfex\x00"} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "token")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		a := &Access{cfg: Config{Flags: "ledger", TokenFile: path}}
		token, err := a.tokenOfFile()
		if plain := strings.TrimSpace(string(text)); err != nil || plain == "" || strings.ContainsAny(plain, "\"'{: \r\n\ufeff") {
			require.Equal(t, err == nil, sendable(token)) // it was written in another way than alone
			if err != nil {
				requireSecret(t, text, path, token, err)
			}
		} else {
			requireSecret(t, text, path, token, err)
		}
		if err == nil {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server", nil)
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+token)
			require.NoError(t, req.Write(io.Discard))
			requireHidden(t, a, token)
		}
	})
}

// FuzzClientSecretFile is the same for the secret of OAuth2.
func FuzzClientSecretFile(f *testing.F) {
	for _, text := range []string{"", "secret\n", " a b ", "a\nb", "s\x00", "s\u00e9cret", "\xff\xfe", "p%20+&="} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "secret")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		a := &Access{cfg: Config{Flags: "ledger", OAuth: OAuth{ClientID: "id", ClientSecretFile: path}}}
		secret, err := a.clientSecret()
		requireSecret(t, text, path, secret, err)
		if err == nil {
			requireHidden(t, a, secret)
		}
	})
}

// requireSecret checks what was made of the text of a file that holds a secret.
func requireSecret(t *testing.T, text []byte, path, secret string, err error) {
	t.Helper()
	trimmed := strings.TrimSpace(string(text))
	if err == nil {
		require.Equal(t, trimmed, secret)
		require.NotEmpty(t, secret)
		return
	}
	require.Empty(t, secret)
	said := strings.ReplaceAll(err.Error(), path, "")
	require.False(t, len(trimmed) >= longSecret && strings.Contains(said, trimmed), said)
	require.Less(t, len(said), 200)
}

// requireHidden checks that a secret is taken out of what is printed, wherever it stands.
func requireHidden(t *testing.T, a *Access, secret string) {
	t.Helper()
	if len(secret) < minSecret {
		return
	}
	// What stands around it, and what stands in its place, must not make it up by chance.
	if !strings.ContainsAny("[]<>", secret[:1]) && !strings.Contains("[token][secret][password]", secret) {
		require.NotContains(t, a.Redact("<"+secret+"> <"+secret+">"), secret)
	}
	require.True(t, a.Repeats(secret))
}

// FuzzTLSFiles gives one text as authorities, certificate and key. A key is never printed.
func FuzzTLSFiles(f *testing.F) {
	const key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIGdvb2QgYnllLCBhbGwgeW91IGJpdHMgYW5kIGJ5dGVz\n-----END PRIVATE KEY-----\n"
	const certificate = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
	for _, text := range []string{"", key, certificate, certificate + key, "-----BEGIN CERTIFICATE-----", "-----BEGIN X-----\nA: b\n\nAAAA\n-----END X-----\n", "\xff"} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "pem")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		trusted := authorities{flag: "--ledger-ca-file", path: path}
		changed, err := trusted.load()
		requireQuiet(t, text, path, err)
		require.Equal(t, changed, trusted.roots != nil)
		again, err2 := trusted.load()
		require.False(t, again, "what was read before is no news")
		require.Equal(t, err == nil, err2 == nil)
		a := &Access{cfg: Config{Flags: "ledger", CertFile: path, KeyFile: path}}
		cert, err := a.certificate()
		requireQuiet(t, text, path, err)
		require.Equal(t, err == nil, cert != nil)
	})
}

// requireQuiet checks that an error about a file repeats no line of it that could be part of a key.
func requireQuiet(t *testing.T, text []byte, path string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	said := strings.ReplaceAll(err.Error(), path, "")
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); len(line) >= longSecret && !strings.HasPrefix(line, "-----") {
			require.NotContains(t, said, line)
		}
	}
}

// FuzzTokenAnswer lets a token endpoint answer anything.
func FuzzTokenAnswer(f *testing.F) {
	const secret = "correct-horse-battery"
	for _, body := range []string{
		"", `{}`, `{"access_token":"a.b.c","token_type":"Bearer","expires_in":300}`, `{"access_token":"x y","token_type":"bearer"}`,
		`{"access_token":"x","token_type":"mac","expires_in":-1}`, `{"access_token":"x","expires_in":"99999999999999"}`, `access_token=x&token_type=bearer`,
		`{"error":"invalid_client","error_description":"` + secret + `"}`, `[`, `{"access_token":null}`, "\xff", `{"access_token":"x","expires_in":1e300}`,
	} {
		f.Add(200, "application/json", []byte(body))
		f.Add(401, "application/x-www-form-urlencoded", []byte(body))
	}
	path := filepath.Join(f.TempDir(), "secret")
	require.NoError(f, os.WriteFile(path, []byte(secret), 0o600))
	f.Fuzz(func(t *testing.T, status int, kind string, body []byte) {
		a, err := New(Config{Flags: "ledger", OAuth: OAuth{TokenURL: "http://localhost/token", ClientID: "id", ClientSecretFile: path}}, nil)
		require.NoError(t, err)
		defer a.Close()
		a.tokens.http.Transport = answers(func(*http.Request) *http.Response {
			return &http.Response{StatusCode: 200 + (status&0x7fffffff)%400, Header: http.Header{"Content-Type": {kind}, "Retry-After": {kind}},
				Body: io.NopCloser(strings.NewReader(string(body)))}
		})
		token, err := a.Token(t.Context())
		if err != nil {
			require.Empty(t, token)
			require.NotContains(t, err.Error(), secret)
			requireShown(t, err.Error())
			return
		}
		require.True(t, sendable(token))
		requireHidden(t, a, token)
	})
}

// answers is a http.RoundTripper without a network.
type answers func(*http.Request) *http.Response

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	got := a(r)
	got.Request = r
	return got, nil
}

func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"", "0", "120", "-1", "99999999999999999999999", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", " 5"} {
		f.Add(text, int64(1_445_412_480))
	}
	f.Fuzz(func(t *testing.T, header string, now int64) {
		wait := RetryAfter(header, time.Unix(now%(1<<40), 0))
		require.True(t, wait >= 0 && wait <= maxWait, "%v", wait)
	})
}

func FuzzExcerpt(f *testing.F) {
	for _, text := range []string{"", "plain", "a\r\n\tb", "\xff\x00", strings.Repeat("\u00e9", 400), "\u2028", "\x1b[31m"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Excerpt(text)
		requireShown(t, got)
		require.LessOrEqual(t, utf8.RuneCountInString(got), 301)
		require.Equal(t, got, Excerpt(strings.TrimSuffix(got, "…"))+strings.Repeat("…", strings.Count(got, "…")-strings.Count(strings.TrimSuffix(got, "…"), "…")))
	})
}

// FuzzCheckAccess looks for settings whose refusal prints a password or a token.
func FuzzCheckAccess(f *testing.F) {
	const secret = "correct-horse-battery"
	for _, text := range []string{"http://joe:" + secret + "@server", "http://joe:" + secret + "@ser ver:x", "https://" + secret + "@server", "", "%zz", "http://server"} {
		f.Add(text, "/run/token", "https://issuer/token", "id", "/run/secret", "")
		f.Add(text, "", "", "", "", "/run/cert")
		f.Add(text, "x.eyJzdWIiOiJqb2UifQ."+secret, "https://joe:"+secret+"@issuer/token", "", "", "")
	}
	f.Fuzz(func(t *testing.T, address, tokenFile, tokenURL, id, secretFile, cert string) {
		err := Config{Flags: "ledger", URL: address, TokenFile: tokenFile, CertFile: cert,
			OAuth: OAuth{TokenURL: tokenURL, ClientID: id, ClientSecretFile: secretFile}}.Check()
		if err != nil {
			require.NotContains(t, err.Error(), secret)
			require.ErrorContains(t, err, "--ledger-")
			requireShown(t, err.Error())
		}
	})
}
