package jsonhttp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/base/access"
)

// Request is one HTTP request.
type Request struct {
	Operation string // as passed to Config.Observe
	Method    string // empty: POST where there is a Body, else GET
	Path      string
	Query     url.Values
	Body      any   // marshalled to JSON; nil: none
	MaxBytes  int64 // the largest answer that is read, in bytes of JSON
	// SilenceTimeout is the longest time without a byte before the answer, and within it without so many bytes that an end
	// is in sight.
	SilenceTimeout time.Duration
	// AnswerTimeout is the longest time from the request to the answer's last byte; 0: the constant of this name.
	AnswerTimeout time.Duration
	LongPoll      bool // the server waits for news; see Config.MaxRequests
	Binary        bool // the answer is bytes, of type application/octet-stream, and not JSON
	// To, if set, gets the body of a success as it comes, in place of Answer.Body. After an error it has a part of one. It
	// is for answers of more bytes than memory should hold.
	To io.Writer
	// Changes says that the request changes something at the server. Others are sent again, at once and over another
	// connection, where the server closed a kept connection before it answered anything.
	Changes bool
}

// Answer is a server's answer, as far as one came.
type Answer struct {
	Status      int           // HTTP status; 0: no answer
	ContentType string        // by its header; may be empty
	RetryAfter  time.Duration // how long to wait by its header; 0: not sent
	Location    string        // where it redirects to, without the query and without secrets; empty: nowhere
	Bytes       int64         // the bytes of the body that were read
	Token       string        // the token that was sent; a secret
	// Body is the whole body of a success; see [Release]. If the answer is no success or not JSON, it is the beginning,
	// with secrets not removed; of a redirect it is empty.
	Body []byte

	operation string
	came      time.Time // when the whole body was there
	asked     string    // method and path
}

// Decoded reports to Config.Decoded that an answer's elements are decoded, which the caller began when [Client.Do]
// returned it.
func (c *Client) Decoded(ctx context.Context, a Answer) {
	if c.cfg.Decoded != nil {
		c.cfg.Decoded(ctx, a.operation, time.Since(a.came))
	}
}

// Do sends a request and reads the answer. Without an error the answer is either no success, or, by its length and
// content type, complete JSON. A token that the server refuses is replaced once, and the request sent again.
//
// The error is a *NotJSONError if the content type is not JSON's: see also [Client.Unusable]. Other errors say why
// there is no token, no answer, or no usable one. If the server refused the token, its answer is returned with the
// error that prevented a new token. Errors contain no secrets.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	token, err := c.access.Token(ctx)
	if err != nil {
		return Answer{}, noToken{err}
	}
	a, err := c.send(ctx, r, token)
	if token == "" || err != nil || a.Status == http.StatusOK || !c.server.Refused(a) {
		return a, err
	}
	fresh, err := c.access.Renew(ctx, token)
	switch {
	case err != nil:
		return a, noToken{err}
	case fresh == "":
		return a, nil
	}
	return c.send(ctx, r, fresh)
}

// send does one round trip, notes whether there was an answer, and calls Observe.
func (c *Client) send(ctx context.Context, r Request, token string) (Answer, error) {
	done, err := c.throttle.take(ctx, r.LongPoll)
	if err != nil {
		return Answer{Token: token}, err
	}
	defer done()
	start := time.Now()
	a, err := c.exchange(ctx, r, token)
	a.came = time.Now()
	if a.Status != 0 {
		c.answered.Store(true)
	}
	if c.cfg.Observe != nil {
		c.cfg.Observe(ctx, r.Operation, a.Status, a.came.Sub(start), a.Bytes)
	}
	return a, err
}

