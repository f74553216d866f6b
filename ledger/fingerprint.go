package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint returns 64 bits of a SHA-256 hash that identify a record, whatever service and release served it. The
// hash covers the content of a record without what differs between services and releases: the offset, the round, the
// domain, the word for the unit, the types that interface.md does not have, balance changes, fees and unknown members.
// For a record of an unknown kind it covers everything but the offset; of one that follows from an update, only its id
// and type, because the rest may be redacted there. It is stored, so what it covers must not change.
func (t *Record) Fingerprint() int64 {
	var room [512]byte // enough for most records, so that these need no allocation
	text := appendText(room[:0], t.EventID)
	text = appendText(text, t.Kind)
	if t.Kind != RecordUnknown {
		text = binary.AppendVarint(text, t.Date.Time.UnixMicro())
	}
	switch t.Kind {
	case RecordTransfer:
		text = appendText(text, t.Transfer.Sender.Party)
		text = binary.AppendUvarint(text, uint64(len(t.Transfer.Receivers)))
		for i := range t.Transfer.Receivers {
			text = appendText(text, t.Transfer.Receivers[i].Party)
			text = appendAmount(text, t.Transfer.Receivers[i].Amount)
		}
		text = appendOptional(text, t.Transfer.InstructionCID)
	case RecordMint:
		text = appendOwned(text, t.Mint)
	case RecordTap:
		text = appendOwned(text, t.Tap)
	case RecordAbort:
		text = appendText(text, t.Abort.InstructionCID)
	default:
		text = appendOptional(text, t.Type)
		if t.Rules == 0 {
			text = appendText(text, withoutOffset(t.Raw))
		}
	}
	sum := sha256.Sum256(text)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// appendText appends a text after its length, so that different lists of texts stay different.
func appendText[Text ~string | ~[]byte](to []byte, text Text) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func appendOptional(to []byte, text *string) []byte {
	if text == nil {
		return append(to, 0)
	}
	return appendText(append(to, 1), *text)
}

func appendAmount(to []byte, amount Decimal) []byte {
	var room [64]byte
	return appendText(to, amount.appendNumber(room[:0]))
}

func appendOwned(to []byte, owned *OwnedAmount) []byte {
	return appendAmount(appendText(to, owned.Owner), owned.Amount)
}

// withoutOffset returns a record without its offset, in a form that does not depend on the order of members, white
// space or escapes.
func withoutOffset(record JSON) JSON {
	dec := jsontext.NewDecoder(bytes.NewBuffer(record), jsontext.AllowInvalidUTF8(true))
	rest := make(JSON, 0, len(record))
	_, err := dec.ReadToken() // the object's start
	for err == nil && dec.PeekKind() == '"' {
		var name, value jsontext.Value
		if name, err = dec.ReadValue(); err != nil {
			break
		}
		start := len(rest)
		rest = append(append(append(rest, ','), name...), ':')
		if unquoted, _ := jsontext.AppendUnquote(nil, name); string(unquoted) == "offset" {
			rest = rest[:start]
			err = dec.SkipValue()
			continue
		}
		value, err = dec.ReadValue()
		rest = append(rest, value...)
	}
	if err == nil {
		if len(rest) == 0 {
			rest = append(rest, ',')
		}
		rest[0] = '{'
		rest = append(rest, '}')
		// Numbers keep their digits, which the usual canonical form would round. Halves of surrogate pairs would all look
		// the same, so that escapes stay where there are any.
		err = rest.Format(jsontext.AllowInvalidUTF8(true), jsontext.ReorderRawObjects(true),
			jsontext.PreserveRawStrings(!rest.IsValid()))
	}
	if err != nil {
		panic("ledger: a record that was decoded once is JSON: " + err.Error())
	}
	return rest
}
