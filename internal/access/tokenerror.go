package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/oauth2"
)

// TokenError says why the token endpoint gave no token. It may pass: credentials are put in place late or replaced, and
// the secret is read again with each try.
type TokenError struct {
	Endpoint    string // its URL, without the query
	Status      int    // HTTP status; 0: no answer
	Code        string // OAuth error code, such as invalid_client (RFC 6749, section 5.2); may be empty
	Description string // the endpoint's own words; may be empty
	Do          string // what to do about it; may be empty
	Err         error  // what went wrong where there was no answer, or none that could be used; else nil

	retryAfter time.Duration
}

func (e *TokenError) Error() string {
	var b strings.Builder
	b.WriteString("no token from " + e.Endpoint)
	if e.Status != 0 && e.Status != http.StatusOK {
		b.WriteString(strings.TrimRight(fmt.Sprintf(": HTTP status %d %s", e.Status, http.StatusText(e.Status)), " "))
	}
	for _, part := range []string{e.Code, e.Description} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Do != "" {
		b.WriteString("; " + e.Do)
	}
	return b.String()
}

func (e *TokenError) Unwrap() error { return e.Err }

// Wait is how long the endpoint asks to wait before the next try; 0: it does not say.
func (e *TokenError) Wait() time.Duration { return e.retryAfter }

// explain says what the failure of a fetch means. What the endpoint sent is shown in part, without secrets: it may
// send back what it got.
func (t *tokens) explain(err error) error {
	a, e := t.access, &TokenError{Endpoint: t.endpoint}
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		if cause := context.Cause(t.ctx); cause != nil {
			err = cause
		}
		var outer *url.Error // has the whole URL in its text
		if errors.As(err, &outer) {
			err = outer.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v", t.http.Timeout)
		}
		var refused *TLSError
		if errors.As(a.explainServer(err, "oauth-token-url", a.cfg.OAuth.TokenURL), &refused) {
			e.Description, e.Do = refused.What, refused.Do
		}
		e.Err = errors.New(a.excerpt(err.Error()))
		if strings.HasPrefix(err.Error(), "oauth2: ") { // an answer came that is none
			e.Do = "check " + a.flag("oauth-token-url")
		}
		return e
	}
	e.Code, e.Description = a.excerpt(answer.ErrorCode), a.excerpt(answer.ErrorDescription)
	e.Status = answer.Response.StatusCode
	if seconds, err := strconv.ParseInt(answer.Response.Header.Get("Retry-After"), 10, 32); err == nil {
		e.retryAfter = max(0, time.Duration(seconds)*time.Second)
	}
	var (
		who   = fmt.Sprintf("%s and the secret in %s (%s)", a.flag("oauth-client-id"), a.cfg.OAuth.ClientSecretFile, a.flag("oauth-client-secret-file"))
		what  = fmt.Sprintf("%s and %s", a.flag("oauth-audience"), a.flag("oauth-scopes"))
		where = a.flag("oauth-token-url")
	)
	switch {
	case e.Code == "invalid_client", e.Code == "unauthorized_client":
		e.Do = "check " + who + ", and that the client may use the client credentials grant"
	case e.Code == "invalid_scope", e.Code == "invalid_target", e.Code == "access_denied":
		e.Do = "check " + what
	case e.Code == "unsupported_grant_type":
		e.Do = "the endpoint does not give tokens for client credentials: check " + where
	case e.Code != "":
		e.Do = "check " + who + ", " + what
	case e.Status >= 300 && e.Status < 400:
		e.Do = "it redirects, which is not followed: check " + where
		if to, err := answer.Response.Location(); err == nil {
			e.Do = "it redirects to " + a.excerpt(to.Scheme+"://"+to.Host+to.Path) + ", which is not followed: check " + where
		}
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		e.Do = "check " + who
	case e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout:
		e.Do = "check " + where
	}
	if e.Code == "" {
		e.Err = fmt.Errorf("the answer begins %q", a.excerpt(string(answer.Body)))
	}
	return e
}

// unusable is an answer that holds no token that could be sent.
func (t *tokens) unusable(what string) error {
	return &TokenError{Endpoint: t.endpoint, Status: http.StatusOK, Err: errors.New(what), Do: "check " + t.access.flag("oauth-token-url")}
}

// excerpt is the beginning of a text from outside, without secrets.
func (a *Access) excerpt(text string) string { return Excerpt(a.Redact(text)) }

// Excerpt is the beginning of a text from outside, some 300 characters, on one line and free of control characters. What
// may hold secrets is redacted before: a secret that is cut in two is not found.
func Excerpt(text string) string {
	const most = 300
	s := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return r == ' ' || unicode.IsControl(r)
	}), " ")
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return s
}
