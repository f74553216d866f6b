package ledger

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// errEmpty is the error for an empty text where a value is required. How single values are decoded is in this file.
var errEmpty = errors.New("is an empty text")

// chars reads a text. The result is valid until the next text is read.
func (d *decoder) chars() []byte {
	if d.peek() != '"' {
		d.mistyped("a text")
		return nil
	}
	escapes := d.escapes
	value := d.upTo(d.jsonScanner.string(d.at))
	switch {
	case value == nil:
		return nil
	case d.escapes == escapes:
		return value[1 : len(value)-1]
	}
	text, err := d.unquote(value)
	if err != nil {
		d.refuse(err)
		return nil
	}
	return text
}

// unquote returns a text without its quotes and escapes, valid until the next call.
func (d *decoder) unquote(value []byte) ([]byte, error) {
	plain, err := jsontext.AppendUnquote(d.scratch[:0], value)
	d.scratch = plain
	if err != nil {
		return nil, fmt.Errorf("holds half of a surrogate pair, which is no character: %s", shorten(value))
	}
	if bytes.IndexByte(plain, 0) >= 0 {
		return nil, fmt.Errorf("holds a NUL character, which a text of the database can't: %s", shorten(value))
	}
	return plain, nil
}

func shorten(value []byte) string { return shortenTo(value, 60) }

func shortenTo[Text ~string | ~[]byte](text Text, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…"
	}
	return string(text)
}

// copyText returns a copy of a text, allocated in a block with others. For texts that recur, see lexicon.
func (d *decoder) copyText(text []byte) string {
	const block = 16 << 10
	if len(text) > block/4 {
		return string(text)
	}
	if d.texts.Cap()-d.texts.Len() < len(text) {
		d.texts = strings.Builder{}
		d.texts.Grow(min(block, len(d.text)))
	}
	at := d.texts.Len()
	d.texts.Write(text)
	return d.texts.String()[at:]
}

// rareID reads an identifier that seldom recurs, such as a contract id. It must not be empty.
func (d *decoder) rareID() string {
	text := d.chars()
	if len(text) == 0 {
		d.refuse(errEmpty)
	}
	return d.copyText(text)
}

// rareText reads a text that seldom recurs, such as a command id. It may be empty.
func (d *decoder) rareText() *string {
	text := d.chars()
	if len(text) == 0 {
		return d.name(nil)
	}
	to := d.singles.one()
	*to = d.copyText(text)
	return to
}

// commonText reads a text that recurs, such as a party. Equal ones are one string of the lexicon. It may be empty.
func (d *decoder) commonText() *string { return d.lexicon.name(d.chars()) }

// commonID reads an identifier that recurs. It must not be empty.
func (d *decoder) commonID() string {
	id := d.commonText()
	if *id == "" {
		d.refuse(errEmpty)
	}
	return *id
}

// maxIndexed is the longest indexedText, in bytes. PostgreSQL's index entries have at most 2,700, real ids at most 255
// characters.
const maxIndexed = 1000

// indexedText reads a text that recurs, and that a database column with an index has to hold.
func (d *decoder) indexedText() *string {
	text := d.commonText()
	if len(*text) > maxIndexed {
		d.refuse(fmt.Errorf("has %d bytes, and an id at most %d: %s", len(*text), maxIndexed, shorten([]byte(*text))))
	}
	return text
}

// identifier reads a template or interface id, whose form is checked once.
func (d *decoder) identifier() string {
	text := d.chars()
	if id, ok := d.identifiers[string(text)]; ok {
		return id
	}
	id := string(text)
	if _, err := ParseTemplateID(id); err != nil {
		d.refuse(err)
		return ""
	}
	d.identifiers[id] = id
	d.bytes += len(id) + entryBytes
	return id
}

func (d *decoder) optionalIdentifier() *string {
	to := d.singles.one()
	*to = d.identifier()
	return to
}

// partyList reads a list of parties, which is a set.
func (d *decoder) partyList() []string {
	return d.textList(d.parties, func() string { return *d.commonText() })
}

func (d *decoder) interfaceList() []string { return d.textList(d.interfaces, d.identifier) }

// textList reads a list of texts that is a set, each with read: sorted by bytes, each once. Servers send it in any
// order, another one after a restart. Equal lists share memory, except long ones and those with a bracket in a text.
func (d *decoder) textList(known map[string][]string, read func() string) []string {
	const longestKnown = 1_000
	// A known list is looked up by its JSON, up to the first closing bracket. If that bracket is in a text, this is not
	// the whole list, so it is not found, and the list is read.
	d.peek()
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
	slices.Sort(list)
	list = append([]string{}, slices.Compact(list)...)
	if d.at == end && !d.refused {
		known[string(d.text[at:end])] = list
		d.bytes += end - at + 16*len(list) + entryBytes
	}
	d.unusual = unusual // texts that were read have no halves of surrogate pairs, and a known list is not scanned
	return list
}

