package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// participantAudience begins the audience of a token for one participant. An Authority issues and verifies the tokens.
const participantAudience = "https://daml.com/jwt/aud/participant/"

// payload is the claims of a token. No two tokens have the same serial.
type payload struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
	Serial   int64  `json:"jti,string"`
	Scope    string `json:"scope,omitempty"`
}

// jwtHeader is the only header that tokens have: no other way to sign is accepted.
var jwtHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// Token issues a token for a user, whether or not the participant knows the user. It
// is valid for the authority's Lifetime.
func (a *Authority) Token(user string) string {
	return a.TokenFor(user, a.opts.Lifetime)
}

// TokenFor issues a token with a lifetime of its own; one that is not positive gives a
// token that has expired already.
func (a *Authority) TokenFor(user string, lifetime time.Duration) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.issue(user, lifetime, "", "")
}

// issue makes a token; a.mu is held.
func (a *Authority) issue(user string, lifetime time.Duration, audience, scope string) string {
	a.serial++
	if audience == "" {
		audience = participantAudience + a.opts.ParticipantID
	}
	now := a.opts.Now()
	expires := now.Add(lifetime)
	p := payload{
		Issuer: "sandbox", Subject: user, Audience: audience, Scope: scope,
		IssuedAt: now.Unix(), Expires: expires.Unix(), Serial: a.serial,
	}
	if lifetime > 0 && expires.Nanosecond() > 0 {
		p.Expires++ // not a moment less than was promised
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // of strings and numbers: can not happen
	}
	signed := jwtHeader + "." + base64.RawURLEncoding.EncodeToString(body)
	return signed + "." + base64.RawURLEncoding.EncodeToString(a.sign(signed))
}

func (a *Authority) sign(text string) []byte {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// verify reads a token of this authority that has neither expired nor been revoked.
func (a *Authority) verify(token string) (p payload, ok bool) {
	dot := strings.LastIndexByte(token, '.')
	if dot < 0 {
		return p, false
	}
	signed := token[:dot]
	signature, err := base64.RawURLEncoding.DecodeString(token[dot+1:])
	if err != nil || !hmac.Equal(signature, a.sign(signed)) {
		return p, false
	}
	// What is signed with the key was made by issue: it can be read.
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(signed, jwtHeader+"."))
	if err != nil || json.Unmarshal(body, &p) != nil {
		return p, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.opts.Now()
	return p, p.valid(now) && !a.tooLong(p, now) && p.Serial > a.revoked[p.Subject]
}

// tooLong reports whether a token lives longer than tokens may. The second that issue may add is not counted.
func (a *Authority) tooLong(p payload, now time.Time) bool {
	most := a.opts.MaxLifetime
	return most > 0 && time.Unix(p.Expires, 0).After(now.Add(most+time.Second))
}

func (p payload) valid(now time.Time) bool { return now.Before(time.Unix(p.Expires, 0)) }