func (c *Client) exchange(ctx context.Context, r Request, token string) (Answer, error) {
	r.AnswerTimeout = cmp.Or(r.AnswerTimeout, AnswerTimeout)
	inTime, stop := context.WithTimeoutCause(ctx, r.AnswerTimeout, fmt.Errorf("%w: it took more than %v for an answer",
		ErrSlow, r.AnswerTimeout))
	defer stop()
	within, cancel := context.WithCancelCause(inTime)
	defer cancel(nil)
	content := &timedReader{timeout: r.SilenceTimeout}
	content.silence = time.AfterFunc(r.SilenceTimeout, func() { cancel(content.late()) })
	defer content.silence.Stop()

	a := Answer{Token: token, operation: r.Operation}
	req, err := c.newRequest(within, r, token)
	if err != nil {
		return a, err
	}
	a.asked = req.Method + " " + req.URL.Path
	resp, err := c.http.Do(req)
	if err != nil {
		return a, c.transportError(ctx, within, r, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read from, so an error loses nothing
	if c.cfg.Answered != nil {
		c.cfg.Answered(resp)
	}
	content.r = resp.Body
	a.Status = resp.StatusCode
	a.ContentType = resp.Header.Get("Content-Type")
	wanted := contentOf(r)
	if resp.StatusCode != http.StatusOK || !wanted.is(a.ContentType) {
		// The status or the type decides. The body only explains it, so a part of it will do.
		a.Body, _ = io.ReadAll(io.LimitReader(content, errorBody))
		a.Bytes = int64(len(a.Body))
		a.RetryAfter = access.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
		if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
			a.Location = c.clean(to.Scheme + "://" + to.Host + to.Path) // the query may contain secrets,
			a.Body = nil                                                // and the body repeats it
		}
		if resp.StatusCode != http.StatusOK {
			return a, nil
		}
		return a, c.notJSON(a, fmt.Sprintf("the answer has content type %q instead of %s; is %s the base of the JSON API?",
			c.clean(a.ContentType), wanted.name, c.access.Flag("url")))
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return a, fmt.Errorf("the answer is encoded as %q, which was not asked for; see what stands between here and %s",
			c.clean(encoding), c.access.Flag("url"))
	}
	if r.To != nil {
		a.Bytes, err = passBody(resp, content, r.MaxBytes, r.To)
	} else {
		a.Body, err = readBody(resp, content, r.MaxBytes, wanted.limit(r.MaxBytes))
		a.Bytes = int64(len(a.Body))
	}
	if err == nil {
		c.usable.Add(1)
		return a, nil
	}
	a.Body = nil
	unwritten := notPassed{}
	switch {
	case errors.Is(err, ErrTooLarge):
		return a, err
	case errors.As(err, &unwritten):
		return a, unwritten.error
	}
	return a, fmt.Errorf("%w after %d bytes: %w", ErrCutOff, a.Bytes, c.transportError(ctx, within, r, err))
}

// notPassed is an error of Request.To.
type notPassed struct{ error }

// passBody passes an answer of at most maxBytes to a writer.
func passBody(resp *http.Response, r io.Reader, maxBytes int64, to io.Writer) (n int64, err error) {
	if resp.ContentLength > maxBytes {
		return 0, tooLong(resp, maxBytes)
	}
	part := make([]byte, minBuffer)
	for {
		read, err := r.Read(part)
		if n += int64(read); n > maxBytes {
			return n, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, maxBytes)
		}
		if _, unwritten := to.Write(part[:read]); unwritten != nil {
			return n, notPassed{unwritten}
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func tooLong(resp *http.Response, maxBytes int64) error {
	return fmt.Errorf("%w: it has %d bytes, and at most %d are read", ErrTooLarge, resp.ContentLength, maxBytes)
}

func (c *Client) newRequest(ctx context.Context, r Request, token string) (*http.Request, error) {
	target := c.base.JoinPath(r.Path)
	target.RawQuery = r.Query.Encode()
	method, content := cmp.Or(r.Method, http.MethodGet), io.Reader(nil)
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		method, content = cmp.Or(r.Method, http.MethodPost), bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
		if method == http.MethodGet {
			req.Header.Set("Cache-Control", "no-cache") // caches tell GETs apart by their URLs
		}
	}
	if !r.Changes {
		req.Header["Idempotency-Key"] = nil // not sent: it tells the transport that a POST may be sent again
	}
	req.Header.Set("Accept", contentOf(r).name)
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

// readBody reads an answer of at most maxBytes, and of at most as many values as limit allows.
func readBody(resp *http.Response, r io.Reader, maxBytes int64, values checker) ([]byte, error) {
	if resp.ContentLength > maxBytes {
		return nil, tooLong(resp, maxBytes)
	}
	var body []byte
	// the caller may keep a small answer, and with it the whole buffer
	if n := resp.ContentLength; n < 0 || n >= minBuffer {
		body = pooledBuffer()
	}
	if n := resp.ContentLength; n > 0 && n <= maxTrustedLength {
		body = slices.Grow(body, int(n)+1) // one byte more, so that the read that finds the end needs no new buffer
	}
	limited := io.LimitReader(r, maxBytes+1)
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, max(len(body), minBuffer))
		}
		n, err := limited.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err := values.check(body); err != nil {
			return body, err
		}
		switch {
		case int64(len(body)) > maxBytes:
			return body, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, maxBytes)
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		}
	}
}

