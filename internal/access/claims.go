package access

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Claims are the claims of a token.
type Claims struct {
	Subject  string   // sub: the user's id on participants
	Audience []string // aud
	Issuer   string   // iss
	Scope    string   // scope: names with spaces between them
	Expires  time.Time
}

// ParseClaims reads the claims of a JSON web token (RFC 7519). It verifies nothing: use them for explanations, never to
// decide on rights. Claims of an unexpected type are ignored. Expires is zero if the token has no expiry. ok is false if
// the token is no JSON web token: tokens may be opaque.
func ParseClaims(token string) (claims Claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Claims{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return Claims{}, false
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(payload, &object) != nil || object == nil {
		return Claims{}, false
	}
	claims = Claims{Subject: claim[string](object, "sub"), Issuer: claim[string](object, "iss"), Scope: claim[string](object, "scope")}
	if claims.Audience = claim[[]string](object, "aud"); claims.Audience == nil {
		if one := claim[string](object, "aud"); one != "" {
			claims.Audience = []string{one}
		}
	}
	const lastSecond = 253402300799 // of the year 9999, the last with a date in RFC 3339
	if seconds := claim[float64](object, "exp"); seconds >= 1 && seconds <= lastSecond {
		claims.Expires = time.Unix(int64(seconds), 0)
	}
	return claims, true
}

// claim returns a member, or the zero value if it is missing or of another type.
func claim[T any](object map[string]json.RawMessage, name string) (value T) {
	if raw, ok := object[name]; ok && json.Unmarshal(raw, &value) != nil {
		var none T
		return none
	}
	return value
}

// DescribeToken describes a token's claims, as part of a sentence about the token; empty where they are not readable.
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
