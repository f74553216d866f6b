package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// TokenError is why the token endpoint returned no token. A retry may help: each reads the secret again, which may have
// been installed or replaced.
type TokenError struct {
	Endpoint    string // its URL, without the query
	Status      int    // HTTP status; 0: no answer
	Code        string // OAuth error code, such as invalid_client (RFC 6749, section 5.2); may be empty
	Description string // the endpoint's message; may be empty
	Do          string // what to do about it; may be empty
	Err         error  // why there was no answer, or no usable one; else nil

	retryAfter time.Duration
}

func (e *TokenError) Error() string {
	if e.Do == "" {
		return e.What()
	}
	return e.What() + "; " + e.Do
}

// What returns the error without its cure.
func (e *TokenError) What() string {
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
	return b.String()
}

func (e *TokenError) Unwrap() error { return e.Err }

// Wait returns how long the endpoint asks to wait before the next try; 0 if it does not.
func (e *TokenError) Wait() time.Duration { return e.retryAfter }

// explain returns a failed fetch with its meaning and cure. It redacts the answer that it quotes: the endpoint may echo
// the request.
func (t *tokens) explain(err error) error {
	a, e := t.access, &TokenError{Endpoint: t.endpoint}
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		if cause := context.Cause(t.ctx); cause != nil {
			err = cause
		}
		if outer, ok := errors.AsType[*url.Error](err); ok { // has the whole URL in its text
			err = outer.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v", t.http.Timeout)
		}
		var refused *ConnectionError
		if errors.As(a.explain(err, "oauth-token-url", a.cfg.OAuth.TokenURL, &t.asked), &refused) {
			e.Description, e.Do = refused.What, refused.Do
		}
		e.Err = errors.New(a.excerpt(err.Error()))
		if strings.HasPrefix(err.Error(), "oauth2: ") { // the answer is not a token response
			e.Do = "check " + a.Flag("oauth-token-url")
		}
		return e
	}
	e.Code, e.Description = a.excerpt(answer.ErrorCode), a.excerpt(answer.ErrorDescription)
	e.Status = answer.Response.StatusCode
	e.retryAfter = RetryAfter(answer.Response.Header.Get("Retry-After"), time.Now())
	var (
		who = fmt.Sprintf("%s and the secret in %s (%s)", a.Flag("oauth-client-id"), a.cfg.OAuth.ClientSecretFile,
			a.Flag("oauth-client-secret-file"))
		what  = fmt.Sprintf("%s and %s", a.Flag("oauth-audience"), a.Flag("oauth-scopes"))
		where = a.Flag("oauth-token-url")
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
	case e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests &&
		e.Status != http.StatusRequestTimeout:
		e.Do = "check " + where
	}
	if e.Code == "" {
		e.Err = fmt.Errorf("the answer begins %q", a.excerpt(string(answer.Body)))
	}
	return e
}

// unusable returns the error of an answer without a usable token.
func (t *tokens) unusable(what string) error {
	return &TokenError{Endpoint: t.endpoint, Status: http.StatusOK, Err: errors.New(what),
		Do: "check " + t.access.Flag("oauth-token-url")}
}

// excerpt returns the beginning of a text received from outside, without secrets.
func (a *Access) excerpt(text string) string { return Excerpt(a.Redact(text)) }
