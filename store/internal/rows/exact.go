package rows

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/ledger"
)

// The limits of jsonb: those of PostgreSQL's numeric, and a depth of nesting at which its recursive parser and printer
// stay within the max_stack_depth of every server.
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
	depth := 0
	for i := 0; i < len(value); {
		switch c := value[i]; {
		case c == '"':
			end, reason := scanString(value, i+1)
			if reason != "" {
				return reason
			}
			i = end
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return "nested too deep for jsonb"
			}
			i++
		case c == '}' || c == ']':
			depth--
			i++
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(value) && bytes.IndexByte([]byte("+-.eE0123456789"), value[end]) >= 0 {
				end++
			}
			if numberTooLong(value[i:end]) {
				return "a number out of the range of numeric"
			}
			i = end
		default:
			i++
		}
	}
	return ""
}

// scanString reads on from the first byte inside a string to the one after its closing quote.
func scanString(value []byte, i int) (end int, reason string) {
	quote := i
	for {
		if quote = max(quote, i); value[quote] != '"' { // the next quote, unless it is known
			quote += bytes.IndexByte(value[quote:], '"')
		}
		escape := bytes.IndexByte(value[i:quote], '\\')
		if escape < 0 {
			return quote + 1, ""
		}
		if i += escape; value[i+1] != 'u' {
			i += 2
			continue
		}
		unit := hex4(value[i+2:])
		switch {
		case unit == 0:
			return 0, "a NUL"
		case unit&0xfc00 == 0xdc00:
			return 0, "a lone surrogate"
		case unit&0xfc00 == 0xd800:
			if i+12 > len(value) || value[i+6] != '\\' || value[i+7] != 'u' || hex4(value[i+8:])&0xfc00 != 0xdc00 {
				return 0, "a lone surrogate"
			}
			i += 12
		default:
			i += 6
		}
	}
}

func hex4(digits []byte) (unit uint32) {
	for _, c := range digits[:4] {
		unit <<= 4
		switch {
		case c <= '9':
			unit |= uint32(c - '0')
		case c >= 'a':
			unit |= uint32(c-'a') + 10
		default:
			unit |= uint32(c-'A') + 10
		}
	}
	return unit
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
