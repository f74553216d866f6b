package ledger

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// decoder reads the JSON of a body into the types of the domain, in one pass, as the tables of members say. If it
// refuses something, it keeps position and reason, from which explain makes the error, and jumps to the end of the
// body, so that its callers need not check for an error after each value.
type decoder struct {
	jsonScanner
	*lexicon
	at      int // the end of what was read last
	begun   int // the beginning of the value that was read last
	refused bool
	wrong   refusal

	eventLists
	views     arena[InterfaceView]
	active    arena[ActiveContract]
	singles   arena[string]
	numbers   arena[int64]
	truths    arena[bool]
	transfers arena[Transfer]
	receivers arena[Receiver]
	changes   arena[BalanceChange]
	owned     arena[OwnedAmount]
	aborted   arena[AbortedInstruction]
	amounts   arena[Decimal]
	texts     strings.Builder // allocates texts in blocks
	payloads  []byte          // allocates payloads in blocks
	scratch   []byte          // a text without its escapes

	// lastTime is timeText, parsed. An update and its events often have the same time, which is then parsed once.
	lastTime Time
	timeText []byte

	// Of the element that is being read:
	element    element           // of a list of updates
	nodes      []int32           // of the update's events
	repeated   [2]repeatedOffset // by those events: the first offset, and the first that differs from it
	reassigned bool              // the id of the reassignment was read
	unitWord   string            // of a record; empty: none was read
	hasOwner   bool              // the owner of an amount was read, which may be an empty text
	tree       []networkNode     // events of a network's transaction
}

type refusal struct {
	at    int    // a position in the refused value itself, not in one of its members or elements
	field string // of that value; empty: the value itself
	err   error  // nil: it is no JSON
}

// decode reads a body; read reads all of it except white space at the end.
func decode[T any](body []byte, form answer, read func(*decoder) T) (T, error) {
	var wrong refusal
	if utf8.Valid(body) {
		d := newDecoder(body, knownLexicon())
		value := read(d)
		d.release()
		if d.space(d.at) == len(body) && !d.refused {
			return value, nil
		}
		wrong = d.wrong
	}
	var none T
	return none, explain(body, form, wrong)
}

// newDecoder begins to read a text, which is valid UTF-8.
func newDecoder(text []byte, l *lexicon) *decoder {
	return &decoder{jsonScanner: jsonScanner{text: text}, lexicon: l}
}

// refuse refuses the last value.
func (d *decoder) refuse(err error) { d.refuseAt(d.begun, "", err) }

// refuseAt refuses the value that begins at a position, or its field. Only the first refusal counts.
func (d *decoder) refuseAt(at int, field string, err error) {
	if !d.refused {
		d.refused, d.wrong = true, refusal{at, field, err}
	}
	d.at = len(d.text)
}

// stop refuses text that is no JSON.
func (d *decoder) stop() { d.refuseAt(d.at, "", nil) }

// mistyped refuses the next value for its type.
func (d *decoder) mistyped(expected string) {
	if d.begun = d.at; d.begun < len(d.text) {
		d.refuse(errors.New("is " + kindName(d.text[d.begun]) + " where " + expected + " is expected"))
	}
	d.stop()
}

// kindName names the kind of a JSON value in errors, by its first character.
func kindName(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// peek returns the next character that is no white space, 0 at the end.
func (d *decoder) peek() byte {
	for ; d.at < len(d.text); d.at++ {
		if c := d.text[d.at]; !isSpace(c) {
			return c
		}
	}
	return 0
}

// here returns the position of the next value.
func (d *decoder) here() int {
	d.peek()
	return d.at
}

// is reads a character, if it comes next.
func (d *decoder) is(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.at++
	return true
}

// want reads a character that must come next.
func (d *decoder) want(c byte) {
	if d.peek() != c {
		d.stop()
		return
	}
	d.at++
}

// has reports whether a text comes next.
func (d *decoder) has(text string) bool {
	return len(d.text)-d.at >= len(text) && string(d.text[d.at:d.at+len(text)]) == text
}

// begin reads the beginning of a list, and reports whether an element follows. more does so between elements.
func (d *decoder) begin() bool {
	if d.peek() != '[' {
		d.mistyped("an array")
		return false
	}
	d.at++
	d.enter()
	if d.is(']') {
		d.depth--
		return false
	}
	return true
}

func (d *decoder) more() bool {
	if d.is(',') {
		return true
	}
	d.want(']')
	d.depth--
	return false
}

func (d *decoder) value() []byte {
	d.peek()
	return d.upTo(d.jsonScanner.value(d.at))
}

// upTo reads up to an end that the scanner found; nil if the scanner refused the value.
func (d *decoder) upTo(end int) []byte {
	if end < 0 {
		d.stop()
		return nil
	}
	d.begun, d.at = d.at, end
	return d.text[d.begun:end]
}

// mark is a state of the decoder, for goBack.
type mark struct{ at, depth, names, unusual int }

func (d *decoder) mark() mark {
	return mark{d.here(), d.depth, len(d.memberNames), d.unusual}
}

// goBack returns to a mark, and forgets what was refused since.
func (d *decoder) goBack(to mark) {
	d.at, d.depth, d.unusual, d.refused = to.at, to.depth, to.unusual, false
	d.forget(to.names)
}

// attempt reads a value. If it is refused, attempt skips it, and returns the zero value.
func attempt[T any](d *decoder, read func(*decoder) T) T {
	begun := d.mark()
	value := read(d)
	if d.refused {
		d.goBack(begun)
		d.value()
		var none T
		return none
	}
	return value
}
