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
	operation string // as told to Config.Observe
	path      string
	query     url.Values
	body      any
	limit     int64 // the largest answer that is read, in bytes; 0: the client's for pages and lists
	longPoll  bool  // the server waits for something to happen
}

// mostOf is the largest answer to a request that is read, in bytes.
func (c *Client) mostOf(r request) int64 {
	return cmp.Or(r.limit, c.maxBody)
}

// do sends a request and reads the answer completely. What it returns is whole JSON as far as length and content
// type can tell. A token that the server refuses is replaced once, and the request sent again. All errors are *Error.
func (c *Client) do(ctx context.Context, r request) (jsonhttp.Answer, error) {
	a, err := c.http.Do(ctx, jsonhttp.Request{
		Operation: r.operation, Path: r.path, Query: r.query, Body: r.body, Most: c.mostOf(r), Silence: c.silence, Longest: c.longest,
		LongPoll: r.longPoll,
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
		c.anew() // the server may be another one when it is back
	}
	return jsonhttp.Answer{}, e
}

// decoded gives the error of decoding an answer its proper kind: what is cut off, or no JSON at all, comes of somebody on
// the way, and can be asked for again. Whatever else is wrong the server meant.
func (c *Client) decoded(operation string, a jsonhttp.Answer, err error) error {
	unusable := c.http.Unusable(a)
	if unusable == nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	e := &Error{Failure: jsonhttp.Unusable(operation, unusable)}
	if errors.Is(unusable, ErrNotJSON) {
		c.anew() // somebody else answered
	}
	return c.judge(e, asked{}).of(e)
}

// clean is the beginning of a text from outside, without secrets.
func (c *Client) clean(text string) string { return access.Excerpt(c.redact(text)) }
