package ledger

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// direct reads a body of updates, of contracts or of records in one pass into the types of the domain. It takes a third of the time that
// the way of a decoding takes (library, wire structs, conversion), and knows less: it refuses whatever is wrong or rare, and
// then the body is decoded on that way, which alone says what is right and what an error is (see decodeTwice). Refused as rare
// are, besides what a scanner refuses, kinds of updates, events and records that are not known, and members that are not known of the
// objects around them. What it does read is the same as on the other way.
//
// Where it has refused it is at the end of the body, so that whoever reads on comes to an end soon.
type direct struct {
	scanner
	reader  *reader
	at      int // behind what was read last
	refused bool

	created    arena[CreatedEvent]
	archived   arena[ArchivedEvent]
	exercised  arena[ExercisedEvent]
	assigned   arena[AssignedEvent]
	unassigned arena[UnassignedEvent]
	topology   arena[TopologyEvent]
	views      arena[InterfaceView]
	active     arena[ActiveContract]
	singles    arena[string]
	numbers    arena[int64]
	truths     arena[bool]

	// Of the update that is being read:
	nodes      []int32 // of its events
	eventsAt   Offset  // that its events repeat; 0 where none does
	traceExtra JSON    // members of its traceContext that are not known
	// Of the interface view that is being read:
	statusExtra JSON            // members of its viewStatus that are not known
	strings     strings.Builder // room for texts of their own, a block at a time

	history readHistory
}

// decodeTwice decodes a body directly, and if that is refused for whatever reason, with the library.
func decodeTwice[T any](body []byte, directly func(*direct) T, decode func(*decoding) (T, error)) (T, error) {
	if utf8.Valid(body) {
		d := newDirect(body)
		value := directly(d)
		d.reader.release()
		if d.ended() {
			return value, nil
		}
	}
	return decode(newDecoding(body))
}

// newDirect begins to read a body, which is valid UTF-8.
func newDirect(body []byte) *direct {
	return &direct{scanner: scanner{text: body}, reader: &reader{body: body, lexicon: knownLexicon()}}
}

func (d *direct) refuse() {
	d.refused, d.at = true, len(d.text)
}

// ended tells whether all was read.
func (d *direct) ended() bool { return d.space(d.at) == len(d.text) && !d.refused }

// peek is the next character that is no white space, 0 at the end.
func (d *direct) peek() byte {
	for ; d.at < len(d.text); d.at++ {
		if c := d.text[d.at]; !isSpace(c) {
			return c
		}
	}
	return 0
}

// is reads a character, if it comes next.
func (d *direct) is(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.at++
	return true
}

// want reads a character that must come next.
func (d *direct) want(c byte) {
	if d.peek() != c {
		d.refuse()
		return
	}
	d.at++
}

// has tells whether a text comes next.
func (d *direct) has(text string) bool {
	return len(d.text)-d.at >= len(text) && string(d.text[d.at:d.at+len(text)]) == text
}

// named reads the name of a member, quotes included, if it comes next.
func (d *direct) named(name string) bool {
	if d.peek(); !d.has(name) {
		return false
	}
	d.at += len(name)
	d.want(':')
	return true
}

// open reads the beginning of an object whose only member is called name. Its value comes next, and then its end.
func (d *direct) open(name string) {
	if d.want('{'); !d.named(name) {
		d.refuse()
	}
}

// begin reads the beginning of a list, and tells whether an element follows; more reads what separates it from the next one.
func (d *direct) begin() bool {
	d.want('[')
	return !d.is(']') && !d.refused
}

func (d *direct) more() bool {
	if d.is(',') {
		return true
	}
	d.want(']')
	return false
}

// known are the members of an object that are known and can be read into a T, in the order in which servers send them: another
// order takes longer.
type known[T any] struct {
	list     []member[T]
	required uint64 // a bit for each in the list
}

// member is a member with what reads its value, which is no null: a null is an absent member.
type member[T any] struct {
	name     string // with its quotes
	required bool
	read     func(*direct, *T)
}

func membersOf[T any](list ...member[T]) *known[T] {
	all := &known[T]{list: list}
	for i := range list {
		if list[i].required {
			all.required |= 1 << i
		}
	}
	return all
}

func must[T any](name string, read func(*direct, *T)) member[T] {
	return member[T]{`"` + name + `"`, true, read}
}

func may[T any](name string, read func(*direct, *T)) member[T] {
	return member[T]{`"` + name + `"`, false, read}
}

