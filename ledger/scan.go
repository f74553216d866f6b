package ledger

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxDepth is how many lists and objects may stand within each other: the limit of the library, whose word this is.
	maxDepth = 10_000
	// plainDepth is how many of them are nothing unusual.
	plainDepth = 200
	// fewNames is up to how many names of an object each is compared with all before it.
	fewNames = 200
)

// scanner finds where JSON values end, in a third of the time that a jsontext.Decoder takes. It reads what the decoder reads, and
// nothing else: the grammar, that no object has two members of one name, and the depth are checked. It does not say what is
// wrong, or where.
//
// Its methods find the end of what begins at a place. It is negative where something else stands there.
type scanner struct {
	text    []byte // valid UTF-8
	depth   int    // how many lists and objects are open
	escapes int    // that were read
	unusual int    // escapes of what may be no character of a text, numbers that may have very many digits, and deep nesting
	// memberNames are those of all objects that are open, as far as they are needed. Where an object has more than fewNames, all
	// of its names stand in many, under the index at which they begin.
	memberNames []span
	many        map[int]map[string]bool
	unquoted    []byte // names with escapes, without them
}

// span is where a name stands: in the text, or below zero in what is unquoted.
type span struct{ from, to int }

// value is any value.
func (s *scanner) value(at int) int {
	if at >= len(s.text) {
		return -1
	}
	switch c := s.text[at]; c {
	case '"':
		return s.string(at)
	case '{':
		return s.object(at)
	case '[':
		return s.array(at)
	case 't':
		return s.literal(at, "true")
	case 'f':
		return s.literal(at, "false")
	case 'n':
		return s.literal(at, "null")
	default:
		return s.number(at)
	}
}

// enter counts a list or an object that begins, and tells whether it may.
func (s *scanner) enter() bool {
	if s.depth++; s.depth > plainDepth {
		s.unusual++
	}
	return s.depth <= maxDepth
}

// leave ends an object whose names begin at first.
func (s *scanner) leave(first int) {
	s.depth--
	s.memberNames = s.memberNames[:first]
	if len(s.many) > 0 {
		delete(s.many, first)
	}
}

// forget forgets the names of all objects that begin at first or behind it, which were not read to their ends.
func (s *scanner) forget(first int) {
	s.memberNames = s.memberNames[:first]
	maps.DeleteFunc(s.many, func(begin int, _ map[string]bool) bool { return begin >= first })
}

func (s *scanner) object(at int) int {
	if !s.enter() {
		return -1
	}
	names := len(s.memberNames)
	if at = s.space(at + 1); at < len(s.text) && s.text[at] == '}' {
		s.depth--
		return at + 1
	}
	for {
		if at = s.memberName(at, names); at < 0 {
			return -1
		}
		if at = s.space(at); at == len(s.text) || s.text[at] != ':' {
			return -1
		}
		if at = s.value(s.space(at + 1)); at < 0 {
			return -1
		}
		if at = s.space(at); at == len(s.text) {
			return -1
		}
		switch s.text[at] {
		case ',':
			at = s.space(at + 1)
		case '}':
			s.leave(names)
			return at + 1
		default:
			return -1
		}
	}
}

func (s *scanner) array(at int) int {
	if !s.enter() {
		return -1
	}
	if at = s.space(at + 1); at < len(s.text) && s.text[at] == ']' {
		s.depth--
		return at + 1
	}
	for {
		if at = s.value(at); at < 0 {
			return -1
		}
		if at = s.space(at); at == len(s.text) {
			return -1
		}
		switch s.text[at] {
		case ',':
			at = s.space(at + 1)
		case ']':
			s.depth--
			return at + 1
		default:
			return -1
		}
	}
}

// memberName is the name of a member that none of the object's other names is like, which begin at first.
func (s *scanner) memberName(at, first int) int {
	if at >= len(s.text) || s.text[at] != '"' {
		return -1
	}
	escapes := s.escapes
	end := s.string(at)
	if end < 0 {
		return -1
	}
	name, place := s.text[at+1:end-1], span{at + 1, end - 1}
	if s.escapes != escapes {
		name = unquoted(s.text[at:end])
		place = span{-len(s.unquoted) - 1, -len(s.unquoted) - 1 + len(name)}
		s.unquoted = append(s.unquoted, name...)
	}
	if len(s.memberNames)-first == fewNames {
		if !s.isNewOfMany(name, first) {
			return -1
		}
		return end
	}
	for _, other := range s.memberNames[first:] {
		if other.to-other.from == len(name) && bytes.Equal(s.nameAt(other), name) {
			return -1
		}
	}
	s.memberNames = append(s.memberNames, place)
	return end
}

// nameAt is a name without its quotes and escapes.
func (s *scanner) nameAt(place span) []byte {
	if place.from < 0 {
		return s.unquoted[-place.from-1 : -place.from-1+place.to-place.from]
	}
	return s.text[place.from:place.to]
}

// unquoted is a text without its quotes and escapes. Half of a surrogate pair becomes U+FFFD: that is what names are compared by.
func unquoted(text []byte) []byte {
	plain, _ := jsontext.AppendUnquote(nil, text) // the error is that of such halves
	return plain
}

// isNewOfMany tells whether none of the names of an object, which has many, is like this one, and adds it to them.
func (s *scanner) isNewOfMany(name []byte, first int) bool {
	all := s.many[first]
	if all == nil {
		all = make(map[string]bool, 2*fewNames)
		for _, other := range s.memberNames[first:] {
			all[string(s.nameAt(other))] = true
		}
		if s.many == nil {
			s.many = map[int]map[string]bool{}
		}
		s.many[first] = all
	}
	isNew := !all[string(name)]
	all[string(name)] = true
	return isNew
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
