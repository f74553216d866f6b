package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// errNotPlain is what a scanner says of all that it does not read, be it wrong or only rare.
var errNotPlain = errors.New("not plain JSON")

const (
	// scanDepth is how many lists and objects may stand within each other, for a scanner.
	scanDepth = 200
	// scanNames is how many members an object may have, for a scanner: each is compared with all before it.
	scanNames = 200
)

// scanner reads JSON in a third of the time that a jsontext.Decoder takes, and knows less: what it reads the decoder reads
// in the same way, and where it stops the decoder is asked (see decodeTwice). So it need not say what is wrong or where, and
// does without what is rare: escapes in the names of members, objects of very many members, deep nesting. All else is
// checked: the grammar, UTF-8, and that no object has two members of one name.
type scanner struct {
	text  []byte // valid UTF-8
	at    int    // behind what was read last
	open  []opened
	names []span // of the members of all objects that are open
}

// opened is a list or an object of which the end was not read.
type opened struct {
	object bool
	name   bool // of an object: a name was read, and its value comes next
	filled bool // not the first element or member comes next
	names  int  // where the object's names begin
}

// PeekKind is the kind of the next value, '}' or ']'; zero where it can't be read.
func (s *scanner) PeekKind() jsontext.Kind {
	at, err := s.next()
	if err != nil {
		return jsontext.KindInvalid
	}
	return jsontext.Value(s.text[at : at+1]).Kind()
}

// next finds the next value or name, behind what separates it from what was read last, or the end of a list or an object.
func (s *scanner) next() (int, error) {
	at := s.space(s.at)
	switch {
	case len(s.open) == 0 && at == len(s.text):
		return at, io.EOF
	case len(s.open) == 0:
		return at, nil
	case at == len(s.text):
		return at, errNotPlain
	}
	in, separator := &s.open[len(s.open)-1], byte(',')
	if in.name {
		separator = ':'
	} else if !in.filled || closes(s.text[at]) {
		return at, nil
	}
	if s.text[at] != separator {
		return at, errNotPlain
	}
	if at = s.space(at + 1); at == len(s.text) || closes(s.text[at]) {
		return at, errNotPlain
	}
	return at, nil
}

func closes(c byte) bool { return c == '}' || c == ']' }

// ReadToken reads the beginning or the end of a list or an object, a name, or a null.
func (s *scanner) ReadToken() (jsontext.Token, error) {
	at, err := s.next()
	if err != nil {
		return jsontext.Token{}, err
	}
	c := s.text[at]
	switch c {
	case '{', '[':
		if !s.mayHoldValue() || len(s.open) == scanDepth {
			return jsontext.Token{}, errNotPlain
		}
		s.open = append(s.open, opened{object: c == '{', names: len(s.names)})
		s.at = at + 1
		if c == '{' {
			return jsontext.BeginObject, nil
		}
		return jsontext.BeginArray, nil
	case '}', ']':
		if len(s.open) == 0 || s.open[len(s.open)-1].object != (c == '}') {
			return jsontext.Token{}, errNotPlain
		}
		s.names = s.names[:s.open[len(s.open)-1].names]
		s.open = s.open[:len(s.open)-1]
		s.took(at + 1)
		if c == '}' {
			return jsontext.EndObject, nil
		}
		return jsontext.EndArray, nil
	}
	value, err := s.ReadValue()
	switch {
	case err != nil:
		return jsontext.Token{}, err
	case c == 'n':
		return jsontext.Null, nil
	case c == '"' && bytes.IndexByte(value, '\\') < 0:
		return jsontext.String(string(value[1 : len(value)-1])), nil
	}
	return jsontext.Token{}, errNotPlain
}

// mayHoldValue tells whether a value may come next: not a name.
func (s *scanner) mayHoldValue() bool {
	return len(s.open) == 0 || !s.open[len(s.open)-1].object || s.open[len(s.open)-1].name
}

// took notes that a value was read up to at.
func (s *scanner) took(at int) {
	s.at = at
	if len(s.open) > 0 {
		in := &s.open[len(s.open)-1]
		in.filled, in.name = true, false
	}
}

// ReadValue reads a value, or the name of a member.
func (s *scanner) ReadValue() (jsontext.Value, error) {
	at, err := s.next()
	if err != nil {
		return nil, err
	}
	if !s.mayHoldValue() {
		in := &s.open[len(s.open)-1]
		end := s.name(at, in.names)
		if end < 0 {
			return nil, errNotPlain
		}
		s.at, in.name = end, true
		return s.text[at:end], nil
	}
	end := s.value(at, scanDepth-len(s.open))
	if end < 0 {
		return nil, errNotPlain
	}
	s.took(end)
	return s.text[at:end], nil
}

// SkipValue reads a value.
func (s *scanner) SkipValue() error {
	_, err := s.ReadValue()
	return err
}

// InputOffset is where what was read last ends.
func (s *scanner) InputOffset() int64 { return int64(s.at) }

// StackPointer says nothing: it is for errors, which the decoder finds again.
func (s *scanner) StackPointer() jsontext.Pointer { return "" }

// The methods below find the end of what begins at a place. It is negative where something else stands there.

