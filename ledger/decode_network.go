package ledger

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// DecodeNetworkUpdates decodes the answer of a Scan's POST /v2/updates (interface.md, "Updates of a network"). Offsets
// are those of [NetworkOffset]; they must grow from update to update and lie above after. Node ids number the events of
// a transaction's tree in depth-first order. A consuming exercise archives, as in the ledger effects of a participant.
// The service sends no witnesses, so they are nil.
//
// The service shows what one party sees: reader, or "" if that is not known. If that party is no stakeholder of a
// created contract, the creation's ACSDelta is false, because the service may not show the contract's end. All other
// ACSDelta are nil: not sent.
//
// Unknown members are kept as by [DecodeUpdateList], events of an unknown type as unknown elements. All errors are
// *DecodeError. The result shares no memory with body, but it shares texts and lists with earlier results: don't change
// it.
func DecodeNetworkUpdates(body []byte, after Offset, reader string) ([]Update, error) {
	form := answer{levels: 2, list: "transactions", plain: true}
	return decode(body, form, func(d *decoder) []Update {
		list := networkList{after: after, reader: reader}
		networkListMembers.read(d, &list)
		return list.updates
	})
}

// DecodeNetworkUpdate decodes one such update, as a Scan's GET /v2/updates/{update_id} serves it.
func DecodeNetworkUpdate(body []byte, reader string) (Update, error) {
	return decode(body, answer{plain: true}, func(d *decoder) (update Update) {
		d.networkUpdate(&update, reader)
		return update
	})
}

type networkList struct {
	updates []Update
	after   Offset
	reader  string
}

var networkListMembers = membersOf(must("transactions", (*decoder).networkUpdates)).withoutUnknown()

func (d *decoder) networkUpdates(l *networkList) {
	l.updates = elements(d, &d.lexicon.updates, func(update *Update, begun int) bool {
		d.networkUpdate(update, l.reader)
		if !d.refused && update.Offset <= l.after {
			d.refuseAt(begun, "record_time", fmt.Errorf("updates must come in the order of migration id and record time: %s "+
				"comes after %s",
				networkPlace(update.Offset), networkPlace(l.after)))
		}
		l.after = update.Offset
		return true
	})
}

// networkItem is an update of a network as served: a reassignment if it has the member event, else a transaction.
type networkItem struct {
	*Update
	migration *int64
	roots     []string
	tree      bool // events_by_id was read
	moved     *networkReassignment
}

func (d *decoder) networkUpdate(into *Update, reader string) {
	begun, unusual := d.here(), d.unusual
	*into = Update{}
	item := networkItem{Update: into}
	d.tree = d.tree[:0]
	into.Extra = networkMembers.read(d, &item)
	d.eventLists.moveTo(into)
	switch {
	case d.refused:
		return
	case item.moved != nil:
		d.networkMoved(begun, &item)
	default:
		d.networkTransaction(begun, &item)
	}
	if d.refused {
		return
	}
	offset, err := NetworkOffset(*item.migration, into.RecordTime)
	if err != nil {
		d.refuseAt(begun, "record_time", err)
		return
	}
	into.Offset = offset
	for i := range into.Created {
		into.Created[i].Offset = offset
	}
	for i := range into.Unassigned {
		into.Unassigned[i].Offset = offset
	}
	markWitnessed(into, reader)
	into.Plain = d.unusual == unusual && d.at-begun <= mostPlain
}

var networkMembers = membersOf(
	must("update_id", func(d *decoder, u *networkItem) { u.ID = d.rareID() }),
	may("migration_id", func(d *decoder, u *networkItem) { u.migration = d.optionalInt64() }),
	may("workflow_id", func(d *decoder, u *networkItem) { u.WorkflowID = d.rareText() }),
	must("record_time", func(d *decoder, u *networkItem) { u.RecordTime = d.time() }),
	may("synchronizer_id", func(d *decoder, u *networkItem) { u.SynchronizerID = d.commonText() }),
	may("effective_at", func(d *decoder, u *networkItem) { u.EffectiveAt = d.time() }),
	may("root_event_ids", func(d *decoder, u *networkItem) { u.roots = d.idList() }),
	may("events_by_id", (*decoder).networkEvents),
	may("external_transaction_hash", func(d *decoder, u *networkItem) { u.ExternalTransactionHash = d.hex() }),
	// ignored: each participant behind the service has its own
	may("offset", func(d *decoder, _ *networkItem) { d.value() }),
	may("event", func(d *decoder, u *networkItem) {
		u.moved = new(networkReassignment)
		u.moved.extra = networkMovedMembers.read(d, u.moved)
	}),
)

