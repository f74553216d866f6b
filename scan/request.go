package scan

import (
	"context"
	"errors"
	"net/http"
	"time"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
)

// do sends a request and reads the whole answer. By its length and content type the answer is complete JSON. A token
// that is refused is replaced once, and the request sent again. All errors are *Error.
func (c *Client) do(ctx context.Context, r jsonhttp.Request) (jsonhttp.Answer, error) {
	r.SilenceTimeout = c.silence
	if r.Binary {
		r.AnswerTimeout = objectTimeout
	}
	a, err := c.http.Do(ctx, r)
	if err == nil && a.Status == http.StatusOK {
		return a, nil
	}
	e := newError(r.Operation, a, err, c.access.Redact)
	if e.Status == http.StatusUnauthorized {
		e.token = access.DescribeToken(a.Token, time.Now())
	}
	return jsonhttp.Answer{}, e
}

// misread classifies the error of reading an answer. An answer that is cut off or not JSON comes from something between
// here and the server, and can be requested again. An error that contains one of our secrets is replaced.
func (c *Client) misread(operation string, a jsonhttp.Answer, err error) error {
	cause := c.http.Unusable(a)
	if cause == nil && c.access.Repeats(err.Error()) {
		cause = errSecret
	}
	if cause == nil {
		return err
	}
	return &Error{Failure: jsonhttp.Unusable(operation, cause)}
}

var errSecret = errors.New("the answer holds a secret that was sent")