// bufferPool keeps the buffers of answers that are no longer needed. Pages have some MB, and allocating each costs more
// than reading it.
var bufferPool sync.Pool

// pooledBuffer returns an empty buffer, with capacity if the pool has one.
func pooledBuffer() []byte {
	if kept, ok := bufferPool.Get().(*[]byte); ok {
		return (*kept)[:0]
	}
	return nil
}

// Release makes the memory of an answer's body available to later answers. Nothing may share it any more. Calling it is
// optional.
func Release(body []byte) {
	if cap(body) >= minBuffer && cap(body) <= maxPooled {
		bufferPool.Put(&body)
	}
}

// transportError removes the URL from an error of net/http, distinguishes a silent server from a caller that gave up,
// and explains errors of certificates.
func (c *Client) transportError(caller, within context.Context, r Request, err error) error {
	if caller.Err() != nil {
		return caller.Err()
	}
	switch cause := context.Cause(within); {
	case errors.Is(cause, ErrSilent), errors.Is(cause, ErrSlow):
		return cause
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if text := err.Error(); c.access.Redact(text) != text {
		return errors.New(c.access.Redact(text))
	}
	err = c.access.Explain(err)
	if text := err.Error(); len(text) > maxErrorText {
		return errors.New(access.Excerpt(text)) // net/http quotes all of an answer that is not HTTP
	}
	return err
}

// timedReader restarts the silence timer with the first byte, and whenever leastProgress has come.
type timedReader struct {
	r       io.Reader
	silence *time.Timer
	timeout time.Duration
	begun   bool
	came    atomic.Int64 // bytes since the timer was restarted
}

func (t *timedReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if came := t.came.Add(int64(n)); came >= leastProgress || n > 0 && !t.begun {
		t.begun = true
		t.came.Store(0)
		t.silence.Reset(t.timeout)
	}
	return n, err
}

// late returns what the silence timer has found.
func (t *timedReader) late() error {
	if n := t.came.Load(); n > 0 {
		return fmt.Errorf("%w: %d bytes within %v", ErrSlow, n, t.timeout)
	}
	return fmt.Errorf("%w for %v", ErrSilent, t.timeout)
}

// mediaType is what a request asks for.
type mediaType struct {
	name  string // content type
	is    func(contentType string) bool
	limit func(maxBytes int64) checker
}

type checker interface{ check(body []byte) error }

func contentOf(r Request) mediaType {
	if r.Binary {
		return mediaType{"application/octet-stream", isBytes, func(int64) checker { return unchecked{} }}
	}
	return mediaType{"application/json", isJSON, func(maxBytes int64) checker { return newValueLimit(maxBytes) }}
}

type unchecked struct{}

func (unchecked) check([]byte) error { return nil }

func isBytes(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && kind == "application/octet-stream"
}

// isJSON accepts an answer without a content type: interface.md does not promise one.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// clean returns the beginning of a text received from outside, without secrets.
func (c *Client) clean(text string) string { return access.Excerpt(c.access.Redact(text)) }
