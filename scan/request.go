package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/access"
)

// request is one HTTP request; body nil means GET.
type request struct {
	operation string
	path      string
	body      any
}

// do sends a request and reads the answer completely. A refused token is replaced once. All errors are *Error.
func (c *Client) do(ctx context.Context, r request) ([]byte, error) {
	token, err := c.access.Token(ctx)
	if err != nil {
		return nil, &Error{Operation: r.operation, Err: err}
	}
	body, e := c.exchange(ctx, r, token)
	if e != nil && e.Status == http.StatusUnauthorized && token != "" {
		fresh, err := c.access.Renew(ctx, token)
		switch {
		case err != nil:
			e.Err = err
		case fresh != "":
			body, e = c.exchange(ctx, r, fresh)
		}
	}
	if e != nil {
		e.Operation = r.operation
		return nil, e
	}
	return body, nil
}

// exchange does one round trip.
func (c *Client) exchange(ctx context.Context, r request, token string) ([]byte, *Error) {
	req, err := c.newRequest(ctx, r, token)
	if err != nil {
		return nil, &Error{Err: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &Error{Err: transportError(ctx, err)}
	}
	defer func() { _ = resp.Body.Close() }() // only read from; nothing is lost by an error here
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, newError(resp, body, c.access.Redact) // an explanation that breaks off explains as much as came
	case err != nil:
		return nil, &Error{Status: resp.StatusCode, Err: fmt.Errorf("the answer was cut off after %d bytes: %w", len(body), transportError(ctx, err))}
	case len(body) > maxBody:
		return nil, &Error{Status: resp.StatusCode, Err: fmt.Errorf("the answer is too large: more than %d bytes", maxBody)}
	}
	return body, nil
}

func (c *Client) newRequest(ctx context.Context, r request, token string) (*http.Request, error) {
	method, content := http.MethodGet, io.Reader(nil)
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		method, content = http.MethodPost, bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(r.path).String(), content)
	if err != nil {
		return nil, err
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "ledgerindexer")
	switch {
	case token != "":
		req.Header.Set("Authorization", "Bearer "+token)
	case c.user != nil:
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	return req, nil
}

// decode reads the JSON of an answer. An answer that is none may come of a proxy, so it is an *Error too.
func (c *Client) decode(r request, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return &Error{Operation: r.operation, Status: http.StatusOK, Body: access.Excerpt(c.access.Redact(string(body))), Err: errNotServed}
	}
	return nil
}

var errNotServed = errors.New("the answer is not what this operation serves")

// transportError leaves out what net/http says about the URL.
func transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}
