package ledger

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits on the JSON that a jsonScanner accepts.
const (
	// maxDepth is the most nested lists and objects, which is jsontext's limit too.
	maxDepth = 10_000
	// plainDepth is the deepest nesting that does not count as unusual.
	plainDepth = 200
	// Up to fewNames names of an object are compared with one another; with more, a map is used.
	fewNames = 200
)

// jsonScanner finds where JSON values end, in a third of the time that a jsontext.Decoder takes. It accepts exactly
// what that decoder accepts: it checks the grammar, duplicate names and the depth. It does not say what is wrong, or
// where.
//
// Its methods take the position at which a value begins, and return the position at which it ends; a negative number if
// there is no such value.
type jsonScanner struct {
	text    []byte // valid UTF-8
	depth   int    // how many lists and objects are open
	escapes int    // how many escapes were read
	// how many things were read that jsonb might refuse: escapes that may be no character, long numbers, deep nesting
	unusual int
	// memberNames are the names in all open objects. The names of an object with more than fewNames are in many instead,
	// by the index at which they begin.
	memberNames []span
	many        map[int]map[string]bool
	unquoted    []byte // names with escapes, without them
}

// span is the position of a name: in text or, if negative, in unquoted.
type span struct{ from, to int }

func (s *jsonScanner) value(at int) int {
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

// enter counts a list or an object that begins. It reports whether the depth allows it.
func (s *jsonScanner) enter() bool {
	if s.depth++; s.depth > plainDepth {
		s.unusual++
	}
	return s.depth <= maxDepth
}

// leave ends an object whose names begin at first.
func (s *jsonScanner) leave(first int) {
	s.depth--
	s.memberNames = s.memberNames[:first]
	if len(s.many) > 0 {
		delete(s.many, first)
	}
}

// forget drops the names from first on, of objects that were not read to their ends.
func (s *jsonScanner) forget(first int) {
	s.memberNames = s.memberNames[:first]
	maps.DeleteFunc(s.many, func(begin int, _ map[string]bool) bool { return begin >= first })
}

func (s *jsonScanner) object(at int) int {
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

func (s *jsonScanner) array(at int) int {
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

// memberName reads the name of a member. It must differ from the object's other names, which begin at first.
func (s *jsonScanner) memberName(at, first int) int {
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

// nameAt returns a name without its quotes and escapes.
func (s *jsonScanner) nameAt(place span) []byte {
	if place.from < 0 {
		return s.unquoted[-place.from-1 : -place.from-1+place.to-place.from]
	}
	return s.text[place.from:place.to]
}

// unquoted returns a text without its quotes and escapes. Half of a surrogate pair becomes U+FFFD: that is what names
// are compared by.
func unquoted(text []byte) []byte {
	plain, _ := jsontext.AppendUnquote(nil, text) // the error is that of such halves
	return plain
}

// isNewOfMany adds a name to an object with many. It reports whether the name is new.
func (s *jsonScanner) isNewOfMany(name []byte, first int) bool {
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

// string reads a text with its quotes. It accepts half a surrogate pair, which unquoting decides about.
func (s *jsonScanner) string(at int) int {
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

// plain returns the position of the next quote, backslash or control character of a text, or some bytes before it.
func plain(text []byte, at int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(text); at += 8 {
		// Eight bytes are tested at once. The subtractions set the highest bit of each byte that is such a character; bytes
		// above the first one found may be wrong. Flipping bit 1 keeps control characters below space, and turns the quote
		// (0x22) into a space (0x20), so that one comparison with space+1 finds both.
		w := binary.LittleEndian.Uint64(text[at : at+8])
		control, backslash := (w^2*ones)-(' '+1)*ones, (w^'\\'*ones)-ones
		if found := (control | backslash) &^ w & high; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	return at
}

// escape returns the length of the escape at the beginning of a text, zero if there is none.
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

// unicodeEscape returns the length of a \u escape.
const unicodeEscape = len(`\u0000`)

// mayBeNoCharacter reports whether four hexadecimal digits may be those of a NUL or a surrogate. It is also true for
// some characters.
func mayBeNoCharacter(digits []byte) bool {
	return string(digits) == "0000" || digits[0]|0x20 == 'd'
}

func isHex(c rune) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func (s *jsonScanner) number(at int) int {
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
	// A number with an exponent of fewer than five digits needs fewer than 16,000 digits.
	if at-begun > 5_000 || exponent && at-begun > 6 {
		s.unusual++
	}
	return at
}

func (s *jsonScanner) digits(at int) int {
	for at < len(s.text) && '0' <= s.text[at] && s.text[at] <= '9' {
		at++
	}
	return at
}

func (s *jsonScanner) literal(at int, word string) int {
	if bytes.HasPrefix(s.text[at:], []byte(word)) {
		return at + len(word)
	}
	return -1
}

// space returns the position of the next byte that is no white space.
func (s *jsonScanner) space(at int) int {
	for at < len(s.text) && isSpace(s.text[at]) {
		at++
	}
	return at
}

func isSpace(c byte) bool {
	const spaces = 1<<' ' | 1<<'\n' | 1<<'\t' | 1<<'\r'
	return c <= ' ' && uint64(spaces)>>c&1 != 0
}
