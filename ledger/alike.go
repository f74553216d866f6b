package ledger

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Alike reports whether two Scan services of one network have sent the same update. It ignores the differences that
// services may have: an external transaction hash that only one of them knows, and in what forms they write JSON, see
// [AlikeJSON].
func Alike(a, b *Update) bool {
	if a.Offset != b.Offset || a.ID != b.ID {
		return false
	}
	if one, other := a.ExternalTransactionHash, b.ExternalTransactionHash; one != nil && other != nil &&
		!bytes.Equal(one, other) {
		return false
	}
	x, y := *a, *b
	x.ExternalTransactionHash, y.ExternalTransactionHash = nil, nil
	x.Plain, y.Plain = false, false
	if reflect.DeepEqual(&x, &y) {
		return true
	}
	canonicalUpdate(&x)
	canonicalUpdate(&y)
	return reflect.DeepEqual(&x, &y)
}

// AlikeJSON reports whether two values of a payload say the same. A server may render what it stores anew, so what
// differs only in this is no difference: a member of an object that is null or is left out, the order of members,
// escapes and white space, and the form of a number, which may stand in a text: 1.50 is 1.5, and 5.000E-7 is 0.0000005.
// nil, no value at all, is like nothing else.
func AlikeJSON(a, b JSON) bool {
	return bytes.Equal(a, b) || a != nil && b != nil && bytes.Equal(canonical(a), canonical(b))
}

// AlikeExtra is AlikeJSON for the unknown members of an object: an object without members is like none.
func AlikeExtra(a, b JSON) bool { return bytes.Equal(canonicalExtra(a), canonicalExtra(b)) }

// canonicalUpdate replaces the JSON values of an update of a network by their canonical form. It changes no list that
// is shared.
func canonicalUpdate(u *Update) {
	u.Extra = canonicalExtra(u.Extra)
	u.Created, u.Exercised, u.Assigned = slices.Clone(u.Created), slices.Clone(u.Exercised), slices.Clone(u.Assigned)
	u.Unassigned, u.Unknown = slices.Clone(u.Unassigned), slices.Clone(u.Unknown)
	for i := range u.Created {
		c := &u.Created[i]
		c.Argument, c.Extra = canonical(c.Argument), canonicalExtra(c.Extra)
	}
	for i := range u.Exercised {
		e := &u.Exercised[i]
		e.Argument, e.Result, e.Extra = canonical(e.Argument), canonical(e.Result), canonicalExtra(e.Extra)
	}
	for i := range u.Assigned {
		u.Assigned[i].Extra = canonicalExtra(u.Assigned[i].Extra)
	}
	for i := range u.Unassigned {
		u.Unassigned[i].Extra = canonicalExtra(u.Unassigned[i].Extra)
	}
	for i := range u.Unknown {
		u.Unknown[i].Raw = canonical(u.Unknown[i].Raw)
	}
}

func canonicalExtra(extra JSON) JSON {
	if extra = canonical(extra); string(extra) == "{}" {
		return nil
	}
	return extra
}

// canonical returns a form of a value that is equal for all values that AlikeJSON treats as equal, and for no others. A
// value that can't be read is returned unchanged.
func canonical(value JSON) JSON {
	if value == nil {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowInvalidUTF8(true))
	into, err := appendCanonical(nil, d)
	if _, rest := d.ReadToken(); err != nil || !errors.Is(rest, io.EOF) {
		return value
	}
	return into
}

func appendCanonical(into JSON, d *jsontext.Decoder) (JSON, error) {
	switch d.PeekKind() {
	case '{':
		return appendCanonicalObject(into, d)
	case '[':
		_, err := d.ReadToken()
		for into = append(into, '['); err == nil && d.PeekKind() != ']'; {
			if into, err = appendCanonical(into, d); err == nil {
				into = append(into, ',')
			}
		}
		if err == nil {
			_, err = d.ReadToken()
		}
		return append(into, ']'), err
	}
	value, err := d.ReadValue()
	switch {
	case err != nil:
		return into, err
	case value.Kind() == '"':
		return appendCanonicalText(into, value), nil
	case value.Kind() == '0':
		return appendCanonicalNumber(into, value), nil
	}
	return append(into, value...), nil
}

func appendCanonicalObject(into JSON, d *jsontext.Decoder) (JSON, error) {
	var members []string
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != '}' {
		var member JSON
		if member, err = d.ReadValue(); err != nil {
			break
		}
		member = appendCanonicalName(nil, member)
		if d.PeekKind() == 'n' {
			err = d.SkipValue()
			continue
		}
		member, err = appendCanonical(append(member, ':'), d)
		members = append(members, string(member))
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	slices.Sort(members)
	into = append(append(into, '{'), strings.Join(members, ",")...)
	return append(into, '}'), err
}

func appendCanonicalText(into, text JSON) JSON {
	if plain, err := jsontext.AppendUnquote(nil, text); err == nil && mayBeNumber(plain) {
		return append(appendCanonicalNumber(append(into, '"'), plain), '"')
	}
	return appendCanonicalName(into, text)
}

// appendCanonicalName appends the name of a member, or another text that is no number.
func appendCanonicalName(into, text JSON) JSON {
	plain, err := jsontext.AppendUnquote(nil, text)
	if err == nil {
		var quoted JSON
		if quoted, err = jsontext.AppendQuote(into, plain); err == nil {
			return quoted
		}
	}
	return append(into, text...) // the half of a surrogate pair
}

// mayBeNumber reports whether a text consists of what numbers consist of, and has no leading zero: 007 is a name.
func mayBeNumber(text []byte) bool {
	digits := bytes.TrimPrefix(text, []byte("-"))
	return len(digits) > 0 && digits[0] >= '0' && digits[0] <= '9' && (digits[0] != '0' || len(digits) == 1 ||
		bytes.IndexByte([]byte(".eE"), digits[1]) >= 0) && len(bytes.Trim(digits, "0123456789.eE+-")) == 0
}

// appendCanonicalNumber appends a number in the form that equal numbers share; what is no number of a bounded size as
// it is.
func appendCanonicalNumber(into, number []byte) []byte {
	d, err := ParseDecimal(string(number))
	if err != nil {
		return append(into, number...)
	}
	return d.appendNumber(into)
}
