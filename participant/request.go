package participant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/internal/access"
)

const (
	userAgent = "ledgerindexer"
	// errorBody is how much is read of an answer that is to be shown, in bytes.
	errorBody = 64 << 10
	// trustedLength is up to which size room is made for an answer on the word of its Content-Length.
	trustedLength = 64 << 20
	// smallBody is the largest answer that is read about a single thing, or about vetted packages. Nothing real comes
	// near it, and to decode an answer takes several times its size in memory.
	smallBody = 64 << 20
)

var (
	errSilent   = errors.New("the server went silent")
	errTooLarge = errors.New("the answer is too large")
)

// request is one HTTP request; body nil means GET.
type request struct {
	operation string // as told to Config.Observe
	path      string
	query     url.Values
	body      any
	limit     int64 // the largest answer that is read, in bytes; 0: the client's, which is never exceeded
}

// mostOf is the largest answer to a request that is read, in bytes.
func (c *Client) mostOf(r request) int64 {
	if r.limit > 0 {
		return min(r.limit, c.maxBody)
	}
	return c.maxBody
}

// do sends a request and reads the answer completely. What it returns is whole JSON as far as length and content
// type can tell. A token that the server refuses is replaced once, and the request sent again. All errors are *Error.
func (c *Client) do(ctx context.Context, r request) ([]byte, error) {
	token, err := c.access.Token(ctx)
	if err != nil {
		return nil, &Error{Operation: r.operation, Err: err}
	}
	body, e := c.send(ctx, r, token)
	if e != nil && e.unauthenticated() && token != "" {
		fresh, err := c.access.Renew(ctx, token)
		switch {
		case err != nil:
			e.Err = err
		case fresh != "":
			token = fresh
			body, e = c.send(ctx, r, token)
		}
	}
	if e == nil {
		return body, nil
	}
	if e.Status == 0 || e.Status >= http.StatusInternalServerError {
		c.anew() // the server may be another one when it is back
	}
	if e.unauthenticated() {
		e.token = describe(token, time.Now())
	}
	e.Operation = r.operation
	return nil, e
}

// send does one round trip and tells Observe of it.
func (c *Client) send(ctx context.Context, r request, token string) ([]byte, *Error) {
	start := time.Now()
	body, e := c.exchange(ctx, r, token)
	status := http.StatusOK
	if e != nil {
		status = e.Status
	}
	if status != 0 {
		c.answered.Store(true)
	}
	if c.cfg.Observe != nil {
		c.cfg.Observe(r.operation, status, time.Since(start), int64(len(body)))
	}
	return body, e
}

// exchange sends and reads. It returns the body so far with the error too, so that it can be counted.
func (c *Client) exchange(ctx context.Context, r request, token string) ([]byte, *Error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(c.silence, func() { cancel(errSilent) })
	defer watch.Stop()

	req, err := c.newRequest(within, r, token)
	if err != nil {
		return nil, &Error{Err: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &Error{Err: c.transportError(ctx, within, err)}
	}
	defer func() { _ = resp.Body.Close() }() // only read from; nothing is lost by an error here
	moving := &movingReader{r: resp.Body, watch: watch, silence: c.silence}

	if resp.StatusCode != http.StatusOK {
		// The status is what counts. An explanation that breaks off explains as much as came.
		text, _ := io.ReadAll(io.LimitReader(moving, errorBody))
		return text, newError(resp, text, c.redact)
	}
	if kind := resp.Header.Get("Content-Type"); !isJSON(kind) {
		head, _ := io.ReadAll(io.LimitReader(moving, errorBody)) // more than is shown: a secret that is cut in two is not found
		return head, &Error{Status: resp.StatusCode, Body: c.clean(string(head)), Err: fmt.Errorf(
			"the answer has content type %q instead of application/json; is --ledger-url the participant's JSON API?", c.clean(kind))}
	}
	body, err := readBody(resp, moving, c.mostOf(r))
	switch {
	case errors.Is(err, errTooLarge):
		return body, &Error{Status: resp.StatusCode, Err: err}
	case err != nil:
		return body, &Error{Status: resp.StatusCode, Err: fmt.Errorf("%w after %d bytes: %w",
			ErrCutOff, len(body), c.transportError(ctx, within, err))}
	}
	return body, nil
}

func (c *Client) newRequest(ctx context.Context, r request, token string) (*http.Request, error) {
	target := c.base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	method, content := http.MethodGet, io.Reader(nil)
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		method, content = http.MethodPost, bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return nil, err
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	switch {
	case token != "":
		req.Header.Set("Authorization", "Bearer "+token)
	case c.user != nil:
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	return req, nil
}

// readBody reads an answer up to so many bytes.
func readBody(resp *http.Response, r io.Reader, most int64) ([]byte, error) {
	var buf bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		buf.Grow(int(min(n, trustedLength)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(io.LimitReader(r, most+1))
	if err == nil && int64(buf.Len()) > most {
		err = fmt.Errorf("%w: more than the %d bytes that are read of it", errTooLarge, most)
	}
	return buf.Bytes(), err
}

// transportError leaves out what net/http says about the URL, tells a silent server from a caller who is done, and
// says what is wrong with certificates.
func (c *Client) transportError(caller, within context.Context, err error) error {
	if caller.Err() != nil {
		return caller.Err()
	}
	if errors.Is(context.Cause(within), errSilent) {
		return fmt.Errorf("%w for %v", errSilent, c.silence)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if text := err.Error(); c.redact(text) != text {
		return errors.New(c.redact(text))
	}
	return c.access.Explain(err)
}

// movingReader tells the watch that the answer is still coming.
type movingReader struct {
	r       io.Reader
	watch   *time.Timer
	silence time.Duration
}

func (m *movingReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if n > 0 {
		m.watch.Reset(m.silence)
	}
	return n, err
}

// isJSON accepts an answer without a content type: interface.md does not promise one.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// decoded gives the error of decoding an answer its proper kind: an answer whose end is missing was cut by
// somebody on the way who did not say so, and can be asked for again. Whatever else is wrong the server meant.
func decoded(operation string, body []byte, err error) error {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if skip := dec.SkipValue(); errors.Is(skip, io.ErrUnexpectedEOF) || errors.Is(skip, io.EOF) {
		return &Error{Operation: operation, Status: http.StatusOK,
			Err: fmt.Errorf("%w after %d bytes: the JSON has no end", ErrCutOff, len(body))}
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// clean is the beginning of a text from outside, without secrets.
func (c *Client) clean(text string) string { return access.Excerpt(c.redact(text)) }

// describe says of a token that was refused what the token says of itself; empty where it is not readable.
func describe(token string, now time.Time) string {
	claims, ok := access.ParseClaims(token)
	switch {
	case !ok:
		return ""
	case !claims.Expires.IsZero() && !now.Before(claims.Expires):
		return "expired at " + claims.Expires.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("is for user %q and audience %q", access.Excerpt(claims.Subject), access.Excerpt(strings.Join(claims.Audience, " ")))
	if !claims.Expires.IsZero() {
		text += " and valid until " + claims.Expires.UTC().Format(time.RFC3339)
	}
	return text
}
