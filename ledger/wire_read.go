package ledger

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// source is JSON that is read piece by piece: a [jsontext.Decoder], whose methods these are, or a scanner.
type source interface {
	PeekKind() jsontext.Kind
	ReadToken() (jsontext.Token, error)
	ReadValue() (jsontext.Value, error)
	SkipValue() error
	InputOffset() int64
	StackPointer() jsontext.Pointer
}

// wireValue is what a value is read into. A null is an absent value, a list that is there is not nil, and the first value of
// another kind than expected stops.
type wireValue interface{ readFrom(from source) error }

// wireObject is a struct into which an object is read.
type wireObject interface {
	// member is what the value of a member is read into; nil where the struct has none of that name.
	member(name []byte) wireValue
}

// readObject reads an object. The members that it does not know are put together in unknown.
func readObject(from source, object wireObject, unknown *jsontext.Value) error {
	start, err := from.ReadToken()
	switch {
	case err != nil:
		return err
	case start.Kind() == 'n':
		return nil
	case start.Kind() != '{':
		return mismatch(from, start.Kind(), "an object")
	}
	for from.PeekKind() != '}' {
		quoted, err := from.ReadValue()
		if err != nil {
			return err
		}
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name, _ = jsontext.AppendUnquote(nil, quoted) // what is wrong with it has a stand-in, which is no known name
		}
		if value := object.member(name); value != nil {
			err = value.readFrom(from)
		} else {
			err = readUnknown(from, quoted, unknown)
		}
		if err != nil {
			return err
		}
	}
	_, err = from.ReadToken()
	return err
}

// readUnknown reads the value of a member, and adds both to an object.
func readUnknown(from source, name jsontext.Value, to *jsontext.Value) error {
	object := *to
	if object == nil {
		object = append(object, '{')
	} else {
		object[len(object)-1] = ','
	}
	object = append(append(object, name...), ':')
	value, err := from.ReadValue()
	*to = append(append(object, value...), '}')
	return err
}

// repeated is what a list is read into. Pointers to its elements are wire values.
func repeated[T any](to *[]T) wireValue { return wireList[T]{to} }

type wireList[T any] struct{ to *[]T }

func (l wireList[T]) readFrom(from source) error {
	start, err := from.ReadToken()
	switch {
	case err != nil:
		return err
	case start.Kind() == 'n':
		return nil
	case start.Kind() != '[':
		return mismatch(from, start.Kind(), "an array")
	}
	elements := []T{}
	for from.PeekKind() != ']' {
		if len(elements) == 0 {
			elements = make([]T, 0, 2) // most have no more
		}
		elements = append(elements, *new(T))
		if err := any(&elements[len(elements)-1]).(wireValue).readFrom(from); err != nil {
			return err
		}
	}
	*l.to = elements
	_, err = from.ReadToken()
	return err
}

// optional is what an object is read into that may be left out. The pointer is a wire value.
func optional[T any](to **T) wireValue { return wireOptional[T]{to} }

type wireOptional[T any] struct{ to **T }

func (o wireOptional[T]) readFrom(from source) error {
	if from.PeekKind() == 'n' {
		return from.SkipValue()
	}
	*o.to = new(T)
	return any(*o.to).(wireValue).readFrom(from)
}

// mismatch is the error about the token that was read last.
func mismatch(from source, kind jsontext.Kind, want string) error {
	return &json.SemanticError{JSONPointer: from.StackPointer(), JSONKind: kind, Err: fmt.Errorf("is %s where %s is expected", kindName(kind), want)}
}
