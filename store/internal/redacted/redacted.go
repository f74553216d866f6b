// Package redacted knows which contracts and updates an operator has redacted, and takes their content out of what was
// read, before anything is made of it: rows, what contracts hold, and what is compared with stored rows.
//
// Table.Content in package tables says which columns hold content; stored rows are erased by it. A test compares the
// rows that are written of redacted elements with those that erasing leaves.
package redacted

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
)

var queries = dbsqlc.New()

// The kinds of what is redacted, as they stand in the database.
const (
	Contract = "contract"
	Update   = "update"
)

// TimeFields are the fields of exact values that are times. They are no content, and stay.
var TimeFields = []string{"recordTime", "effectiveAt", "createdAt", "assignmentExclusivity", "date"}

// Set is what was redacted. It never changes; nil is empty.
type Set struct{ contracts, updates map[string]bool }

// New returns the set of some contracts and updates.
func New(contracts, updates []string) *Set {
	if len(contracts)+len(updates) == 0 {
		return nil
	}
	s := &Set{contracts: map[string]bool{}, updates: map[string]bool{}}
	for _, id := range contracts {
		s.contracts[id] = true
	}
	for _, id := range updates {
		s.updates[id] = true
	}
	return s
}

// Read reads what was redacted.
func Read(ctx context.Context, db dbsqlc.DBTX) (_ *Set, err error) {
	defer pg.Wrap(&err, "read what was redacted")
	list, err := queries.RedactionIDs(ctx, db)
	var contracts, updates []string
	for _, r := range list {
		if r.Kind == Contract {
			contracts = append(contracts, r.ID)
		} else {
			updates = append(updates, r.ID)
		}
	}
	return New(contracts, updates), err
}

// With returns the set with some more.
func (s *Set) With(contracts, updates []string) *Set {
	if s != nil {
		contracts, updates = slices.AppendSeq(slices.Clone(contracts), maps.Keys(s.contracts)),
			slices.AppendSeq(slices.Clone(updates), maps.Keys(s.updates))
	}
	return New(contracts, updates)
}

// Has reports whether a contract or an update was redacted.
func (s *Set) Has(kind, id string) bool {
	switch {
	case s == nil:
		return false
	case kind == Contract:
		return s.contracts[id]
	default:
		return s.updates[id]
	}
}

// Pages returns pages without what was redacted. It does not change its argument.
func (s *Set) Pages(pages []ledger.Page) []ledger.Page {
	if s == nil {
		return pages
	}
	pages = slices.Clone(pages)
	for i := range pages {
		pages[i] = s.Page(pages[i])
	}
	return pages
}

// Page is like Pages, for one page.
func (s *Set) Page(page ledger.Page) ledger.Page {
	if s == nil {
		return page
	}
	cloned := false
	for i := range page.Updates {
		if !s.concerns(&page.Updates[i]) {
			continue
		}
		if !cloned {
			page.Updates, cloned = slices.Clone(page.Updates), true
		}
		u := &page.Updates[i]
		u.Redact(s.updates[u.ID], s.element)
	}
	return page
}

// concerns reports whether anything of an update was redacted.
func (s *Set) concerns(u *ledger.Update) bool {
	if s.updates[u.ID] {
		return true
	}
	for e := range u.All {
		if s.element(e) {
			return true
		}
	}
	return false
}

// element reports whether an element is of a contract that was redacted.
func (s *Set) element(e ledger.Element) bool {
	if unknown, is := e.(*ledger.UnknownElement); is {
		return s.named(unknown.Raw)
	}
	return s.contracts[e.Contract()]
}

// without applies a change to each element of a copy of a list.
func without[T any](list []T, change func(*T)) []T {
	list = slices.Clone(list)
	for i := range list {
		change(&list[i])
	}
	return list
}

// named reports whether JSON of an unknown form names a contract that was redacted.
func (s *Set) named(raw ledger.JSON) bool {
	if len(s.contracts) == 0 || raw == nil {
		return false
	}
	plain := raw
	if bytes.IndexByte(raw, '\\') >= 0 {
		plain = raw.Clone()
		if plain.Canonicalize() != nil { // half of a surrogate pair, or a name twice: it is searched as it was sent
			plain = raw
		}
	}
	for id := range s.contracts {
		if bytes.Contains(raw, []byte(id)) || bytes.Contains(plain, []byte(id)) {
			return true
		}
	}
	return false
}

