package jsonhttp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// NotJSONError is an answer of success that is no JSON: a proxy's page, or what was damaged on the way. Whoever is to answer
// did not say that, so it can be asked for again, unless the same comes again and again.
type NotJSONError struct {
	Asked string // method and path
	What  string // what came instead
	Begin string // of the answer, without secrets
	// Stays says that all tries for [SameBytes] brought the very same bytes.
	Stays bool
}

func (e *NotJSONError) Error() string { return e.What }

// Is tells it as ErrNotJSON.
func (e *NotJSONError) Is(target error) bool { return target == ErrNotJSON }

// Unusable says why an answer that could not be decoded is no JSON: an error around ErrCutOff where it has no end, because
// somebody on the way cut it and did not say so; a *NotJSONError where it is something else. Whatever else is wrong the
// server meant: nil.
func (c *Client) Unusable(a Answer) error {
	err := syntax(a.Body)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("%w after %d bytes: the JSON has no end", ErrCutOff, len(a.Body))
	}
	what := fmt.Sprintf("the answer is no JSON, though its content type is %q", c.clean(a.ContentType))
	var at *jsontext.SyntacticError
	if errors.As(err, &at) {
		what += fmt.Sprintf(", at byte %d", at.ByteOffset)
		if at.JSONPointer != "" {
			what += " in " + c.clean(string(at.JSONPointer))
		}
		err = at.Err
	}
	return c.notJSON(a, what+": "+c.clean(err.Error()))
}

// syntax says what keeps a text from being JSON. Names that come twice don't, nor does half of a surrogate pair as an
// escape, nor nesting without end: decoders judge these, and can say where.
func syntax(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := d.SkipValue(); err != nil {
		if strings.Contains(err.Error(), "exceeded max depth") {
			return nil
		}
		return err
	}
	end := d.InputOffset()
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more follows after its end at byte %d", end)
	}
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	return nil
}

// notJSON is the error of an answer that is no JSON. It is noted and counted.
func (c *Client) notJSON(a Answer, what string) error {
	if c.cfg.NotJSON != nil {
		c.cfg.NotJSON(a.operation)
	}
	stays := false
	for _, key := range a.asked.keys() {
		stays = c.strange.met(key, a.Body) || stays
	}
	return &NotJSONError{
		Asked: a.asked.name(), What: what, Begin: c.clean(string(a.Body[:min(len(a.Body), errorBody)])), Stays: stays,
	}
}

// question is what was asked for, all of it.
type question struct{ method, path, query, body string }

// keys are what repetitions are kept by: the question, and its path. Where nothing comes of a path but the same bytes, the questions
// may differ, such as by the ledger's end.
func (q question) keys() [2]question { return [...]question{q, {method: q.method, path: q.path}} }

// name leaves out what may be long, or a secret.
func (q question) name() string { return q.method + " " + q.path }

// settle looks at what came of a request: anything but the same bytes ends the repetition of an answer that was no JSON.
func (c *Client) settle(a Answer, err error) {
	var noted *NotJSONError
	if errors.As(err, &noted) {
		return
	}
	for _, key := range a.asked.keys() {
		if err != nil || a.Status != http.StatusOK || !c.strange.same(key, a.Body) {
			c.strange.forget(key)
		}
	}
}

// repetitions are the answers that were no JSON, by what was asked for.
type repetitions struct {
	mu   sync.Mutex
	seen map[question]repetition
}

type repetition struct {
	bytes       [sha256.Size]byte
	since, last time.Time
}

// met notes what came, and says whether it is all that has come for SameBytes.
func (r *repetitions) met(q question, body []byte) (stays bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	// What is not asked for any more is of no interest; who waits for as long as the same has come asks once more.
	maps.DeleteFunc(r.seen, func(_ question, s repetition) bool { return now.Sub(s.last) > 2*SameBytes })
	s, ok := r.seen[q]
	if sum := sha256.Sum256(body); !ok || s.bytes != sum {
		s = repetition{bytes: sum, since: now}
	}
	s.last = now
	if r.seen == nil {
		r.seen = map[question]repetition{}
	}
	r.seen[q] = s
	return now.Sub(s.since) >= SameBytes
}

// same says whether it came before.
func (r *repetitions) same(q question, body []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.seen[q]
	return ok && s.bytes == sha256.Sum256(body)
}

func (r *repetitions) forget(q question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, q)
}
