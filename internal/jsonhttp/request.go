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
	"time"

	"github.com/go-json-experiment/json"

	"ledgerindexer/internal/access"
)

// Request is one HTTP request.
type Request struct {
	Operation string // as told to Config.Observe
	Path      string
	Query     url.Values
	Body      any           // marshalled to JSON and sent by POST; nil: GET
	Most      int64         // the largest answer that is read, in bytes of JSON
	Silence   time.Duration // how long nothing may come
	Longest   time.Duration // how long all of it may take; 0: the constant of that name
	LongPoll  bool          // the server waits for something to happen; see Config.Pace
}

// Answer is what came, as far as something did.
type Answer struct {
	Status      int           // HTTP status; 0: no answer
	ContentType string        // as the server says; may be empty
	RetryAfter  time.Duration // how long the server asks to wait; 0: it does not say
	Location    string        // where it redirects to, without the query and without secrets; empty: nowhere
	Bytes       int64         // how many came, of what is to be read
	Token       string        // that was sent; a secret
	// Body is the whole answer where the request succeeded; see [Release]. Of an answer that is no success or no JSON it is the beginning,
	// from which secrets are not taken out; of a redirect nothing.
	Body []byte

	operation string
	asked     question
}

// Do sends a request and reads the answer. What it returns without an error is an answer that is no success, or one that
// is whole JSON as far as length and content type can tell. A token that the server refuses is replaced once, and the
// request sent again.
//
// The error is a *NotJSONError where the content type is that of something else: see also [Client.Unusable]. Others say why there is no token, no answer, or none that can be used; with the answer of a server that refused a
// token, why there is no other one. They hold no secrets.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	a, err := c.authorized(ctx, r)
	if ctx.Err() == nil {
		c.settle(a, err)
	}
	return a, err
}

func (c *Client) authorized(ctx context.Context, r Request) (Answer, error) {
	token, err := c.access.Token(ctx)
	if err != nil {
		return Answer{}, err
	}
	a, err := c.send(ctx, r, token)
	if token == "" || err != nil || a.Status == http.StatusOK || !c.cfg.Refused(a) {
		return a, err
	}
	fresh, err := c.access.Renew(ctx, token)
	if fresh == "" {
		return a, err
	}
	return c.send(ctx, r, fresh)
}

// send does one round trip, notes whether there was an answer, and tells Observe of it.
func (c *Client) send(ctx context.Context, r Request, token string) (Answer, error) {
	done, err := c.cfg.Pace.take(ctx, r.LongPoll)
	if err != nil {
		return Answer{Token: token}, err
	}
	defer done()
	start := time.Now()
	a, err := c.exchange(ctx, r, token)
	if a.Status != 0 {
		c.answered.Store(true)
	}
	if c.cfg.Observe != nil {
		c.cfg.Observe(r.Operation, a.Status, time.Since(start), a.Bytes)
	}
	return a, err
}