// read reads an object. It returns the members that are not known, as one object.
func (m *known[T]) read(d *direct, into *T) (unknown JSON) {
	var seen, present uint64
	names := len(d.names) // of objects around this one
	d.want('{')
	for next, ends := 0, d.is('}'); !ends && !d.refused; ends = d.endsMember() {
		i := m.find(d, next, names)
		if i == len(m.list) {
			unknown = d.unknown(unknown)
			continue
		}
		bit := uint64(1) << i
		if seen&bit != 0 {
			d.refuse()
			continue
		}
		seen |= bit
		d.at += len(m.list[i].name)
		d.want(':')
		if d.peek() == 'n' {
			d.value()
		} else {
			present |= bit
			m.list[i].read(d, into)
		}
		next = i + 1
	}
	d.names = d.names[:names]
	if m.required&^present != 0 {
		d.refuse()
	}
	return unknown
}

// endsMember reads what follows a member, and tells whether it is the end of the object.
func (d *direct) endsMember() bool {
	if d.is(',') {
		return false
	}
	d.want('}')
	return true
}

// find looks up the member whose name comes next, and which is probably that one. What is not known is the length of the list:
// its name was read and is the last of the names, which begin at first for this object.
func (m *known[T]) find(d *direct, probably, first int) int {
	if d.peek(); probably < len(m.list) && d.has(m.list[probably].name) {
		return probably
	}
	for i := range m.list {
		if d.has(m.list[i].name) {
			return i
		}
	}
	if d.name(d.at, first) < 0 {
		d.refuse()
	}
	return len(m.list)
}

// unknown reads a member that is not known, and adds it to an object. A name that Extra uses for itself is refused.
func (d *direct) unknown(object JSON) JSON {
	if d.refused || d.has(`"$`) {
		d.refuse()
		return nil
	}
	name := d.names[len(d.names)-1]
	if object == nil {
		object = append(object, '{')
	} else {
		object[len(object)-1] = ','
	}
	object = append(append(object, d.text[name.from:name.to]...), ':')
	d.at = name.to
	d.want(':')
	return append(append(object, d.value()...), '}')
}

// value reads any value.
func (d *direct) value() []byte {
	d.peek()
	return d.upTo(d.scanner.value(d.at, scanDepth))
}

// upTo reads what a scanner found the end of; nil where it refused it.
func (d *direct) upTo(end int) []byte {
	if end < 0 {
		d.refuse()
		return nil
	}
	value := d.text[d.at:end]
	d.at = end
	return value
}

// chars reads a text. It is valid until the next one is read.
func (d *direct) chars() []byte {
	if d.peek() != '"' {
		d.refuse()
		return nil
	}
	escapes := d.escapes
	value := d.upTo(d.scanner.string(d.at))
	switch {
	case value == nil:
		return nil
	case d.escapes == escapes:
		return value[1 : len(value)-1]
	}
	text, err := d.reader.chars(value)
	if err != nil {
		d.refuse()
	}
	return text
}

// own is a text of which few are alike.
func (d *direct) own(text []byte) string {
	const block = 16 << 10
	if len(text) > block/4 {
		return string(text)
	}
	if d.strings.Cap()-d.strings.Len() < len(text) {
		d.strings = strings.Builder{}
		d.strings.Grow(min(block, len(d.text)))
	}
	at := d.strings.Len()
	d.strings.Write(text)
	return d.strings.String()[at:]
}

// unique reads the identifier of one thing only, which is not empty.
func (d *direct) unique() string {
	text := d.chars()
	if len(text) == 0 {
		d.refuse()
	}
	return d.own(text)
}

// single reads a text of which few are alike, into memory of its own.
func (d *direct) single() *string {
	text := d.chars()
	if len(text) == 0 {
		return d.reader.name(nil)
	}
	to := d.singles.one()
	*to = d.own(text)
	return to
}

// shared reads a text of the sort that comes again and again.
func (d *direct) shared() *string { return d.reader.name(d.chars()) }

// identifier reads a template or interface id, whose form is checked once.
func (d *direct) identifier() string {
	l, text := d.reader.lexicon, d.chars()
	if id, ok := l.identifiers[string(text)]; ok {
		return id
	}
	id := string(text)
	if _, err := ParseTemplateID(id); err != nil {
		d.refuse()
		return ""
	}
	l.identifiers[id] = id
	l.bytes += len(id) + entryBytes
	return id
}

// partyList reads a list of parties, or of other texts that come again and again.
func (d *direct) partyList() []string {
	return d.textList(d.reader.parties, func() string { return *d.shared() })
}

