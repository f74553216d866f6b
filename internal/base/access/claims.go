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
	Issued   time.Time
	Expires  time.Time
}

// Lifetime returns how long a token lives from when it was issued, or from now where it does not say when that was; 0:
// it has no expiry.
func (c Claims) Lifetime(now time.Time) time.Duration {
	switch {
	case c.Expires.IsZero():
		return 0
	case !c.Issued.IsZero():
		now = c.Issued
	}
	return c.Expires.Sub(now)
}

// ParseClaims reads the claims of a JSON web token (RFC 7519). It verifies nothing: use them for explanations, never to
// decide on rights. Claims of an unexpected type are ignored. Issued and Expires are zero if the token does not say
// them. ok is false if the token is no JSON web token: tokens may be opaque.
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
	claims = Claims{Subject: claim[string](object, "sub"), Issuer: claim[string](object, "iss"),
		Scope: claim[string](object, "scope")}
	if claims.Audience = claim[[]string](object, "aud"); claims.Audience == nil {
		if one := claim[string](object, "aud"); one != "" {
			claims.Audience = []string{one}
		}
	}
	claims.Issued, claims.Expires = timeOf(object, "iat"), timeOf(object, "exp")
	return claims, true
}

// timeOf returns a member that is a time, or the zero value if it is missing or not a time with a date in RFC 3339.
func timeOf(object map[string]json.RawMessage, name string) time.Time {
	const lastSecond = 253402300799 // of the year 9999
	if seconds := claim[float64](object, name); seconds >= 1 && seconds <= lastSecond {
		return time.Unix(int64(seconds), 0)
	}
	return time.Time{}
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
	text := fmt.Sprintf("is for user %q and audience %q", Excerpt(claims.Subject),
		Excerpt(strings.Join(claims.Audience, " ")))
	if !claims.Expires.IsZero() {
		text += " and valid until " + claims.Expires.UTC().Format(time.RFC3339)
	}
	return text
}
