package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// timeColumns are rewritten to the form that the truth has.
var timeColumns = []string{"record_time", "effective_at", "created_at", "assignment_exclusivity", "date",
	"locked_until", "execute_before", "requested_at", "ended_at", "opens_at", "target_closes_at"}

// DecodeRow makes a row of what SELECT row_to_json(r) FROM ledger.relation r gave, or to_jsonb(r): it leaves out the
// columns that the truth is known to leave out, and writes times as the truth does.
func DecodeRow(relation string, object []byte) (Row, error) {
	row, err := decodeRow(relation, object)
	if err != nil {
		return nil, fmt.Errorf("decode a row of %s: %w", relation, err)
	}
	return row, nil
}

func decodeRow(relation string, object []byte) (Row, error) {
	d := rowDecoder{rest: object}
	all, err := d.value()
	if err != nil {
		return nil, err
	}
	if d.next() != 0 {
		return nil, errors.New("there is more than one value")
	}
	row, ok := all.(map[string]any)
	if !ok {
		return nil, errors.New("it is no object")
	}
	for _, column := range besideAll {
		delete(row, column)
	}
	for _, column := range beside[relation] {
		delete(row, column)
	}
	for _, column := range timeColumns {
		v := row[column]
		if text, ok := v.(string); ok {
			t, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", column, err)
			}
			row[column] = t.UTC().Format(timeForm)
		}
	}
	return row, nil
}

// rowDecoder decodes JSON that PostgreSQL or this package wrote, with numbers as they are written. It is cheaper than
// encoding/json, which looks at every byte twice, and tests decode very many rows.
type rowDecoder struct{ rest []byte }

// next skips white space and returns the byte after it, or 0 at the end.
func (d *rowDecoder) next() byte {
	for len(d.rest) > 0 {
		switch d.rest[0] {
		case ' ', '\n', '\t', '\r':
			d.rest = d.rest[1:]
		default:
			return d.rest[0]
		}
	}
	return 0
}

// takes reports whether the next byte is this one, and skips it then.
func (d *rowDecoder) takes(c byte) bool {
	if d.next() != c {
		return false
	}
	d.rest = d.rest[1:]
	return true
}

func (d *rowDecoder) value() (any, error) {
	switch d.next() {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.text()
	}
	end := bytes.IndexAny(d.rest, ",]} \n\t\r")
	if end < 0 {
		end = len(d.rest)
	}
	word := d.rest[:end]
	d.rest = d.rest[end:]
	switch string(word) {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if len(word) == 0 || word[0] != '-' && (word[0] < '0' || word[0] > '9') || !json.Valid(word) {
		return nil, fmt.Errorf("%q is no JSON", word)
	}
	return json.Number(word), nil
}

func (d *rowDecoder) object() (any, error) {
	d.rest = d.rest[1:]
	object := map[string]any{}
	for first := true; !d.takes('}'); first = false {
		if !first && !d.takes(',') {
			return nil, d.broken("a comma or the end of an object")
		}
		if d.next() != '"' {
			return nil, d.broken("a key")
		}
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if !d.takes(':') {
			return nil, d.broken("a colon")
		}
		if object[key], err = d.value(); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func (d *rowDecoder) array() (any, error) {
	d.rest = d.rest[1:]
	array := []any{}
	for first := true; !d.takes(']'); first = false {
		if !first && !d.takes(',') {
			return nil, d.broken("a comma or the end of an array")
		}
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
	return array, nil
}

func (d *rowDecoder) text() (string, error) {
	escaped := false
	for i := 1; i < len(d.rest); i++ {
		switch d.rest[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			quoted := d.rest[:i+1]
			d.rest = d.rest[i+1:]
			if !escaped {
				return string(quoted[1:i]), nil
			}
			var text string
			err := json.Unmarshal(quoted, &text)
			return text, err
		}
	}
	return "", d.broken("the end of a text")
}

func (d *rowDecoder) broken(wanted string) error {
	return fmt.Errorf("%s is missing before %.20q", wanted, d.rest)
}