// integer reads a whole number of a number of bits.
func (d *decoder) integer(width int) int64 {
	value := d.value()
	n, err := strconv.ParseInt(string(value), 10, width)
	if err != nil {
		d.refuse(fmt.Errorf("is not a whole number of at most %d bits: %s", width, shorten(value)))
	}
	return n
}

func (d *decoder) int64() int64 { return d.integer(64) }

func (d *decoder) optionalInt64() *int64 {
	to := d.numbers.one()
	*to = d.int64()
	return to
}

// natural reads a whole number of 32 bits that is not negative; name is for errors.
func (d *decoder) natural(name string) int32 {
	n := int32(d.integer(32))
	if n < 0 {
		d.refuse(fmt.Errorf("is a negative %s: %d", name, n))
	}
	return n
}

// NodeIDLimit is above the node ids of all events: larger numbers are for what no event says.
const NodeIDLimit = 1 << 30

func (d *decoder) nodeID() int32 {
	n := d.natural("node id")
	if n >= NodeIDLimit {
		d.refuse(fmt.Errorf("is too large a node id: %d", n))
	}
	return n
}

// updateOffset reads the offset of an update or of a stored event, which is above zero.
func (d *decoder) updateOffset() Offset {
	offset := d.int64()
	if offset <= 0 {
		d.refuse(fmt.Errorf("is %d, and the first offset of a ledger is 1", offset))
	}
	return Offset(offset)
}

// bound reads an offset that may be 0, the beginning of the ledger.
func (d *decoder) bound() Offset {
	offset := d.int64()
	if offset < 0 {
		d.refuse(fmt.Errorf("is a negative offset: %d", offset))
	}
	return Offset(offset)
}

func (d *decoder) boolean() bool {
	if c := d.peek(); c != 't' && c != 'f' {
		d.mistyped("a boolean")
		return false
	}
	return d.value() != nil && d.text[d.begun] == 't'
}

func (d *decoder) optionalBool() *bool {
	to := d.truths.one()
	*to = d.boolean()
	return to
}

func (d *decoder) time() Time {
	text := d.chars()
	if len(text) > 0 && bytes.Equal(text, d.timeText) {
		return d.lastTime
	}
	t, ok := parsePlainTime(text)
	if !ok {
		var err error
		if t, err = ParseTime(string(text)); err != nil {
			d.refuse(err)
			return Time{}
		}
	}
	d.timeText, d.lastTime = append(d.timeText[:0], text...), t
	return t
}

func (d *decoder) base64() []byte {
	text := d.chars()
	blob, ok := unbase64(text)
	if !ok {
		d.refuse(fmt.Errorf("is not standard Base64 with padding: %q", shorten(text)))
	}
	return blob
}

// strictBase64 is standard Base64 with padding, in which unused bits are zero.
var strictBase64 = base64.StdEncoding.Strict()

func unbase64(text []byte) (blob []byte, ok bool) {
	if len(text) == 0 {
		return []byte{}, true
	}
	blob = make([]byte, strictBase64.DecodedLen(len(text)))
	n, err := strictBase64.Decode(blob, text)
	return blob[:n], err == nil && !bytes.ContainsAny(text, "\r\n") // Decode skips line ends
}

// payload reads a value as a copy of its bytes. Copies are allocated in blocks, small ones because a block lives as
// long as any of its values.
func (d *decoder) payload() JSON {
	const block = 16 << 10
	value := d.value()
	if len(value) == 0 || len(value) > block/4 {
		return bytes.Clone(value)
	}
	if cap(d.payloads)-len(d.payloads) < len(value) {
		d.payloads = make([]byte, 0, min(block, len(d.text)))
	}
	at := len(d.payloads)
	d.payloads = append(d.payloads, value...)
	return d.payloads[at:len(d.payloads):len(d.payloads)]
}

func (d *decoder) amount() Decimal {
	const common = "0.0000000000" // most fees and rewards
	text := d.chars()
	if string(text) == common {
		return common
	}
	if err := checkDecimal(text); err != nil {
		d.refuse(err)
	}
	return Decimal(d.copyText(text))
}

func (d *decoder) optionalAmount() *Decimal {
	to := d.amounts.one()
	*to = d.amount()
	return to
}

// orEmpty returns the list, empty instead of nil: nil means that none was sent.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
