package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// answer describes the form of an answer, so that the error for one that can't be decoded can name the wrong element.
type answer struct {
	levels int    // 0: the answer is one element, 1: a list of elements, 2: a page with a list
	list   string // the member of a page that is the list
	plain  bool   // paths are kept as they are, without leaving out wrappers (update, contractEntry, value)
}

// explain returns the error for a refused body. It reads the body again with jsontext, whose error, if any, is
// returned. Else the error names the element at the position that the member tables refused.
func explain(body []byte, form answer, wrong refusal) *DecodeError {
	// A lone surrogate is legal in a payload, but the library counts it as invalid UTF-8. If the body's bytes are valid
	// UTF-8, the option therefore allows surrogates only.
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(utf8.Valid(body)))
	refused := whole(errors.New("is not what is expected"))
	begun, found := 0, wrong.err == nil // begun is the beginning of the element
	for {
		if form.levels > 0 && dec.StackDepth() == form.levels {
			begun = int(dec.InputOffset())
		}
		if _, err := dec.ReadToken(); err != nil {
			e := form.syntax(dec, err)
			form.identify(body[begun:], e)
			return e
		}
		if !found && int(dec.InputOffset()) > wrong.at {
			found = true
			refused = form.place(dec.StackPointer(), wrong.field)
			refused.Err = wrong.err
			form.identify(body[begun:], refused)
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	end := dec.InputOffset()
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return whole(fmt.Errorf("something follows the end of the JSON at byte %d", end))
	}
	return refused
}

// whole returns an error about the response as a whole.
func whole(err error) *DecodeError { return &DecodeError{Element: -1, Err: err} }

func (a answer) syntax(dec *jsontext.Decoder, err error) *DecodeError {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return whole(fmt.Errorf("the body is empty: %w", io.ErrUnexpectedEOF))
	}
	e := a.place(syntactic.JSONPointer, "")
	kind, n := dec.StackIndex(dec.StackDepth())
	if betweenElements := e.Element < 0 && e.Field == a.list; betweenElements && dec.StackDepth() == a.levels &&
		kind == '[' {
		e.Element, e.Field = int(n), ""
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = fmt.Errorf("the JSON is cut off at byte %d: %w", syntactic.ByteOffset, syntactic.Err)
	case strings.HasSuffix(syntactic.Err.Error(), "exceeded max depth"): // the library's error has no name
		e.Err = fmt.Errorf("more than %d lists and objects stand within each other at byte %d: %w",
			maxDepth, syntactic.ByteOffset, syntactic.Err)
	case errors.Is(err, jsontext.ErrDuplicateName):
		e.Err = fmt.Errorf("a member of this name stands twice in the object: %w", syntactic.Err)
	default:
		e.Err = fmt.Errorf("not valid JSON at byte %d: %w", syntactic.ByteOffset, syntactic.Err)
	}
	return e
}

// place returns an error with the element that a pointer leads into, and with the path of a field within it, without
// wrappers.
func (a answer) place(pointer jsontext.Pointer, field string) *DecodeError {
	e := whole(nil)
	steps := slices.Collect(pointer.Tokens())
	if a.levels > 0 && len(steps) >= a.levels && (a.levels == 1 || steps[0] == a.list) {
		if n, err := strconv.Atoi(steps[a.levels-1]); err == nil {
			e.Element, steps = n, steps[a.levels:]
		}
	}
	if field != "" {
		steps = append(steps, field)
	}
	var path strings.Builder
	for level, step := range steps {
		isWrapper := level == 0 && (step == "update" || step == "contractEntry") || level == 2 && step == "value"
		if a.plain || !isWrapper || level == len(steps)-1 {
			writeStep(&path, step)
		}
	}
	e.Field = path.String()
	return e
}

func writeStep(path *strings.Builder, step string) {
	switch {
	case step != "" && strings.Trim(step, "0123456789") == "":
		path.WriteString("[" + step + "]")
	case step == "" || strings.ContainsFunc(step, func(c rune) bool { return !isNameRune(c) }):
		path.WriteString("[" + strconv.Quote(step) + "]")
	default:
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(step)
	}
}

func isNameRune(c rune) bool {
	return c == '_' || c == '$' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// identify adds to an error the offset of the update that the element is, or its id. The element's text may be cut off
// or invalid.
func (a answer) identify(text []byte, e *DecodeError) {
	if e.Element < 0 && a.levels > 0 {
		return
	}
	text = bytes.TrimLeft(text, ", \t\r\n") // separators between elements
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for dec.StackDepth() > 0 || dec.InputOffset() == 0 && dec.PeekKind() == '{' {
		token, err := dec.ReadToken() // a brace, or a name
		if err != nil {
			return
		}
		if token.Kind() != '"' {
			continue
		}
		// the update's variant, and that one's value
		level, name := dec.StackDepth()-1, token.String()
		if dec.PeekKind() == '{' && (level == 0 && name == "update" || level == 1 || level == 2 && name == "value") {
			continue
		}
		value, err := dec.ReadValue()
		switch {
		case err != nil:
			return
		case level > 1 && name == "offset" && e.Offset == 0:
			if offset, err := strconv.ParseInt(string(value), 10, 64); err == nil && offset > 0 {
				e.Offset = Offset(offset)
			}
		case level == 0 && name == "event_id" && value.Kind() == '"' && e.EventID == "":
			e.EventID = string(unquoted(value))
		case level == 0 && name == "update_id" && value.Kind() == '"' && e.UpdateID == "":
			e.UpdateID = string(unquoted(value))
		}
	}
}
