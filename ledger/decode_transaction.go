package ledger

import (
	"bytes"
	"fmt"
)

// DecodeTransactions decodes the JSON object that /v0/transactions serves (interface.md, endpoint 6), in its order. The
// list must be there: an answer without one is not taken for the end. A record is what its one part and its
// transaction_type, where that is sent, say. Members, types and combinations of parts that are not known are kept, see
// [Transaction]; other members of the answer are no part of a record and are left out. All errors are *DecodeError. What is
// returned shares no memory with body, but texts with what was decoded before: nothing of it may be changed.
func DecodeTransactions(body []byte) ([]Transaction, error) {
	return decodeTwice(body, (*direct).transactions, (*decoding).transactions)
}

func (d *decoding) transactions() ([]Transaction, error) {
	var records []Transaction
	var wire part[wireRecord]
	found := false
	err := d.members(func(name string) error {
		if name != "transactions" {
			return d.dec.SkipValue()
		}
		found = true
		return d.list(2, func(element int) error {
			start := d.dec.InputOffset()
			if element == mostElements {
				return inRecord(element, findEventID(d.body[start:]), errTooMany)
			}
			wire.wire.reset()
			if err := wire.UnmarshalJSONFrom(d.dec); err != nil {
				return recordFromJSON(err, element, findEventID(d.body[start:]))
			}
			record, err := d.record(&wire, d.body[start:d.dec.InputOffset()])
			if err != nil {
				return inRecord(element, findEventID(d.body[start:]), err)
			}
			records = append(records, record)
			return nil
		})
	})
	if err == nil && !found {
		err = inElement(-1, 0, below("transactions", errMissing))
	}
	if err != nil {
		return nil, err
	}
	return records, nil
}

// record converts a record. Its JSON stands in text, behind what separates it from the record before.
func (r *reader) record(p *part[wireRecord], text []byte) (Transaction, error) {
	w, err := p.object()
	if err != nil {
		return Transaction{}, err
	}
	o := object{reader: r}
	t := Transaction{
		EventID: o.unique("event_id", w.EventID),
		Type:    o.optionalShared("transaction_type", w.Type),
	}
	if o.err != nil {
		return Transaction{}, o.err
	}
	if t.Kind, err = w.kind(t.Type); err != nil {
		return Transaction{}, err
	}
	if o.at(w.Date) == nil { // as interface.md allows; rows of the known kinds have one
		t.Kind = TransactionUnknown
	}
	if t.Kind == TransactionUnknown {
		t.Raw = bytes.Clone(bytes.TrimLeft(text, separators))
		t.Date = readable(r, func(o *object) Time { return o.optionalTime("", w.Date) })
		t.DomainID = readable(r, func(o *object) *string { return o.optionalIndexed("", w.DomainID) })
		t.Offset = readable(r, func(o *object) *string { return o.optionalText("", w.Offset) })
		t.Round = readable(r, func(o *object) *int64 { return o.optionalInt64("", w.Round) })
		return t, nil
	}
	t.Date = o.time("date", w.Date)
	t.DomainID = o.optionalIndexed("domain_id", w.DomainID)
	t.Offset = o.optionalText("offset", w.Offset)
	t.Round = o.optionalInt64("round", w.Round)
	t.Extra = w.Unknown
	switch t.Kind {
	case TransactionTransfer:
		t.Transfer, t.Word, err = r.transfer(&w.Transfer)
		o.fail("transfer", err)
	case TransactionMint:
		t.Mint, t.Word, err = r.owned(&w.Mint)
		o.fail("mint", err)
	case TransactionTap:
		t.Tap, t.Word, err = r.owned(&w.Tap)
		o.fail("tap", err)
	case TransactionAbort:
		t.Abort, err = r.abort(&w.Abort)
		o.fail("abort_transfer_instruction", err)
	}
	return t, o.err
}

// readable is a value of a record of an unknown kind: where it is not what is expected, it stays in the raw JSON alone.
func readable[T any](r *reader, read func(*object) T) T {
	o := object{reader: r}
	value := read(&o)
	if o.err != nil {
		var none T
		return none
	}
	return value
}

// kind is the kind of a record that holds one part. A type that the server tells (else nil) says the same, or is not known:
// then the kind is unknown, as that of a record with no part or several, of which interface.md does not say what they mean.
func (w *wireRecord) kind(typ *string) (TransactionKind, error) {
	known := [...]struct {
		typ, part string
		kind      TransactionKind
		present   bool
	}{
		{"transfer", "transfer", TransactionTransfer, w.Transfer.present()},
		{"mint", "mint", TransactionMint, w.Mint.present()},
		{"devnet_tap", "tap", TransactionTap, w.Tap.present()},
		{"abort_transfer_instruction", "abort_transfer_instruction", TransactionAbort, w.Abort.present()},
	}
	named, held, parts := -1, -1, 0
	for i := range known {
		if typ != nil && known[i].typ == *typ {
			named = i
		}
		if known[i].present {
			held = i
			parts++
		}
	}
	switch {
	case typ != nil && named < 0, parts > 1, typ == nil && parts == 0:
		return TransactionUnknown, nil
	case parts == 0:
		return "", below(known[named].part, fmt.Errorf("%w, and the transaction_type is %s", errMissing, *typ))
	case typ != nil && held != named:
		return "", below(known[held].part, fmt.Errorf("contradicts the transaction_type, which is %s", *typ))
	}
	return known[held].kind, nil
}