// networkTransaction checks that a transaction is complete, and numbers its events.
func (d *decoder) networkTransaction(begun int, item *networkItem) {
	item.Kind = KindTransaction
	for _, member := range []struct {
		name    string
		present bool
	}{
		{"events_by_id", item.tree}, {"root_event_ids", item.roots != nil}, {"migration_id", item.migration != nil},
		{"synchronizer_id", item.SynchronizerID != nil}, {"effective_at", item.EffectiveAt.Valid},
	} {
		if !member.present {
			d.refuseAt(begun, member.name, errMissing)
			return
		}
	}
	d.numberEvents(begun, item)
}

// networkReassignment is the event of a reassignment: an assignment if it has a creation, else an unassignment.
type networkReassignment struct {
	submitter      *string
	source, target string
	migration      int64
	id             string
	counter        int64
	created        bool
	createdID      string // event id of the creation
	contractID     string
	extra          JSON
}

var networkMovedMembers = membersOf(
	may("submitter", func(d *decoder, m *networkReassignment) { m.submitter = d.rareText() }),
	must("source_synchronizer", func(d *decoder, m *networkReassignment) { m.source = *d.commonText() }),
	must("target_synchronizer", func(d *decoder, m *networkReassignment) { m.target = *d.commonText() }),
	must("migration_id", func(d *decoder, m *networkReassignment) { m.migration = d.int64() }),
	must("unassign_id", func(d *decoder, m *networkReassignment) { m.id = d.copyText(d.chars()) }),
	must("reassignment_counter", func(d *decoder, m *networkReassignment) { m.counter = d.int64() }),
	may("created_event", func(d *decoder, m *networkReassignment) {
		m.created = true
		m.createdID = d.networkCreation(OriginAssignment)
	}),
	may("contract_id", func(d *decoder, m *networkReassignment) { m.contractID = d.rareID() }),
)

// networkMoved checks a reassignment and makes its event. An assignment has the migration id and the synchronizer of
// its target, an unassignment those of its source. The service does not send the template of an unassigned contract:
// template id and package are empty.
func (d *decoder) networkMoved(begun int, item *networkItem) {
	m := item.moved
	item.Kind = KindReassignment
	own := &m.target
	switch {
	case item.tree || item.roots != nil:
		d.refuseAt(begun, "event", errors.New("stands beside the events of a transaction"))
		return
	case m.created == (m.contractID != ""):
		d.refuseAt(begun, "event", errors.New("is neither an assignment, with created_event, nor an unassignment, with "+
			"contract_id"))
		return
	case m.created:
		c := &item.Created[0]
		d.keepEventID(&c.Extra, item.ID, m.createdID, 0)
		*d.assigned.add() = AssignedEvent{
			ContractID: c.ContractID, TemplateID: c.TemplateID, PackageName: c.PackageName, Source: m.source, Target: m.target,
			ReassignmentID: m.id, Submitter: m.submitter, ReassignmentCounter: m.counter, Extra: m.extra,
		}
		item.Assigned = d.assigned.take()
	default:
		*d.unassigned.add() = UnassignedEvent{
			ContractID: m.contractID, Source: m.source, Target: m.target,
			ReassignmentID: m.id, Submitter: m.submitter, ReassignmentCounter: m.counter, Extra: m.extra,
		}
		item.Unassigned = d.unassigned.take()
		own = &m.source
	}
	switch {
	case item.migration != nil && *item.migration != m.migration:
		d.refuseAt(begun, "migration_id", fmt.Errorf("is %d, and that of the event is %d", *item.migration, m.migration))
	case item.SynchronizerID != nil && *item.SynchronizerID != *own:
		d.refuseAt(begun, "synchronizer_id", fmt.Errorf("is %s, and the event is on %s", *item.SynchronizerID, *own))
	}
	item.migration, item.SynchronizerID = &m.migration, d.lexicon.name([]byte(*own))
}

// markWitnessed sets ACSDelta to false for the creations of contracts of which the reader is no stakeholder, and for
// the exercises of these contracts in the same update.
func markWitnessed(u *Update, reader string) {
	if reader == "" {
		return
	}
	var witnessed map[string]bool
	for i := range u.Created {
		c := &u.Created[i]
		if slices.Contains(c.Signatories, reader) || slices.Contains(c.Observers, reader) {
			continue
		}
		c.ACSDelta = new(false)
		if witnessed == nil {
			witnessed = map[string]bool{}
		}
		witnessed[c.ContractID] = true
	}
	for i := range u.Exercised {
		if e := &u.Exercised[i]; witnessed[e.ContractID] {
			e.ACSDelta = new(false)
		}
	}
}

func (d *decoder) hex() []byte {
	text := d.chars()
	blob := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(blob, bytes.ToLower(text)); err != nil {
		d.refuse(fmt.Errorf("is not a text of hexadecimal digits: %q", shorten(text)))
	}
	return blob
}

func (d *decoder) idList() []string {
	ids := []string{}
	for next := d.begin(); next && !d.refused; next = d.more() {
		ids = append(ids, d.copyText(d.chars()))
	}
	return ids
}
