package ledger

import (
	"bytes"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Alike reports whether two Scan services of one network have sent the same update. It ignores the differences that services may have:
// the external transaction hash, members that one sends as null and the other leaves out, the order of members, and how a decimal number
// is written.
func Alike(a, b *Update) bool {
	if a.Offset != b.Offset || a.ID != b.ID {
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

// canonicalUpdate replaces the JSON values of an update of a network by their canonical form. It changes no list that is shared.
func canonicalUpdate(u *Update) {
	u.Extra = canonical(u.Extra)
	u.Created, u.Exercised, u.Assigned = slices.Clone(u.Created), slices.Clone(u.Exercised), slices.Clone(u.Assigned)
	u.Unassigned, u.Unknown = slices.Clone(u.Unassigned), slices.Clone(u.Unknown)
	for i := range u.Created {
		c := &u.Created[i]
		c.Argument, c.Extra = canonical(c.Argument), canonical(c.Extra)
	}
	for i := range u.Exercised {
		e := &u.Exercised[i]
		e.Argument, e.Result, e.Extra = canonical(e.Argument), canonical(e.Result), canonical(e.Extra)
	}
	for i := range u.Assigned {
		u.Assigned[i].Extra = canonical(u.Assigned[i].Extra)
	}
	for i := range u.Unassigned {
		u.Unassigned[i].Extra = canonical(u.Unassigned[i].Extra)
	}
	for i := range u.Unknown {
		u.Unknown[i].Raw = canonical(u.Unknown[i].Raw)
	}
}

// canonical returns a form of a value that is equal for all values that Alike treats as equal. A value that can't be read is returned
// unchanged.
func canonical(value JSON) JSON {
	if value == nil {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowInvalidUTF8(true))
	into, err := appendCanonical(nil, d)
	if err != nil {
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
	if err == nil && value.Kind() == '"' {
		return appendCanonicalText(into, value)
	}
	return append(into, value...), err
}

func appendCanonicalObject(into JSON, d *jsontext.Decoder) (JSON, error) {
	var members []string
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != '}' {
		var member JSON
		if member, err = appendCanonical(nil, d); err != nil { // its name
			break
		}
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

// decimalForm is a text that Daml's decimals may have: services write zero as "0E-10" or "0.0000000000".
var decimalForm = regexp.MustCompile(`^-?[0-9]{1,40}(\.[0-9]{1,40}(E[+-]?[0-9]{1,2})?|E[+-]?[0-9]{1,2})$`)

func appendCanonicalText(into JSON, text JSON) (JSON, error) {
	plain, err := jsontext.AppendUnquote(nil, text)
	if err != nil {
		return append(into, text...), nil // the half of a surrogate pair
	}
	if decimalForm.Match(plain) {
		if number, ok := new(big.Rat).SetString(string(plain)); ok {
			return append(append(append(into, '"'), number.RatString()...), '"'), nil
		}
	}
	return jsontext.AppendQuote(into, plain)
}
