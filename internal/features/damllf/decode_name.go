package damllf

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxName is the length of the longest name that the language allows. Names are entries of tables, read by the
// functions here.
const maxName = 1000

// entry returns the bytes of an entry of a table.
func (d *decoder) entry(t table, i int, what string) []byte {
	if i >= len(t.at) {
		d.fail("there is no %s %d, only %d of them", what, i, len(t.at))
	}
	if d.err != nil {
		return nil
	}
	value, _ := protowire.ConsumeBytes(t.message[t.at[i]:]) // can't fail: it was read before
	return value
}

// text returns an interned string of at most maxName bytes.
func (d *decoder) text(i int) string {
	if known, ok := d.knownTexts[i]; ok {
		return known
	}
	value := d.entry(d.texts, i, "interned string")
	if len(value) > maxName {
		d.fail("interned string %d has %d bytes, more than a name can have", i, len(value))
		return ""
	}
	d.keep(64 + len(value))
	d.knownTexts[i] = string(value)
	return d.knownTexts[i]
}

// identifier returns an interned string that is a name without dots.
func (d *decoder) identifier(i int) string {
	text := d.text(i)
	if !isWord(text, "$_", maxName) || '0' <= text[0] && text[0] <= '9' {
		d.fail("interned string %d is %.100q, which is no name", i, text)
	}
	return text
}

// dotted returns an interned dotted name.
func (d *decoder) dotted(i int) string {
	if known, ok := d.knownNames[i]; ok {
		return known
	}
	var segments []string
	length := 0
	message := d.entry(d.names, i, "interned dotted name")
	d.enter("interned dotted name", i)
	for s := range d.numbers(message, 1) {
		segments = append(segments, d.identifier(s))
		if length += 1 + len(segments[len(segments)-1]); length > maxName+1 {
			d.fail("it is longer than a name can be")
		}
	}
	if len(segments) == 0 {
		d.fail("it has no segments")
	}
	d.leave()
	d.keep(64 + length)
	d.knownNames[i] = strings.Join(segments, ".")
	return d.knownNames[i]
}

// packageID refuses texts that are no package id, because ids become part of requests.
func (d *decoder) packageID(id string) string {
	if len(id) != 64 || strings.Trim(id, "0123456789abcdef") != "" {
		d.fail("%.100q is no id of a package", id)
	}
	return id
}

// isVersion reports whether a text is the version of a package: numbers with dots between them.
func isVersion(text string) bool {
	return len(text) <= 255 && strings.Trim(text, "0123456789.") == "" && !strings.Contains("."+text+".", "..")
}

// isWord reports whether a text has 1 to longest characters, all of them letters, digits or among others.
func isWord(text, others string, longest int) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return text != "" && len(text) <= longest
}
