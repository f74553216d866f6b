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

// NotJSONError is an answer with status 200 that is not JSON: a proxy's page, or damaged bytes. The server itself did
// not send it, so the request can be tried again, unless every try gets the same bytes.
type NotJSONError struct {
	Asked string // method and path
	What  string // what came instead
	Begin string // the beginning of the answer, without secrets
	// Stays means that all tries for [SameBytes] got exactly the same bytes.
	Stays bool
}

func (e *NotJSONError) Error() string { return e.What }

// Is makes it match ErrNotJSON.
func (e *NotJSONError) Is(target error) bool { return target == ErrNotJSON }

// Unusable explains why an answer that could not be decoded is not JSON. The error wraps ErrCutOff if the answer has no
// end: something between here and the server cut it silently. It is a *NotJSONError for other syntax errors, and nil if
// the answer is JSON: then it is what the server meant to send.
func (c *Client) Unusable(a Answer) error {
	err := syntax(a.Body)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("%w after %d bytes: the JSON has no end", ErrCutOff, len(a.Body))
	}
	what := fmt.Sprintf("the answer is not JSON, though its content type is %q", c.clean(a.ContentType))
	if at, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		what += fmt.Sprintf(", at byte %d", at.ByteOffset)
		if at.JSONPointer != "" {
			what += " in " + c.clean(string(at.JSONPointer))
		}
		err = at.Err
	}
	return c.notJSON(a, what+": "+c.clean(err.Error()))
}

// syntax returns why a text is not JSON. It allows duplicate names, half a surrogate pair as an escape, and any depth
// of nesting: decoders check these, and can say where.
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

// notJSON returns the error of an answer that is not JSON, and counts it.
func (c *Client) notJSON(a Answer, what string) error {
	if c.cfg.NotJSON != nil {
		c.cfg.NotJSON(a.operation)
	}
	stays := false
	for _, key := range a.asked.keys() {
		stays = c.notJSONs.record(key, a.Body) || stays
	}
	return &NotJSONError{
		Asked: a.asked.name(), What: what, Begin: c.clean(string(a.Body[:min(len(a.Body), errorBody)])), Stays: stays,
	}
}

// question is everything that a request asks for.
type question struct{ method, path, query, body string }

// keys returns the keys of repetitions: the whole question, and its path alone. Questions to a path that always answers
// the same bytes may differ, such as by the ledger end.
func (q question) keys() [2]question { return [...]question{q, {method: q.method, path: q.path}} }

// name is the question without the parts that may be long or secret.
func (q question) name() string { return q.method + " " + q.path }

// endRepetition forgets an earlier answer that was not JSON, unless the same bytes came again.
func (c *Client) endRepetition(a Answer, err error) {
	if _, ok := errors.AsType[*NotJSONError](err); ok {
		return
	}
	for _, key := range a.asked.keys() {
		if err != nil || a.Status != http.StatusOK || !c.notJSONs.same(key, a.Body) {
			c.notJSONs.forget(key)
		}
	}
}

// repetitions are the answers that were not JSON, by question.
type repetitions struct {
	mu   sync.Mutex
	seen map[question]repetition
}

type repetition struct {
	bytes       [sha256.Size]byte
	since, last time.Time
}

// record notes an answer, and reports whether only these bytes came for SameBytes.
func (r *repetitions) record(q question, body []byte) (stays bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	// Forget questions that are no longer asked. Backoff may wait as long as the bytes have repeated, hence the factor.
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

// same reports whether these bytes came before.
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