func (c *Client) exchange(ctx context.Context, r Request, token string) (Answer, error) {
	r.Longest = cmp.Or(r.Longest, Longest)
	inTime, stop := context.WithTimeoutCause(ctx, r.Longest, ErrSlow)
	defer stop()
	within, cancel := context.WithCancelCause(inTime)
	defer cancel(nil)
	watch := time.AfterFunc(r.Silence, func() { cancel(ErrSilent) })
	defer watch.Stop()

	a := Answer{Token: token, operation: r.Operation}
	req, asked, err := c.newRequest(within, r, token)
	if err != nil {
		return a, err
	}
	a.asked = asked
	resp, err := c.http.Do(req)
	if err != nil {
		return a, c.transportError(ctx, within, r, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read from; nothing is lost by an error here
	moving := &movingReader{r: resp.Body, watch: watch, silence: r.Silence}
	a.Status = resp.StatusCode
	a.ContentType = resp.Header.Get("Content-Type")
	if resp.StatusCode != http.StatusOK || !isJSON(a.ContentType) {
		// The status is what counts, or the type. An explanation that breaks off explains as much as came.
		a.Body, _ = io.ReadAll(io.LimitReader(moving, errorBody))
		a.Bytes = int64(len(a.Body))
		a.RetryAfter = access.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
		if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
			a.Location = c.clean(to.Scheme + "://" + to.Host + to.Path) // a query may hold secrets,
			a.Body = nil                                                // and the body repeats it
		}
		if resp.StatusCode != http.StatusOK {
			return a, nil
		}
		return a, c.notJSON(a, fmt.Sprintf("the answer has content type %q instead of application/json; is %s the base of the JSON API?",
			c.clean(a.ContentType), c.access.Flag("url")))
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return a, fmt.Errorf("the answer comes encoded as %q, which was not asked for; see what stands between here and %s",
			c.clean(encoding), c.access.Flag("url"))
	}
	body, err := readBody(resp, moving, r.Most)
	a.Bytes = int64(len(body))
	switch {
	case errors.Is(err, ErrTooLarge):
		return a, err
	case err != nil:
		return a, fmt.Errorf("%w after %d bytes: %w", ErrCutOff, len(body), c.transportError(ctx, within, r, err))
	}
	a.Body = body
	return a, nil
}

// newRequest makes the request, and says what it asks for.
func (c *Client) newRequest(ctx context.Context, r Request, token string) (*http.Request, question, error) {
	target := c.base.JoinPath(r.Path)
	target.RawQuery = r.Query.Encode()
	asked := question{method: http.MethodGet, query: target.RawQuery}
	content := io.Reader(nil)
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return nil, asked, err
		}
		asked.method, asked.body, content = http.MethodPost, string(text), bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, asked.method, target.String(), content)
	if err != nil {
		return nil, asked, err
	}
	asked.path = req.URL.Path
	if r.Body != nil {
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
	return req, asked, nil
}

// readBody reads an answer up to so many bytes, and up to as many values as go with that.
func readBody(resp *http.Response, r io.Reader, most int64) ([]byte, error) {
	if resp.ContentLength > most {
		return nil, fmt.Errorf("%w: its %d bytes are more than the %d that are read of it", ErrTooLarge, resp.ContentLength, most)
	}
	var body []byte
	if n := resp.ContentLength; n < 0 || n >= leastRoom { // a small answer may be kept, and with it all of its room
		body = room()
	}
	if n := resp.ContentLength; n > 0 && n <= trustedLength {
		body = slices.Grow(body, int(n)+1) // one more, or the end would be looked for in more room
	}
	limited, values := io.LimitReader(r, most+1), newMeter(most)
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, max(len(body), leastRoom))
		}
		n, err := limited.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err := values.check(body); err != nil {
			return body, err
		}
		switch {
		case int64(len(body)) > most:
			return body, fmt.Errorf("%w: more than the %d bytes that are read of it", ErrTooLarge, most)
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		}
	}
}

// rooms are those of answers that nobody needs any more: pages have some MB, and new memory for each costs more than to
// read it. The garbage collector empties it.
var rooms sync.Pool

// room is an empty body, which may have room.
func room() []byte {
	if kept, ok := rooms.Get().(*[]byte); ok {
		return (*kept)[:0]
	}
	return nil
}

// Release takes the body of an answer back, so that answers to come can be read into its memory, unless it is too small to be of
// use: nothing may share it any more. It need not be called.
func Release(body []byte) {
	if cap(body) >= leastRoom && cap(body) <= mostKept {
		rooms.Put(&body)
	}
}

// transportError leaves out what net/http says about the URL, tells a silent server from a caller who is done, and
// says what is wrong with certificates.
func (c *Client) transportError(caller, within context.Context, r Request, err error) error {
	if caller.Err() != nil {
		return caller.Err()
	}
	switch cause := context.Cause(within); {
	case errors.Is(cause, ErrSilent):
		return fmt.Errorf("%w for %v", ErrSilent, r.Silence)
	case errors.Is(cause, ErrSlow):
		return fmt.Errorf("%w: it took more than %v for an answer", ErrSlow, r.Longest)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if text := err.Error(); c.access.Redact(text) != text {
		return errors.New(c.access.Redact(text))
	}
	err = c.access.Explain(err)
	if text := err.Error(); len(text) > longestError {
		return errors.New(access.Excerpt(text)) // net/http quotes what is no HTTP, all of it
	}
	return err
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

// clean is the beginning of a text from outside, without secrets.
func (c *Client) clean(text string) string { return access.Excerpt(c.access.Redact(text)) }