// Entries returns entries of a snapshot without what was redacted. It does not change its argument.
func (s *Set) Entries(entries []ledger.ContractEntry) []ledger.ContractEntry {
	if s == nil {
		return entries
	}
	return without(entries, func(e *ledger.ContractEntry) {
		switch {
		case e.Active != nil && s.contracts[e.Active.Created.ContractID]:
			a := *e.Active
			a.Created.Redact()
			a.Extra, e.Extra, e.Active = nil, nil, &a
		case e.Unassigned != nil && s.contracts[e.Unassigned.Created.ContractID]:
			u := *e.Unassigned
			u.Created.Redact()
			u.Unassigned.Redact()
			u.Extra, e.Extra, e.Unassigned = nil, nil, &u
		case e.Assigned != nil && s.contracts[e.Assigned.Created.ContractID]:
			a := *e.Assigned
			a.Created.Redact()
			a.Assigned.Redact()
			a.Extra, e.Extra, e.Assigned = nil, nil, &a
		case e.Unknown != nil && s.named(e.Unknown.Raw):
			e.Unknown, e.Extra = &ledger.UnknownElement{NodeID: e.Unknown.NodeID, Kind: e.Unknown.Kind}, nil
		}
	})
}

// Lookup returns the outcome of a look-up without what was redacted.
func (s *Set) Lookup(lookup ledger.Lookup) ledger.Lookup {
	if s == nil || lookup.Contract == nil || !s.contracts[lookup.ContractID] {
		return lookup
	}
	c := *lookup.Contract
	c.Argument, c.ContractKey, c.ContractKeyHash = nil, nil, nil
	lookup.Contract = &c
	return lookup
}

// Record returns a record of the transaction history without what was redacted. Who paid whom, how much and when stays:
// balances are sums of it.
func (s *Set) Record(t *ledger.Record) *ledger.Record {
	if s == nil || !s.updates[updateOf(t.EventID)] && !s.instructed(t) && !s.named(t.Raw) {
		return t
	}
	return bare(t)
}

// Records returns the records of an update without what was redacted, and without what exercises of redacted contracts
// say in them.
func (s *Set) Records(u *ledger.TransferUpdate) []ledger.Record {
	list, said := u.Records(), s.Said(u)
	for i := range list {
		list[i] = *s.Record(&list[i])
		if slices.Contains(said, list[i].EventID) {
			list[i] = *bare(&list[i])
		}
	}
	return list
}

// Said returns the event ids of the records that exercises of redacted contracts make.
func (s *Set) Said(u *ledger.TransferUpdate) (eventIDs []string) {
	for i := range u.Exercises {
		if e := &u.Exercises[i]; s.Has(Contract, e.ContractID) {
			eventIDs = append(eventIDs, ledger.EventIDOf(u.ID, e.NodeID))
		}
	}
	return eventIDs
}

// bare returns a record without its content.
func bare(t *ledger.Record) *ledger.Record {
	r := *t
	r.Raw, r.Extra = nil, nil
	if t.Transfer != nil {
		transfer := *t.Transfer
		transfer.Description, transfer.DescriptionExact, transfer.Extra, transfer.Sender.Extra = nil, nil, nil, nil
		transfer.Receivers = without(transfer.Receivers, func(x *ledger.Receiver) { x.Extra = nil })
		transfer.BalanceChanges = without(transfer.BalanceChanges, func(x *ledger.BalanceChange) { x.Extra = nil })
		r.Transfer = &transfer
	}
	for _, owned := range []**ledger.OwnedAmount{&r.Mint, &r.Tap} {
		if *owned != nil {
			amount := **owned
			amount.Extra = nil
			*owned = &amount
		}
	}
	if t.Abort != nil {
		abort := *t.Abort
		abort.Extra = nil
		r.Abort = &abort
	}
	return &r
}

// instructed reports whether a record is of a transfer instruction that was redacted.
func (s *Set) instructed(t *ledger.Record) bool {
	return t.Abort != nil && s.contracts[t.Abort.InstructionCID] ||
		t.Transfer != nil && t.Transfer.InstructionCID != nil && s.contracts[*t.Transfer.InstructionCID]
}

// updateOf returns the update id in an event id, as the database's function update_id_of does; empty: the id has
// another form.
func updateOf(eventID string) string {
	head, isID := strings.CutPrefix(strings.TrimRight(eventID, "0123456789"), "#")
	head, isTrimmed := strings.CutSuffix(head, ":")
	if !isID || !isTrimmed || strings.HasSuffix(eventID, ":") {
		return ""
	}
	return head
}
