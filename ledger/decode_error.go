package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fieldError is an error about a field below an element. Each level that passes it on puts its own name before.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }

// below says that err, which may name a field, was found in the field called name.
func below(name string, err error) error {
	if err == nil {
		return nil
	}
	var inner *fieldError
	switch {
	case !errors.As(err, &inner):
		return &fieldError{name, err}
	case inner.field == "": // an item of a list
		return &fieldError{name, inner.err}
	default:
		return &fieldError{name + "." + inner.field, inner.err}
	}
}

// whole is an error about the response as such.
func whole(err error) *DecodeError { return &DecodeError{Element: -1, Err: err} }

// inElement is an error found while an element's values were read.
func inElement(element int, offset Offset, err error) *DecodeError {
	var inner *fieldError
	if errors.As(err, &inner) {
		return &DecodeError{Element: element, Offset: offset, Field: inner.field, Err: inner.err}
	}
	return &DecodeError{Element: element, Offset: offset, Err: err}
}

// inRecord is an error found while the values of a history record were read.
func inRecord(element int, eventID string, err error) *DecodeError {
	e := inElement(element, 0, err)
	e.EventID = eventID
	return e
}

// fromJSON translates an error of the JSON library. The first levels of its pointer lead to the element.
func fromJSON(err error, element int, offset Offset, levels int) *DecodeError {
	pointer, err := explain(err)
	return &DecodeError{Element: element, Offset: offset, Field: fieldPath(pointer, levels, isWrapper), Err: err}
}

// recordFromJSON translates an error that the JSON library found in a history record.
func recordFromJSON(err error, element int, eventID string) *DecodeError {
	const levels = 2 // transactions, and the record's index
	pointer, err := explain(err)
	return &DecodeError{Element: element, EventID: eventID, Field: fieldPath(pointer, levels, nil), Err: err}
}

// explain says in a sentence what the JSON library found, and where.
func explain(err error) (jsontext.Pointer, error) {
	var pointer jsontext.Pointer
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntactic):
		pointer = syntactic.JSONPointer
		err = syntaxSentence(syntactic)
	case errors.As(err, &semantic):
		pointer = semantic.JSONPointer
		err = mismatchSentence(semantic)
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("the body is empty: %w", io.ErrUnexpectedEOF)
	}
	return pointer, err
}

// maxDepth is how many lists and objects may stand within each other: the limit of the JSON library, whose callers recurse.
const maxDepth = 10_000

func syntaxSentence(err *jsontext.SyntacticError) error {
	switch {
	case errors.Is(err.Err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the JSON is cut off at byte %d: %w", err.ByteOffset, err.Err)
	case strings.HasSuffix(err.Err.Error(), "exceeded max depth"): // the library's error has no name
		return fmt.Errorf("more than %d lists and objects stand within each other at byte %d: %w", maxDepth, err.ByteOffset, err.Err)
	case errors.Is(err.Err, jsontext.ErrDuplicateName):
		return fmt.Errorf("a member of this name stands twice in the object: %w", err.Err)
	default:
		return fmt.Errorf("not valid JSON at byte %d: %w", err.ByteOffset, err.Err)
	}
}

func mismatchSentence(err *json.SemanticError) error {
	if err.Err != nil {
		return err.Err
	}
	want := "an object"
	if err.GoType != nil && err.GoType.Kind() == reflect.Slice {
		want = "an array"
	}
	return fmt.Errorf("is %s where %s is expected", kindName(err.JSONKind), want)
}

// kindName is what an error calls a JSON value of the kind.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "not JSON"
	}
}

// fieldPath writes a pointer as the path of a field below the element: without the levels that lead to it and, unless
// isWrapper is nil, without the wrappers that every element has.
func fieldPath(pointer jsontext.Pointer, levels int, isWrapper func(level int, token string) bool) string {
	var path strings.Builder
	level := -levels
	for token := range pointer.Tokens() {
		if level >= 0 && (isWrapper == nil || !isWrapper(level, token)) {
			writeStep(&path, token)
		}
		level++
	}
	return path.String()
}

// isWrapper tells whether a member is one that every update or every entry of a snapshot has around its own.
func isWrapper(level int, token string) bool {
	return level == 0 && (token == "update" || token == "contractEntry") || level == 2 && token == "value"
}

func writeStep(path *strings.Builder, token string) {
	switch {
	case token != "" && strings.Trim(token, "0123456789") == "":
		path.WriteString("[" + token + "]")
	case token == "" || strings.ContainsFunc(token, func(c rune) bool { return !isNameRune(c) }):
		path.WriteString("[" + strconv.Quote(token) + "]")
	default:
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(token)
	}
}

func isNameRune(c rune) bool {
	return c == '_' || c == '$' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// separators is what stands between two elements of a list.
const separators = ", \t\r\n"

// findOffset looks for the offset of an update whose element starts at the head of text and could not be decoded:
// the element may be cut off or hold anything. It is 0 where no offset can be read.
func findOffset(text []byte) Offset {
	return findOffsetBelow(looseDecoder(text), 0)
}

// looseDecoder reads on from behind an element of a list, as far as anything can be read.
func looseDecoder(text []byte) *jsontext.Decoder {
	text = bytes.TrimLeft(text, separators)
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// findOffsetBelow reads the object that comes next: level 0 is the element, 1 the update, 2 the variant, 3 its
// value.
func findOffsetBelow(dec *jsontext.Decoder, level int) Offset {
	if start, err := dec.ReadToken(); err != nil || start.Kind() != '{' {
		return 0
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return 0
		}
		name := token.String()
		enter := level == 0 && name == "update" || level == 1 || level == 2 && name == "value"
		switch {
		case enter && dec.PeekKind() == '{':
			if offset := findOffsetBelow(dec, level+1); offset > 0 {
				return offset
			}
		case level >= 2 && name == "offset":
			value, err := dec.ReadValue()
			if err != nil {
				return 0
			}
			offset, err := strconv.ParseInt(string(value), 10, 64)
			if err == nil && offset > 0 {
				return Offset(offset)
			}
		default:
			if err := dec.SkipValue(); err != nil {
				return 0
			}
		}
	}
	_, _ = dec.ReadToken() // the object's end; what is wrong with it the caller's next read meets again
	return 0
}

// findEventID looks for the event id of a history record that starts at the head of text and could not be decoded. It is
// empty where none can be read.
func findEventID(text []byte) string {
	dec := looseDecoder(text)
	if start, err := dec.ReadToken(); err != nil || start.Kind() != '{' {
		return ""
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		if name.String() == "event_id" && dec.PeekKind() == '"' {
			id, err := dec.ReadToken()
			if err != nil {
				return ""
			}
			return id.String()
		}
		if err := dec.SkipValue(); err != nil {
			return ""
		}
	}
	return ""
}
