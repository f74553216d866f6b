package ledger

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var errMissing = errors.New("is required, and absent or null")

// reader reads values out of one body.
type reader struct {
	*lexicon
	body    []byte
	scratch []byte
	// decimals is room for numbers that may be left out, a block of them at a time.
	decimals []Decimal
	// payloads is room for payloads, a block at a time.
	payloads []byte
	// update is the one that is being read.
	update Update
	// lastTime is what timeText says: the times of an update and of its events are often the same.
	lastTime Time
	timeText []byte
}

func newReader(body []byte) *reader { return &reader{body: body, lexicon: newLexicon()} }

// at is the JSON of the value, nil where it is absent or null.
func (r *reader) at(s span) []byte {
	if s.to == 0 || r.body[s.from] == 'n' {
		return nil
	}
	return r.body[s.from:s.to]
}

// chars is the content of a JSON string, valid until the next call.
func (r *reader) chars(value []byte) ([]byte, error) {
	if kind := jsontext.Value(value).Kind(); kind != '"' {
		return nil, fmt.Errorf("is %s where a text is expected", kindName(kind))
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	unquoted, err := jsontext.AppendUnquote(r.scratch[:0], value)
	r.scratch = unquoted
	if err != nil {
		return nil, fmt.Errorf("holds half of a surrogate pair, which is no character: %s", shorten(value))
	}
	if bytes.IndexByte(unquoted, 0) >= 0 {
		return nil, fmt.Errorf("holds a NUL character, which a text of the database can't: %s", shorten(value))
	}
	return unquoted, nil
}

// keep is a copy of a value; nil where it is nil. Blocks are so small that one which is kept for long holds little beside it.
func (r *reader) keep(value []byte) []byte {
	const block = 16 << 10
	if len(value) == 0 || len(value) > block/4 {
		return bytes.Clone(value)
	}
	if cap(r.payloads)-len(r.payloads) < len(value) {
		r.payloads = make([]byte, 0, min(block, len(r.body)))
	}
	at := len(r.payloads)
	r.payloads = append(r.payloads, value...)
	return r.payloads[at:len(r.payloads):len(r.payloads)]
}

func shorten(value []byte) string { return shortenTo(value, 60) }

func shortenTo[Text ~string | ~[]byte](text Text, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…"
	}
	return string(text)
}

// object reads the members of one JSON object into a domain type. The first thing that is wrong stays in err; what
// is read after it counts for nothing.
type object struct {
	*reader
	err error
}

func (o *object) fail(field string, err error) {
	if o.err == nil && err != nil {
		o.err = below(field, err)
	}
}

// required is the JSON of a member that must be there.
func (o *object) required(field string, s span) []byte {
	value := o.at(s)
	if value == nil {
		o.fail(field, errMissing)
	}
	return value
}

func (o *object) text(field string, value []byte) []byte {
	if value == nil {
		return nil
	}
	text, err := o.chars(value)
	o.fail(field, err)
	return text
}

// unique reads a required identifier that names one thing only and is never empty.
func (o *object) unique(field string, s span) string {
	value := o.required(field, s)
	text := o.text(field, value)
	if value != nil && len(text) == 0 {
		o.fail(field, errors.New("is an empty text"))
	}
	return string(text)
}

// shared reads a required text of the sort that comes again and again.
func (o *object) shared(field string, s span) string {
	return *o.requiredText(field, s)
}

func (o *object) optionalText(field string, s span) *string {
	value := o.at(s)
	if value == nil {
		return nil
	}
	chars := o.text(field, value)
	if len(chars) == 0 {
		return new(string)
	}
	text := string(chars)
	return &text
}

// optionalShared reads an optional text of the sort that comes again and again.
func (o *object) optionalShared(field string, s span) *string {
	if o.at(s) == nil {
		return nil
	}
	return o.requiredText(field, s)
}

func (o *object) requiredText(field string, s span) *string {
	return o.name(o.text(field, o.required(field, s)))
}

// identifier reads a required template or interface id, whose form is checked once a page.
func (o *object) identifier(field string, s span) string {
	text := o.text(field, o.required(field, s))
	if id, ok := o.identifiers[string(text)]; ok {
		return id
	}
	id := string(text)
	if o.err == nil {
		_, err := ParseTemplateID(id)
		o.fail(field, err)
		o.identifiers[id] = id
	}
	return id
}

func (o *object) optionalIdentifier(field string, s span) *string {
	if o.at(s) == nil {
		return nil
	}
	id := o.identifier(field, s)
	return &id
}

// texts reads a list of texts: nil where it is absent or null, not nil where it is empty.
func (o *object) texts(field string, list []span) []string {
	return o.list(field, list, false)
}

// interfaces reads a list of interface ids in the same way.
func (o *object) interfaces(field string, list []span) []string {
	return o.list(field, list, true)
}

