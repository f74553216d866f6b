package participant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/jsonhttp"
)

// request is one HTTP request; body nil means GET.
type request struct {
	operation string // as passed to Config.Observe
	path      string
	query     url.Values
	body      any
	limit     int64 // the largest answer that is read, in bytes; 0: Client.maxBody
	longPoll  bool  // the server may wait before it answers
	binary    bool  // the answer is bytes, not JSON
}

func (c *Client) bodyLimit(r request) int64 {
	return cmp.Or(r.limit, c.maxBody)
}

// do sends a request and reads the whole answer, whose length and content type it checks. After a refused token it sends the
// request once more with a fresh one. All errors are *Error.
func (c *Client) do(ctx context.Context, r request) (jsonhttp.Answer, error) {
	a, err := c.http.Do(ctx, jsonhttp.Request{
		Operation: r.operation, Path: r.path, Query: r.query, Body: r.body, MaxBytes: c.bodyLimit(r), SilenceTimeout: c.silence, AnswerTimeout: c.longest,
		LongPoll: r.longPoll, Binary: r.binary,
	})
	if err == nil && a.Status == http.StatusOK {
		c.answered.LoadOrStore(r.operation, true)
		return a, nil
	}
	e := newError(r.operation, a, err, c.redact)
	if e.unauthenticated() {
		e.token = access.DescribeToken(a.Token, time.Now())
	}
	if e.Status == 0 || e.Status >= http.StatusInternalServerError || errors.Is(err, ErrNotJSON) {
		c.connectionChanged() // another server may answer next
	}
	return jsonhttp.Answer{}, e
}

// decodeError classifies the error of decoding an answer. If the answer is cut off or not JSON, something between here and
// the server damaged it, and the request may be tried again. Any other error concerns the server itself.
func (c *Client) decodeError(operation string, a jsonhttp.Answer, err error) error {
	unusable := c.http.Unusable(a)
	if unusable == nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	e := &Error{Failure: jsonhttp.Unusable(operation, unusable)}
	if errors.Is(unusable, ErrNotJSON) {
		c.connectionChanged() // something else answered
	}
	return c.judge(e, purpose{}).of(e)
}

// clean returns the beginning of a text received from outside, without secrets.
func (c *Client) clean(text string) string { return access.Excerpt(c.redact(text)) }
