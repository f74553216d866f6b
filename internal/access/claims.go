package access

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Claims are what a token says of itself.
type Claims struct {
	Subject  string   // sub: with ledger participants the user's id
	Audience []string // aud
	Issuer   string   // iss
	Scope    string   // scope: names with spaces between them
	Expires  time.Time
}

// ParseClaims reads the claims of a JSON web token (RFC 7519). It verifies nothing: they are for explanations, not for
// decisions about anybody's rights. Claims of another type than expected are left out, and Expires is zero where the
// token does not say.
//
// ok is false where the token is no JSON web token: tokens may be opaque.
func ParseClaims(token string) (claims Claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Claims{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return Claims{}, false
	}
	var told map[string]json.RawMessage
	if json.Unmarshal(payload, &told) != nil || told == nil {
		return Claims{}, false
	}
	claims = Claims{Subject: claim[string](told, "sub"), Issuer: claim[string](told, "iss"), Scope: claim[string](told, "scope")}
	if claims.Audience = claim[[]string](told, "aud"); claims.Audience == nil {
		if one := claim[string](told, "aud"); one != "" {
			claims.Audience = []string{one}
		}
	}
	const lastSecond = 253402300799 // of the year 9999: what is beyond can't be written as a date
	if seconds := claim[float64](told, "exp"); seconds >= 1 && seconds <= lastSecond {
		claims.Expires = time.Unix(int64(seconds), 0)
	}
	return claims, true
}

// claim reads a member; the zero value where there is none of that type.
func claim[T any](told map[string]json.RawMessage, name string) (value T) {
	if raw, ok := told[name]; ok && json.Unmarshal(raw, &value) != nil {
		var none T
		return none
	}
	return value
}

// DescribeToken is what a token says of itself, as part of a sentence about the token; empty where it is not readable.
func DescribeToken(token string, now time.Time) string {
	claims, ok := ParseClaims(token)
	switch {
	case !ok:
		return ""
	case !claims.Expires.IsZero() && !now.Before(claims.Expires):
		return "expired at " + claims.Expires.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("is for user %q and audience %q", Excerpt(claims.Subject), Excerpt(strings.Join(claims.Audience, " ")))
	if !claims.Expires.IsZero() {
		text += " and valid until " + claims.Expires.UTC().Format(time.RFC3339)
	}
	return text
}
