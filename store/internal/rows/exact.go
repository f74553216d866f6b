package rows

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/ledger"
)

// Values that jsonb can't hold are kept as they were sent (Exact). These are its limits: those of PostgreSQL's numeric,
// and a depth of nesting at which its recursive parser and printer stay within the max_stack_depth of every server.
const (
	maxNesting        = 1_000
	maxNumberDigits   = 131_072 // before the decimal point
	maxNumberFraction = 16_383  // after it

	// jsonb holds up to 256 MB, and takes up to six times the room of the text ([1,1,…]).
	maxBytes = 32 << 20
)

// Exact collects what the columns of one row cannot hold: an object with the JSON of each such value as a text, by the
// name of its field.
type Exact struct {
	fields []byte
	plain  bool // the values that come are known to be none of those
}

// Value returns what the row's own jsonb column takes: the value itself, or where jsonb refuses it a stand-in that
// says why, while the value is kept exactly.
func (k *Exact) Value(field string, value ledger.JSON) []byte {
	if value == nil || k.plain {
		return value
	}
	reason := jsonbRefuses(value)
	if reason == "" {
		return value
	}
	k.keep(field, value)
	return []byte(`{"$exact": "` + reason + `"}`)
}

// Time keeps the text of a time that says more than microseconds can.
func (k *Exact) Time(field string, t ledger.Time) {
	if t.Exact != "" {
		k.keep(field, []byte(`"`+t.Exact+`"`))
	}
}

// keep keeps JSON, which is UTF-8 and has NULs and halves of surrogate pairs as escapes only: as a text, jsonb takes
// it.
func (k *Exact) keep(field string, exact []byte) {
	before := byte(',')
	if k.fields == nil {
		before = '{'
	}
	k.fields = append(k.fields, before)
	k.fields = strconv.AppendQuote(k.fields, field)
	k.fields = append(k.fields, ':')
	k.fields, _ = jsontext.AppendQuote(k.fields, exact) // whatever is no UTF-8 was refused when it was decoded
}

// Column returns the value of the row's column exact, nil for none, and begins the next row.
func (k *Exact) Column() []byte {
	if k.fields == nil {
		return nil
	}
	column := append(k.fields, '}')
	k.fields = nil
	return column
}

// jsonbRefuses returns why jsonb cannot hold value, which is valid JSON; empty where it can.
func jsonbRefuses(value []byte) string {
	if len(value) > maxBytes {
		return "too large for jsonb"
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true))
	for {
		token, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil: // what else could be wrong was refused when it was decoded
			return "a lone surrogate"
		}
		switch token.Kind() {
		case '"':
			if strings.Contains(token.String(), "\x00") {
				return "a NUL"
			}
		case '0':
			if numberTooLong([]byte(token.String())) {
				return "a number out of the range of numeric"
			}
		case '{', '[':
			if d.StackDepth() > maxNesting {
				return "nested too deep for jsonb"
			}
		}
	}
}

// numberTooLong reports whether a JSON number has more digits, written out, than numeric holds.
func numberTooLong(number []byte) bool {
	if len(number) < 8 { // even 1e99999 has fewer digits than numeric holds
		return false
	}
	mantissa, exponentText, hasExponent := bytes.Cut(bytes.ToLower(number), []byte("e"))
	whole, fraction, _ := bytes.Cut(bytes.TrimPrefix(mantissa, []byte("-")), []byte("."))
	exponent := int64(0)
	if hasExponent {
		var err error
		if exponent, err = strconv.ParseInt(string(exponentText), 10, 32); err != nil {
			return true // valid JSON, so only the range can be wrong
		}
	}
	return int64(len(whole))+exponent > maxNumberDigits || int64(len(fraction))-exponent > maxNumberFraction
}
