package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
)

// do sends a request and reads the whole answer, of at most maxBody bytes where MaxBytes is 0. It checks the answer's
// length and content type. After a refused token it sends the request once more with a fresh one. All errors are
// *Error.
func (c *Client) do(ctx context.Context, r jsonhttp.Request) (jsonhttp.Answer, error) {
	r.MaxBytes, r.SilenceTimeout, r.AnswerTimeout = cmp.Or(r.MaxBytes, c.maxBody), c.silence, c.longest
	a, err := c.http.Do(ctx, r)
	if err == nil && a.Status == http.StatusOK {
		c.answered.LoadOrStore(r.Operation, true)
		return a, nil
	}
	e := newError(r.Operation, a, err, c.redact)
	if e.unauthenticated() {
		e.token = describeToken(a.Token, time.Now())
	}
	if e.Status == 0 || e.Status >= http.StatusInternalServerError || errors.Is(err, jsonhttp.ErrNotJSON) {
		c.connectionChanged() // another server may answer next
	}
	return jsonhttp.Answer{}, e
}

// LongestToken is the longest lifetime of a token that participants accept, unless max-token-lifetime of their
// ledger-api says another.
const LongestToken = 5 * time.Minute

// describeToken is [access.DescribeToken], with the lifetime where that may be why the token was refused.
func describeToken(token string, now time.Time) string {
	text := access.DescribeToken(token, now)
	claims, _ := access.ParseClaims(token)
	if lives := claims.Lifetime(now); lives > LongestToken && now.Before(claims.Expires) {
		text += fmt.Sprintf(", so lives for %v: a participant accepts at most %v unless its max-token-lifetime says "+
			"otherwise",
			lives.Round(time.Second), LongestToken)
	}
	return text
}

// decodeError classifies the error of decoding an answer. If the answer is cut off or not JSON, something between here
// and the server damaged it, and the request may be tried again. Any other error concerns the server itself.
func (c *Client) decodeError(operation string, a jsonhttp.Answer, err error) error {
	unusable := c.http.Unusable(a)
	if unusable == nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	e := &Error{Failure: jsonhttp.Unusable(operation, unusable)}
	if errors.Is(unusable, jsonhttp.ErrNotJSON) {
		c.connectionChanged() // something else answered
	}
	return c.judge(e, purpose{}).of(e)
}

// clean returns the beginning of a text received from outside, without secrets.
func (c *Client) clean(text string) string { return access.Excerpt(c.redact(text)) }
