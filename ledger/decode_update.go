package ledger

import (
	"errors"
	"fmt"
	"slices"
)

// mostElements limits the updates and checkpoints, or records of the transaction history, that are decoded of an
// answer: the smallest take a hundred times their JSON in memory. The indexer requests at most 2,000 updates, or 1,000
// records.
const mostElements = 100_000

// mostTimes limits the synchronizers in an offset checkpoint. Each becomes a row; a participant is connected to few.
const mostTimes = 1000

var errTooManyTimes = fmt.Errorf("is one more than the %d that are read: one for each synchronizer of the participant",
	mostTimes)

var errTooMany = fmt.Errorf("is one more than the %d that are read of an answer; no server serves as many at once",
	mostElements)

// UpdateList is a response with a list of updates.
type UpdateList struct {
	Updates     []Update
	Checkpoints []OffsetCheckpoint
	Elements    int    // updates and checkpoints together: what the server's limit counts
	Last        Offset // offset of the last element in the server's order; 0 where the list is empty
}

// UpdatePage is a response of /v2/updates/get-updates-page: everything of the range from Lowest (exclusive) to
// Highest (inclusive) that matches the request.
type UpdatePage struct {
	UpdateList
	Lowest  Offset // exclusive
	Highest Offset // inclusive
	Next    string // token of the next page; empty where the server gives none
}

// DecodeUpdateList decodes the JSON array that /v2/updates and /v2/updates/flats serve in ascending order
// (interface.md, "Update"). Offsets of updates must grow and be greater than after; a checkpoint may repeat the offset
// before it, or after itself. Unknown members and variants are kept, see [Update]. All errors are *DecodeError. The
// result shares no memory with body, but it shares texts and lists with earlier results: don't change it.
func DecodeUpdateList(body []byte, after Offset) (UpdateList, error) {
	return decode(body, answer{levels: 1}, func(d *decoder) UpdateList { return d.updates(order{last: after}) })
}

// DecodeUpdatePage decodes the JSON object that /v2/updates/get-updates-page serves in ascending order. Beside what
// holds for [DecodeUpdateList], the updates must lie within the page's own bounds. Unknown members of the page are
// ignored.
func DecodeUpdatePage(body []byte, after Offset) (UpdatePage, error) {
	return decode(body, answer{levels: 2, list: "updates"}, func(d *decoder) UpdatePage {
		page := updatePage{after: after}
		pageMembers.read(d, &page)
		page.check(d)
		return page.UpdatePage
	})
}

// DecodeUpdate decodes the JSON object that /v2/updates/update-by-id serves (interface.md, endpoint 5): an element of a
// list of updates, see [DecodeUpdateList]. A checkpoint is refused. All errors are *DecodeError.
func DecodeUpdate(body []byte) (Update, error) {
	return decode(body, answer{}, func(d *decoder) (update Update) {
		if checkpoint := d.listed(&update); checkpoint != nil {
			d.refuseAt(0, "update", errors.New("is an OffsetCheckpoint where an update is expected"))
		}
		return update
	})
}

// updatePage is a page of updates that must lie above an offset.
type updatePage struct {
	UpdatePage
	after Offset
}

var pageMembers = membersOf(
	may("updates", func(d *decoder, p *updatePage) { p.UpdateList = d.updates(order{last: p.after}) }),
	must("lowestPageOffsetExclusive", func(d *decoder, p *updatePage) { p.Lowest = d.bound() }),
	must("highestPageOffsetInclusive", func(d *decoder, p *updatePage) { p.Highest = d.bound() }),
	may("nextPageToken", func(d *decoder, p *updatePage) { p.Next = string(d.chars()) }),
).withoutUnknown()

func (p *updatePage) check(d *decoder) {
	if p.Highest < p.Lowest {
		d.refuseAt(0, "highestPageOffsetInclusive",
			fmt.Errorf("is %d, below lowestPageOffsetExclusive, which is %d", p.Highest, p.Lowest))
	}
	if n := len(p.Updates); n > 0 {
		first, last := p.Updates[0].Offset, p.Updates[n-1].Offset
		if first <= p.Lowest || last > p.Highest {
			d.refuseAt(0, "updates", fmt.Errorf("offsets %d to %d do not lie within the page, which is above %d and up to %d",
				first, last, p.Lowest, p.Highest))
		}
	}
}

func (d *decoder) updates(o order) (list UpdateList) {
	list.Updates = elements(d, &d.lexicon.updates, func(update *Update, begun int) bool {
		checkpoint := d.listed(update)
		var err error
		if checkpoint != nil {
			err = o.checkpoint(checkpoint.Offset)
			list.Checkpoints = append(list.Checkpoints, *checkpoint)
		} else {
			err = o.update(update.Offset)
		}
		if err != nil {
			d.refuseAt(begun, "", err)
		}
		list.Elements++
		list.Last = o.last
		return checkpoint == nil
	})
	return list
}

