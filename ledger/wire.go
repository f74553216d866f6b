package ledger

import "github.com/go-json-experiment/json/jsontext"

// The wire structs mirror the server's JSON member by member. A sum type is a struct with one pointer per known
// variant. The last field of each takes the members that this version does not know, as one object. Those of updates and of
// snapshots say themselves where the value of a member belongs (member); those of answers that are small or rare are read by
// reflection, by their tags. Of a tag for unknown members, the module calls the option embed, and the toolchain's own package,
// for which the module stands in when built with GOEXPERIMENT=jsonv2, calls it unknown: either ignores the other's name
// without a word.
//
// Leaves are spans: the decoder checks the syntax and says where a value lies, and the conversion to the domain
// types reads it there. So a payload keeps its bytes, null and absent can be told from empty without a pointer
// per field, and a text is judged with its field's name at hand.

// span is where a JSON value lies in the body. The zero span is an absent member.
type span struct{ from, to int }

func (s *span) readFrom(from source) error {
	value, err := from.ReadValue()
	if err != nil {
		return err
	}
	s.to = int(from.InputOffset())
	s.from = s.to - len(value)
	return nil
}

// UnmarshalJSONFrom notes where the next value lies.
func (s *span) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return s.readFrom(dec) }
