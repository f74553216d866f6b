package ledger

import "slices"

// updates reads a list of updates and checkpoints.
func (d *direct) updates(o order) (list UpdateList) {
	begun := d.at
	list.Updates = take(&d.reader.updates)
	for next := d.begin(); next && !d.refused; next = d.more() {
		if list.Elements == mostElements {
			d.refuse()
		}
		if len(list.Updates) == cap(list.Updates) {
			list.Updates = slices.Grow(list.Updates, d.expected(list.Elements, begun))
		}
		d.element(&list, &o)
		list.Elements++
		list.Last = o.last
	}
	if d.refused {
		return UpdateList{}
	}
	if list.Updates = exact(&d.reader.updates, list.Updates); len(list.Updates) == 0 {
		list.Updates = nil
	}
	return list
}

// expected is how many elements of a list follow, if they are as large as those that came since it began: of many small ones
// at its head no more than eight times as many.
func (d *direct) expected(came, begun int) int {
	if came == 0 {
		return 1
	}
	each := max(1, (d.at-begun)/came)
	return min(1+(len(d.text)-d.at)/each, 8*(came+1))
}

// element reads an element of a list of updates, and adds it to the list.
func (d *direct) element(list *UpdateList, o *order) {
	d.open(`"update"`)
	d.want('{')
	n := len(list.Updates)
	update := &list.Updates[:n+1][n]
	switch {
	case d.named(`"Transaction"`):
		d.update(update, KindTransaction, transactionMembers)
	case d.named(`"Reassignment"`):
		d.update(update, KindReassignment, reassignmentMembers)
	case d.named(`"TopologyTransaction"`):
		d.update(update, KindTopology, topologyMembers)
	case d.named(`"OffsetCheckpoint"`):
		checkpoint := d.checkpoint()
		if o.checkpoint(checkpoint.Offset) != nil {
			d.refuse()
		}
		list.Checkpoints = append(list.Checkpoints, checkpoint)
		update = nil
	default:
		d.refuse()
	}
	d.want('}')
	d.want('}')
	if update == nil || d.refused {
		return
	}
	if o.update(update.Offset) != nil {
		d.refuse()
	}
	list.Updates = list.Updates[:n+1]
}

// mostPlain is the most JSON that an update, or an entry of a snapshot, may have to be plain, in bytes.
const mostPlain = 1 << 20

// update reads an update of a kind, from the level between its variant's name and its members on.
func (d *direct) update(u *Update, kind UpdateKind, members *known[Update]) {
	begun, unusual := d.at, d.unusual
	*u = Update{Kind: kind}
	d.nodes, d.eventsAt, d.traceExtra = d.nodes[:0], 0, nil
	d.open(`"value"`)
	u.Extra = appendMember(members.read(d, u), extraTrace, d.traceExtra)
	d.want('}')
	u.Plain = d.unusual == unusual && d.at-begun <= mostPlain
	u.Created, u.Archived, u.Exercised = d.created.take(), d.archived.take(), d.exercised.take()
	u.Assigned, u.Unassigned, u.Topology = d.assigned.take(), d.unassigned.take(), d.topology.take()
	for i := range u.Created {
		u.Created[i].Offset = u.Offset
	}
	for i := range u.Unassigned {
		u.Unassigned[i].Offset = u.Offset
	}
	if d.eventsAt != 0 && d.eventsAt != u.Offset || checkDistinct(d.nodes) != nil {
		d.refuse()
	}
}

var transactionMembers = membersOf(
	must("updateId", func(d *direct, u *Update) { u.ID = d.unique() }),
	may("commandId", func(d *direct, u *Update) { u.CommandID = d.single() }),
	may("workflowId", func(d *direct, u *Update) { u.WorkflowID = d.single() }),
	must("effectiveAt", func(d *direct, u *Update) { u.EffectiveAt = d.time() }),
	must("events", func(d *direct, _ *Update) { d.events() }),
	must("offset", func(d *direct, u *Update) { u.Offset = d.updateOffset() }),
	must("synchronizerId", func(d *direct, u *Update) { u.SynchronizerID = d.shared() }),
	may("traceContext", (*direct).trace),
	must("recordTime", func(d *direct, u *Update) { u.RecordTime = d.time() }),
	may("externalTransactionHash", func(d *direct, u *Update) { u.ExternalTransactionHash = d.bytes() }),
	may("paidTrafficCost", func(d *direct, u *Update) { u.PaidTrafficCost = d.optionalInt64() }),
	may("transactionHash", func(d *direct, u *Update) { u.TransactionHash = d.bytes() }),
)