func (o *object) list(field string, list []span, identifiers bool) []string {
	if list == nil || o.err != nil {
		return nil
	}
	texts := make([]string, len(list))
	for i, s := range list {
		if identifiers {
			texts[i] = o.identifier("", s)
		} else {
			texts[i] = o.shared("", s)
		}
		if o.err != nil {
			o.err = below(index(field, i), o.err)
			return nil
		}
	}
	return texts
}

func (o *object) requiredTexts(field string, list []span) []string {
	if list == nil {
		o.fail(field, errMissing)
	}
	return o.texts(field, list)
}

func (o *object) integer(field string, value []byte, bits int) int64 {
	if value == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(value), 10, bits)
	if err != nil {
		o.fail(field, fmt.Errorf("is not a whole number of at most %d bits: %s", bits, shorten(value)))
	}
	return n
}

func (o *object) int64(field string, s span) int64 {
	return o.integer(field, o.required(field, s), 64)
}

func (o *object) optionalInt64(field string, s span) *int64 {
	value := o.at(s)
	if value == nil {
		return nil
	}
	n := o.integer(field, value, 64)
	return &n
}

func (o *object) int32(field string, s span) int32 {
	return int32(o.integer(field, o.required(field, s), 32))
}

// nodeID reads a required node id, which is not negative.
func (o *object) nodeID(field string, s span) int32 {
	id := o.int32(field, s)
	if id < 0 {
		o.fail(field, fmt.Errorf("is a negative node id: %d", id))
	}
	return id
}

// updateOffset reads the required offset of an update or of a stored event, which is above zero.
func (o *object) updateOffset(field string, s span) Offset {
	offset := o.int64(field, s)
	if o.err == nil && offset <= 0 {
		o.fail(field, fmt.Errorf("is %d, and the first offset of a ledger is 1", offset))
	}
	return Offset(offset)
}

// bound reads a required offset that may be zero, the beginning of the ledger.
func (o *object) bound(field string, s span) Offset {
	offset := o.int64(field, s)
	if offset < 0 {
		o.fail(field, fmt.Errorf("is a negative offset: %d", offset))
	}
	return Offset(offset)
}

// sameOffset checks the offset that an event repeats from its update. Servers leave it out or send zero where they
// do not populate it.
func (o *object) sameOffset(field string, s span, update Offset) {
	value := o.at(s)
	if value == nil {
		return
	}
	own := Offset(o.integer(field, value, 64))
	if o.err == nil && own != 0 && own != update {
		o.fail(field, fmt.Errorf("is %d, and the update's offset is %d", own, update))
	}
}

func (o *object) boolean(field string, s span) bool {
	return o.truth(field, o.required(field, s))
}

func (o *object) optionalBool(field string, s span) *bool {
	value := o.at(s)
	if value == nil {
		return nil
	}
	truth := o.truth(field, value)
	return &truth
}

func (o *object) truth(field string, value []byte) bool {
	kind := jsontext.Value(value).Kind()
	if value != nil && kind != 't' && kind != 'f' {
		o.fail(field, fmt.Errorf("is %s where a boolean is expected", kindName(kind)))
	}
	return kind == 't'
}

func (o *object) time(field string, s span) Time {
	o.required(field, s)
	return o.optionalTime(field, s)
}

func (o *object) optionalTime(field string, s span) Time {
	value := o.at(s)
	if value == nil || o.err != nil {
		return Time{}
	}
	text := o.text(field, value)
	if o.err != nil {
		return Time{}
	}
	if len(text) > 0 && bytes.Equal(text, o.timeText) {
		return o.lastTime
	}
	t, err := ParseTime(string(text))
	o.fail(field, err)
	if err == nil {
		o.timeText, o.lastTime = append(o.timeText[:0], text...), t
	}
	return t
}

// bytes reads an optional Base64 text: nil where it is absent or null, not nil where it is empty.
func (o *object) bytes(field string, s span) []byte {
	text := o.text(field, o.at(s))
	if text == nil {
		return nil
	}
	blob, ok := unbase64(text)
	if !ok {
		o.fail(field, fmt.Errorf("is not standard Base64 with padding: %q", shorten(text)))
	}
	return blob
}

// strictBase64 is standard Base64 with padding, and zeros for the bits that are left over.
var strictBase64 = base64.StdEncoding.Strict()

func unbase64(text []byte) (blob []byte, ok bool) {
	if len(text) == 0 {
		return []byte{}, true
	}
	blob = make([]byte, strictBase64.DecodedLen(len(text)))
	n, err := strictBase64.Decode(blob, text)
	return blob[:n], err == nil && !bytes.ContainsAny(text, "\r\n") // Decode skips line ends
}

// payload is a copy of the value's own bytes; nil where it is absent or null.
func (o *object) payload(s span) JSON {
	return o.keep(o.at(s))
}

// array is a copy of an optional array's own bytes; nil where it is absent or null.
func (o *object) array(field string, s span) JSON {
	value := o.at(s)
	if kind := jsontext.Value(value).Kind(); value != nil && kind != '[' {
		o.fail(field, fmt.Errorf("is %s where an array is expected", kindName(kind)))
	}
	return bytes.Clone(value)
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