// value is any value, in which lists and objects may stand within each other so many times.
func (s *scanner) value(at, depth int) int {
	if at >= len(s.text) {
		return -1
	}
	switch c := s.text[at]; {
	case c == '"':
		return s.string(at)
	case c == '{' && depth > 0:
		return s.object(at, depth)
	case c == '[' && depth > 0:
		return s.array(at, depth)
	case c == 't':
		return s.literal(at, "true")
	case c == 'f':
		return s.literal(at, "false")
	case c == 'n':
		return s.literal(at, "null")
	default:
		return s.number(at)
	}
}

func (s *scanner) object(at, depth int) int {
	names := len(s.names)
	if at = s.space(at + 1); at < len(s.text) && s.text[at] == '}' {
		return at + 1
	}
	for {
		if at = s.name(at, names); at < 0 {
			return -1
		}
		if at = s.space(at); at == len(s.text) || s.text[at] != ':' {
			return -1
		}
		if at = s.value(s.space(at+1), depth-1); at < 0 {
			return -1
		}
		if at = s.space(at); at == len(s.text) {
			return -1
		}
		switch s.text[at] {
		case ',':
			at = s.space(at + 1)
		case '}':
			s.names = s.names[:names]
			return at + 1
		default:
			return -1
		}
	}
}

func (s *scanner) array(at, depth int) int {
	if at = s.space(at + 1); at < len(s.text) && s.text[at] == ']' {
		return at + 1
	}
	for {
		if at = s.value(at, depth-1); at < 0 {
			return -1
		}
		if at = s.space(at); at == len(s.text) {
			return -1
		}
		switch s.text[at] {
		case ',':
			at = s.space(at + 1)
		case ']':
			return at + 1
		default:
			return -1
		}
	}
}

// name is the name of a member that none of the object's other names is like, which begin at first.
func (s *scanner) name(at, first int) int {
	if at >= len(s.text) || s.text[at] != '"' {
		return -1
	}
	end := s.string(at)
	if end < 0 || len(s.names)-first == scanNames {
		return -1
	}
	name := s.text[at:end]
	for _, other := range s.names[first:] {
		if other.to-other.from == len(name) && bytes.Equal(s.text[other.from:other.to], name) {
			return -1
		}
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		return -1
	}
	s.names = append(s.names, span{at, end})
	return end
}

// string is a text with its quotes. Half a surrogate pair is a matter of who wants the characters.
func (s *scanner) string(at int) int {
	for at++; ; {
		if at += plain(s.text[at:]); at == len(s.text) {
			return -1
		}
		switch c := s.text[at]; {
		case c == '"':
			return at + 1
		case c == '\\':
			length := escape(s.text[at:])
			if length == 0 {
				return -1
			}
			at += length
		case c < ' ':
			return -1
		default:
			at++
		}
	}
}

// plain is how many bytes at the head of a text are no quote, backslash or control character, or some fewer.
func plain(text []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(text)-n >= 8; n += 8 {
		// The highest bit of a byte becomes one where the byte is such a character; above it the others may be wrong.
		w := binary.LittleEndian.Uint64(text[n:])
		quote, backslash := w^'"'*ones, w^'\\'*ones
		found := ((w-' '*ones)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & high
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	return n
}

// escape is the length of the escape that a text begins with, zero where it is none.
func escape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) < 6 || bytes.ContainsFunc(text[2:6], func(c rune) bool { return !isHex(c) }) {
			return 0
		}
		return 6
	}
	return 0
}

func isHex(c rune) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func (s *scanner) number(at int) int {
	if at < len(s.text) && s.text[at] == '-' {
		at++
	}
	whole := s.digits(at)
	if whole == at || whole > at+1 && s.text[at] == '0' {
		return -1
	}
	at = whole
	if at < len(s.text) && s.text[at] == '.' {
		end := s.digits(at + 1)
		if end == at+1 {
			return -1
		}
		at = end
	}
	if at < len(s.text) && (s.text[at] == 'e' || s.text[at] == 'E') {
		at++
		if at < len(s.text) && (s.text[at] == '+' || s.text[at] == '-') {
			at++
		}
		end := s.digits(at)
		if end == at {
			return -1
		}
		at = end
	}
	return at
}

func (s *scanner) digits(at int) int {
	for at < len(s.text) && '0' <= s.text[at] && s.text[at] <= '9' {
		at++
	}
	return at
}

func (s *scanner) literal(at int, word string) int {
	if bytes.HasPrefix(s.text[at:], []byte(word)) {
		return at + len(word)
	}
	return -1
}

// space is where the next byte stands that is no white space.
func (s *scanner) space(at int) int {
	for at < len(s.text) && (s.text[at] == ' ' || s.text[at] == '\n' || s.text[at] == '\t' || s.text[at] == '\r') {
		at++
	}
	return at
}

// newScanning is the decoding of a body that is valid UTF-8 with a scanner.
func newScanning(body []byte) *decoding {
	return &decoding{reader: newReader(body), dec: &scanner{text: body}}
}

// decodeTwice decodes a body with a scanner, and if that fails for whatever reason, with a jsontext.Decoder: what is wrong
// and where, the second says.
func decodeTwice[T any](body []byte, decode func(*decoding) (T, error)) (T, error) {
	if utf8.Valid(body) {
		if value, err := decode(newScanning(body)); err == nil {
			return value, nil
		}
	}
	return decode(newDecoding(body))
}