var reassignmentMembers = membersOf(
	must("updateId", func(d *direct, u *Update) { u.ID = d.unique() }),
	may("commandId", func(d *direct, u *Update) { u.CommandID = d.single() }),
	may("workflowId", func(d *direct, u *Update) { u.WorkflowID = d.single() }),
	must("offset", func(d *direct, u *Update) { u.Offset = d.updateOffset() }),
	must("events", func(d *direct, _ *Update) { d.reassignmentEvents() }),
	may("traceContext", (*direct).trace),
	must("recordTime", func(d *direct, u *Update) { u.RecordTime = d.time() }),
	may("synchronizerId", func(d *direct, u *Update) { u.SynchronizerID = d.shared() }),
	may("paidTrafficCost", func(d *direct, u *Update) { u.PaidTrafficCost = d.optionalInt64() }),
)

var topologyMembers = membersOf(
	must("updateId", func(d *direct, u *Update) { u.ID = d.unique() }),
	must("offset", func(d *direct, u *Update) { u.Offset = d.updateOffset() }),
	must("synchronizerId", func(d *direct, u *Update) { u.SynchronizerID = d.shared() }),
	must("recordTime", func(d *direct, u *Update) { u.RecordTime = d.time() }),
	must("events", func(d *direct, _ *Update) { d.topologyEvents() }),
	may("traceContext", (*direct).trace),
)

var traceMembers = membersOf(
	may("traceparent", func(d *direct, u *Update) { u.TraceParent = d.single() }),
	may("tracestate", func(d *direct, u *Update) { u.TraceState = d.single() }),
)

func (d *direct) trace(u *Update) {
	d.traceExtra = traceMembers.read(d, u)
	if d.traceExtra == nil && u.TraceParent == nil && u.TraceState == nil {
		d.traceExtra = JSON("{}") // an empty object is not an absent one
	}
}

// checkpoint reads an offset checkpoint, from the level between its variant's name and its members on.
func (d *direct) checkpoint() (c OffsetCheckpoint) {
	d.open(`"value"`)
	c.Extra = checkpointMembers.read(d, &c)
	d.want('}')
	return c
}

var checkpointMembers = membersOf(
	must("offset", func(d *direct, c *OffsetCheckpoint) { c.Offset = d.bound() }),
	must("synchronizerTimes", func(d *direct, c *OffsetCheckpoint) {
		c.Times = []SynchronizerTime{}
		for next := d.begin(); next; next = d.more() {
			var t SynchronizerTime
			if timeMembers.read(d, &t) != nil || len(c.Times) == mostTimes {
				d.refuse()
			}
			c.Times = append(c.Times, t)
		}
	}),
)

var timeMembers = membersOf(
	must("synchronizerId", func(d *direct, t *SynchronizerTime) { t.SynchronizerID = *d.shared() }),
	must("recordTime", func(d *direct, t *SynchronizerTime) { t.RecordTime = d.time() }),
)

// updatePage reads a page of updates.
func (d *direct) updatePage(after Offset) (page UpdatePage) {
	pageMembers.read(d, &readPage{UpdatePage: &page, after: after})
	if n := len(page.Updates); page.Highest < page.Lowest ||
		n > 0 && (page.Updates[0].Offset <= page.Lowest || page.Updates[n-1].Offset > page.Highest) {
		d.refuse()
	}
	return page
}

// readPage is a page of updates that must lie above an offset.
type readPage struct {
	*UpdatePage
	after Offset
}

var pageMembers = membersOf(
	may("updates", func(d *direct, p *readPage) { p.UpdateList = d.updates(order{last: p.after}) }),
	must("lowestPageOffsetExclusive", func(d *direct, p *readPage) { p.Lowest = d.bound() }),
	must("highestPageOffsetInclusive", func(d *direct, p *readPage) { p.Highest = d.bound() }),
	may("nextPageToken", func(d *direct, p *readPage) { p.Next = string(d.chars()) }),
)