// elements reads a list into a buffer of the lexicon; nil: it is empty, or was refused. read reads an element, which
// begins at a position, into what may hold another one, and reports whether it is one of the list.
func elements[T any](d *decoder, room *[]T, read func(into *T, begun int) bool) []T {
	list, started, came := takeBuffer(room), d.at, 0
	for next := d.begin(); next && !d.refused; next = d.more() {
		if d.peek(); came == mostElements {
			d.refuseAt(d.at, "", errTooMany)
			break
		}
		if len(list) == cap(list) {
			list = slices.Grow(list, d.expected(came, started))
		}
		came++
		if n := len(list) + 1; read(&list[:n][n-1], d.at) {
			list = list[:n]
		}
	}
	if d.refused {
		return nil
	}
	if list = returnBuffer(room, list); len(list) == 0 {
		return nil
	}
	return list
}

// expected estimates how many elements of a list follow, by the size of the came elements since position begun. The
// estimate is at most eight times came, because a list may begin with small elements.
func (d *decoder) expected(came, begun int) int {
	if came == 0 {
		return 1
	}
	each := max(1, (d.at-begun)/came)
	return min(1+(len(d.text)-d.at)/each, 8*(came+1))
}

// mostPlain is the largest JSON of an update or snapshot entry that counts as plain (see Update.Plain), in bytes.
const mostPlain = 1 << 20

// listed reads an element of a list of updates. It stores an update in into, and returns a checkpoint; nil: it was an
// update.
func (d *decoder) listed(into *Update) *OffsetCheckpoint {
	started, unusual := d.at, d.unusual
	*into = Update{}
	d.element = element{update: into}
	e := &d.element
	beside := elementMembers.read(d, e)
	if e.checkpoint != nil {
		e.checkpoint.Extra = withEnvelope(e.checkpoint.Extra, beside, "update", e.variant, e.beside)
		return e.checkpoint
	}
	into.Extra = withEnvelope(into.Extra, beside, "update", e.variant, e.beside)
	into.Plain = d.unusual == unusual && d.at-started <= mostPlain
	return nil
}

type element struct {
	update     *Update           // to read an update into
	checkpoint *OffsetCheckpoint // nil: the element is an update
	variant    string
	beside     JSON // the variant's unknown members beside its value
}

var elementMembers = membersOf(must("update", (*decoder).updateVariant)).keep()

func (d *decoder) updateVariant(e *element) {
	begun := d.here()
	raw := updateVariants.variant(d, e)
	if raw == nil || d.refused {
		return
	}
	unknown, r := d.unknownElement(begun, raw)
	if r.offset == 0 {
		d.refuseAt(begun, "", fmt.Errorf("is of the kind %s, which is not known, and has no readable offset",
			Quoted(unknown.Kind)))
	}
	*e.update = Update{
		Kind: KindUnknown, Offset: r.offset, ID: r.updateID, SynchronizerID: r.synchronizerID, RecordTime: r.recordTime,
		Unknown: []UnknownElement{unknown},
	}
}

var updateVariants = membersOf(
	may("Transaction", func(d *decoder, e *element) {
		e.variant, e.beside = "Transaction", transactionWrapper.read(d, e.update)
	}),
	may("Reassignment", func(d *decoder, e *element) {
		e.variant, e.beside = "Reassignment", reassignmentWrapper.read(d, e.update)
	}),
	may("TopologyTransaction", func(d *decoder, e *element) {
		e.variant, e.beside = "TopologyTransaction", topologyWrapper.read(d, e.update)
	}),
	may("OffsetCheckpoint", func(d *decoder, e *element) {
		e.checkpoint = new(OffsetCheckpoint)
		e.variant, e.beside = "OffsetCheckpoint", checkpointWrapper.read(d, e.checkpoint)
	}),
).keep()

var (
	transactionWrapper  = wrapped(func(d *decoder, u *Update) { d.update(u, KindTransaction, transactionMembers) })
	reassignmentWrapper = wrapped(func(d *decoder, u *Update) { d.update(u, KindReassignment, reassignmentMembers) })
	topologyWrapper     = wrapped(func(d *decoder, u *Update) { d.update(u, KindTopology, topologyMembers) })
	checkpointWrapper   = wrapped((*decoder).checkpoint)
)

func (d *decoder) update(u *Update, kind UpdateKind, members *known[Update]) {
	u.Kind = kind
	d.nodes, d.repeated = d.nodes[:0], [2]repeatedOffset{}
	begun := d.here()
	extra := members.read(d, u)
	u.Extra = appendMember(extra, extraTrace, u.Extra) // Extra held the trace context's unknown members
	d.eventLists.moveTo(u)
	for i := range u.Created {
		u.Created[i].Offset = u.Offset
	}
	for i := range u.Unassigned {
		u.Unassigned[i].Offset = u.Offset
	}
	for _, repeated := range d.repeated {
		if repeated.offset != 0 && repeated.offset != u.Offset {
			d.refuseAt(repeated.at, "", fmt.Errorf("is %d, and the update's offset is %d", repeated.offset, u.Offset))
		}
	}
	if err := checkDistinct(d.nodes); err != nil {
		d.refuseAt(begun, "events", err)
	}
}

