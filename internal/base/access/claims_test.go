package access

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseClaims(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 0)
	for claims, want := range map[string]Claims{
		`{}`: {},
		`{"sub":"alice","iss":"https://id","aud":"a","scope":"x y","exp":1700000000}`: {
			Subject: "alice", Issuer: "https://id", Audience: []string{"a"}, Scope: "x y", Expires: at},
		`{"aud":["a","b"],"exp":1700000000.9}`:                {Audience: []string{"a", "b"}, Expires: at},
		`{"aud":[],"sub":""}`:                                 {Audience: []string{}},
		`{"exp":1.7e9}`:                                       {Expires: at},
		`{"sub":7,"aud":{},"iss":[],"scope":["x"],"exp":"1"}`: {},
		`{"sub":"alice","exp":1e300}`:                         {Subject: "alice"},
		`{"iat":1700000000}`:                                  {Issued: at},
		`{"exp":1e999}`:                                       {},
		`{"exp":-1}`:                                          {},
		`{"exp":0}`:                                           {},
		`{"exp":null,"aud":null}`:                             {},
		`{"aud":["a",7]}`:                                     {},
		`{"sub":"a\u0000b"}`:                                  {Subject: "a\x00b"},
	} {
		got, ok := ParseClaims(jwt(claims))
		require.True(t, ok, claims)
		require.Equal(t, want, got, claims)
	}
	now := at.Add(time.Hour)
	for claims, want := range map[*Claims]time.Duration{
		{}:                              0,
		{Issued: at}:                    0,
		{Expires: now.Add(time.Minute)}: time.Minute,
		{Issued: at, Expires: now.Add(time.Hour)}: 2 * time.Hour,
	} {
		require.Equal(t, want, claims.Lifetime(now))
	}
	padded := base64.URLEncoding.EncodeToString([]byte(`{"sub":"alice"}`))
	got, ok := ParseClaims("x." + padded + ".y")
	require.True(t, ok)
	require.Equal(t, "alice", got.Subject)

	for _, token := range []string{"", ".", "..", "...", "opaque", "a.b.c", "a.b", jwt(""), jwt("null"), jwt("[]"), jwt(`"x"`), jwt(`{"sub":`),
		jwt(`{"sub":"alice"}`) + ".more", strings.Repeat(".", 1000), "x." + strings.Repeat("A", 100_000) + ".y"} {
		claims, ok := ParseClaims(token)
		require.False(t, ok, token)
		require.Zero(t, claims)
	}
}
