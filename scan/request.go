package scan

import (
	"context"
	"errors"
	"net/http"
	"time"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
)

// request is one HTTP request; body nil means GET.
type request struct {
	operation string // as told to Config.Observe
	path      string
	body      any
	most      int64 // the largest answer that is read, in bytes
}

// do sends a request and reads the answer completely. What it returns is whole JSON as far as length and content type
// can tell. A token that is refused is replaced once, and the request sent again. All errors are *Error.
func (c *Client) do(ctx context.Context, r request) (jsonhttp.Answer, error) {
	a, err := c.http.Do(ctx, jsonhttp.Request{Operation: r.operation, Path: r.path, Body: r.body, Most: r.most, Silence: c.silence})
	if err == nil && a.Status == http.StatusOK {
		return a, nil
	}
	e := newError(r.operation, a, err, c.access.Redact)
	if e.Status == http.StatusUnauthorized {
		e.token = access.DescribeToken(a.Token, time.Now())
	}
	return jsonhttp.Answer{}, e
}

// misread gives the error of reading an answer its proper kind: what is cut off, or no JSON at all, comes of somebody on the
// way, and can be asked for again; data that is one of our secrets is not repeated.
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