var transactionMembers = membersOf(
	must("updateId", func(d *decoder, u *Update) { u.ID = d.rareID() }),
	may("commandId", func(d *decoder, u *Update) { u.CommandID = d.rareText() }),
	may("workflowId", func(d *decoder, u *Update) { u.WorkflowID = d.rareText() }),
	must("effectiveAt", func(d *decoder, u *Update) { u.EffectiveAt = d.time() }),
	must("events", func(d *decoder, u *Update) { d.events(u, transactionEvents) }),
	must("offset", func(d *decoder, u *Update) { u.Offset = d.updateOffset() }),
	must("synchronizerId", func(d *decoder, u *Update) { u.SynchronizerID = d.commonText() }),
	may("traceContext", (*decoder).trace),
	must("recordTime", func(d *decoder, u *Update) { u.RecordTime = d.time() }),
	may("externalTransactionHash", func(d *decoder, u *Update) { u.ExternalTransactionHash = d.base64() }),
	may("paidTrafficCost", func(d *decoder, u *Update) { u.PaidTrafficCost = d.optionalInt64() }),
	may("transactionHash", func(d *decoder, u *Update) { u.TransactionHash = d.base64() }),
)

var reassignmentMembers = membersOf(
	must("updateId", func(d *decoder, u *Update) { u.ID = d.rareID() }),
	may("commandId", func(d *decoder, u *Update) { u.CommandID = d.rareText() }),
	may("workflowId", func(d *decoder, u *Update) { u.WorkflowID = d.rareText() }),
	must("offset", func(d *decoder, u *Update) { u.Offset = d.updateOffset() }),
	must("events", func(d *decoder, u *Update) { d.events(u, reassignmentEvents) }),
	may("traceContext", (*decoder).trace),
	must("recordTime", func(d *decoder, u *Update) { u.RecordTime = d.time() }),
	may("synchronizerId", func(d *decoder, u *Update) { u.SynchronizerID = d.commonText() }), // 3.3 leaves it out
	may("paidTrafficCost", func(d *decoder, u *Update) { u.PaidTrafficCost = d.optionalInt64() }),
)

var topologyMembers = membersOf(
	must("updateId", func(d *decoder, u *Update) { u.ID = d.rareID() }),
	must("offset", func(d *decoder, u *Update) { u.Offset = d.updateOffset() }),
	must("synchronizerId", func(d *decoder, u *Update) { u.SynchronizerID = d.commonText() }),
	must("recordTime", func(d *decoder, u *Update) { u.RecordTime = d.time() }),
	must("events", (*decoder).topologyEvents),
	may("traceContext", (*decoder).trace),
)

var traceMembers = membersOf(
	may("traceparent", func(d *decoder, u *Update) { u.TraceParent = d.rareText() }),
	may("tracestate", func(d *decoder, u *Update) { u.TraceState = d.rareText() }),
).keep()

// trace reads the trace context. It puts unknown members into the update's Extra.
func (d *decoder) trace(u *Update) {
	u.Extra = traceMembers.read(d, u)
	if u.Extra == nil && u.TraceParent == nil && u.TraceState == nil {
		u.Extra = JSON("{}") // an empty object is not an absent one
	}
}

func (d *decoder) checkpoint(c *OffsetCheckpoint) {
	extra := checkpointMembers.read(d, c)
	c.Extra = appendMember(extra, extraTimes, c.Extra) // Extra held the unknown members of the times
}

var checkpointMembers = membersOf(
	must("offset", func(d *decoder, c *OffsetCheckpoint) { c.Offset = d.bound() }),
	must("synchronizerTimes", func(d *decoder, c *OffsetCheckpoint) {
		c.Times = []SynchronizerTime{}
		for next := d.begin(); next && !d.refused; next = d.more() {
			if len(c.Times) == mostTimes {
				d.refuseAt(d.here(), "", errTooManyTimes)
			}
			i := len(c.Times)
			c.Times = append(c.Times, SynchronizerTime{})
			if unknown := timeMembers.read(d, &c.Times[i]); unknown != nil {
				c.Extra = extend(c.Extra, fmt.Appendf(nil, `"[%d]"`, i), unknown)
			}
		}
	}),
)

var timeMembers = membersOf(
	must("synchronizerId", func(d *decoder, t *SynchronizerTime) { t.SynchronizerID = *d.commonText() }),
	must("recordTime", func(d *decoder, t *SynchronizerTime) { t.RecordTime = d.time() }),
).keep()
