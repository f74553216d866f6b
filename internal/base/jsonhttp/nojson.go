package jsonhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// NotJSONError is an answer with status 200 that is not JSON: a proxy's page, or damaged bytes. The server itself did
// not send it, so the request can be tried again, unless the server has never been reached.
type NotJSONError struct {
	Asked string // method and path
	What  string // what came instead
	Begin string // the beginning of the answer, without secrets
	First bool   // no usable answer came before
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
	c.usable.Add(-1) // it was taken for one
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
	return &NotJSONError{Asked: a.asked, What: what, Begin: c.clean(string(a.Body[:min(len(a.Body), errorBody)])),
		First: c.usable.Load() <= 0}
}