// interfaceList reads a list of interface ids.
func (d *direct) interfaceList() []string { return d.textList(d.reader.interfaces, d.identifier) }

// textList reads a list of texts. Lists that are alike share their memory, but for very long ones and for texts with a bracket.
func (d *direct) textList(known map[string][]string, read func() string) []string {
	const longestKnown = 1_000
	if d.peek() != '[' {
		d.refuse()
		return nil
	}
	// A known list is found without being read: where its JSON stands as a whole, from bracket to bracket, a reader would come
	// to its end there too, whatever follows. A bracket in a text only hides a list.
	at := d.at
	end := at + bytes.IndexByte(d.text[at:min(at+longestKnown, len(d.text))], ']') + 1
	if list, ok := known[string(d.text[at:end])]; ok {
		d.at = end
		return list
	}
	unusual := d.unusual
	list := make([]string, 0, 4)
	for next := d.begin(); next; next = d.more() {
		list = append(list, read())
	}
	list = append([]string{}, list...)
	if d.at == end && !d.refused {
		known[string(d.text[at:end])] = list
		d.reader.bytes += end - at + 16*len(list) + entryBytes
	}
	d.unusual = unusual // a text that was read is none, and a known list is not looked at again
	return list
}

// integer reads a whole number of so many bits.
func (d *direct) integer(bits int) int64 {
	d.peek()
	n, err := strconv.ParseInt(string(d.upTo(d.number(d.at))), 10, bits)
	if err != nil {
		d.refuse()
	}
	return n
}

func (d *direct) int64() int64 { return d.integer(64) }

func (d *direct) optionalInt64() *int64 {
	to := d.numbers.one()
	*to = d.int64()
	return to
}

// nodeID reads a node id, which is not negative.
func (d *direct) nodeID() int32 {
	id := int32(d.integer(32))
	if id < 0 {
		d.refuse()
	}
	return id
}

// updateOffset reads an offset that is not the beginning of the ledger.
func (d *direct) updateOffset() Offset {
	offset := d.bound()
	if offset == 0 {
		d.refuse()
	}
	return offset
}

// bound reads an offset that may be the beginning of the ledger.
func (d *direct) bound() Offset {
	offset := d.int64()
	if offset < 0 {
		d.refuse()
	}
	return Offset(offset)
}

func (d *direct) boolean() bool {
	value := d.value()
	if kind := jsontext.Value(value).Kind(); kind != 't' && kind != 'f' {
		d.refuse()
	}
	return len(value) > 0 && value[0] == 't'
}

func (d *direct) optionalBool() *bool {
	to := d.truths.one()
	*to = d.boolean()
	return to
}

func (d *direct) time() Time {
	r, text := d.reader, d.chars()
	if len(text) > 0 && bytes.Equal(text, r.timeText) {
		return r.lastTime
	}
	t, ok := parsePlainTime(text)
	if !ok {
		var err error
		if t, err = ParseTime(string(text)); err != nil {
			d.refuse()
			return Time{}
		}
	}
	r.timeText, r.lastTime = append(r.timeText[:0], text...), t
	return t
}

// bytes reads a text in Base64.
func (d *direct) bytes() []byte {
	blob, ok := unbase64(d.chars())
	if !ok {
		d.refuse()
	}
	return blob
}

// payload reads a value, as a copy of its own bytes.
func (d *direct) payload() JSON { return d.reader.keep(d.value()) }

// arena gives out room for lists and for values that pointers point to, a block at a time.
type arena[T any] struct {
	block []T
	from  int // where the list begins that is being filled
}

// add adds a zero value to the list that is being filled. The pointer is good until another one is added.
func (a *arena[T]) add() *T {
	const fewest, most = 4, 32
	if len(a.block) == cap(a.block) {
		list := a.block[a.from:]
		room := max(2*len(list), min(most, max(fewest, 2*cap(a.block))))
		a.block, a.from = append(make([]T, 0, room), list...), 0
	}
	a.block = a.block[:len(a.block)+1]
	return &a.block[len(a.block)-1]
}

// take is the list, nil where nothing was added. Another one begins.
func (a *arena[T]) take() []T {
	if a.from == len(a.block) {
		return nil
	}
	list := a.block[a.from:len(a.block):len(a.block)]
	a.from = len(a.block)
	return list
}

// one is a zero value that is part of no list.
func (a *arena[T]) one() *T {
	a.from = len(a.block)
	return a.add()
}
