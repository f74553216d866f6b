package ledger

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	// scanDepth is how many lists and objects may stand within each other, for a scanner.
	scanDepth = 200
	// scanNames is how many members an object may have, for a scanner: each is compared with all before it.
	scanNames = 200
)

// scanner finds where JSON values end, in a third of the time that a jsontext.Decoder takes, and knows less: what it reads
// the decoder reads in the same way, and where it stops the decoder is asked. So it need not say what is wrong or where, and
// does without what is rare: escapes in the names of members, objects of very many members, deep nesting. All else is
// checked: the grammar, and that no object has two members of one name.
//
// Its methods find the end of what begins at a place. It is negative where something else stands there.
type scanner struct {
	text    []byte // valid UTF-8
	names   []span // of the members of all objects that are open, as far as they are needed
	escapes int    // that were read
	unusual int    // escapes of what may be no character of a text, and numbers that may have very many digits
}

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
	escapes := s.escapes
	end := s.string(at)
	if end < 0 || s.escapes != escapes || len(s.names)-first == scanNames {
		return -1
	}
	name := s.text[at:end]
	for _, other := range s.names[first:] {
		if other.to-other.from == len(name) && bytes.Equal(s.text[other.from:other.to], name) {
			return -1
		}
	}
	s.names = append(s.names, span{at, end})
	return end
}

// string is a text with its quotes. Half a surrogate pair is a matter of who wants the characters.
func (s *scanner) string(at int) int {
	for at++; ; {
		if at = plain(s.text, at); at == len(s.text) {
			return -1
		}
		switch c := s.text[at]; {
		case c == '"':
			return at + 1
		case c == '\\':
			s.escapes++
			length := escape(s.text[at:])
			if length == 0 {
				return -1
			}
			if length == unicodeEscape && mayBeNoCharacter(s.text[at+2:at+length]) {
				s.unusual++
			}
			at += length
		case c < ' ':
			return -1
		default:
			at++
		}
	}
}

// plain is where the bytes of a text that are no quote, backslash or control character end from a place on, or some bytes before.
func plain(text []byte, at int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(text); at += 8 {
		// The highest bit of a byte becomes one where the byte is such a character; above it the others may be wrong. Turning
		// their second bit over leaves control characters what they are, and moves the quote next to them, where a space was.
		w := binary.LittleEndian.Uint64(text[at : at+8])
		control, backslash := (w^2*ones)-(' '+1)*ones, (w^'\\'*ones)-ones
		if found := (control | backslash) &^ w & high; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	return at
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
		return unicodeEscape
	}
	return 0
}

// unicodeEscape is the length of an escape of a character by its number.
const unicodeEscape = len(`\u0000`)

// mayBeNoCharacter tells whether four hexadecimal digits are those of a NUL, or of a surrogate, as are those of some characters.
func mayBeNoCharacter(digits []byte) bool {
	return string(digits) == "0000" || digits[0]|0x20 == 'd'
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
	begun, exponent := at, false
	at = whole
	if at < len(s.text) && s.text[at] == '.' {
		end := s.digits(at + 1)
		if end == at+1 {
			return -1
		}
		at = end
	}
	if at < len(s.text) && (s.text[at] == 'e' || s.text[at] == 'E') {
		exponent = true
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
	// What has an exponent of less than five digits has less than 16,000 in all.
	if at-begun > 5_000 || exponent && at-begun > 6 {
		s.unusual++
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
	for at < len(s.text) && isSpace(s.text[at]) {
		at++
	}
	return at
}

func isSpace(c byte) bool {
	const spaces = 1<<' ' | 1<<'\n' | 1<<'\t' | 1<<'\r'
	return c <= ' ' && uint64(spaces)>>c&1 != 0
}
