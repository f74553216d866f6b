package export

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"

	"ledgerindexer/ledger"
)

// The columns that are read of each relation.
var (
	ofUpdates = strings.Fields("update_id kind synchronizer_id record_time effective_at workflow_id command_id trace_parent trace_state " +
		"external_transaction_hash paid_traffic_cost transaction_hash extra")
	ofCreated = strings.Fields("node_id origin contract_id template_id package_name representative_package_id payload contract_key contract_key_hash " +
		"signatories observers witness_parties created_at acs_delta created_event_blob synchronizer_id extra")
	ofArchived  = strings.Fields("node_id contract_id template_id package_name choice witness_parties implemented_interfaces extra")
	ofExercised = strings.Fields("node_id contract_id template_id package_name interface_id choice choice_argument exercise_result acting_parties " +
		"consuming last_descendant_node_id witness_parties acs_delta implemented_interfaces extra")
	ofViews = strings.Fields("node_id interface_id view_value status_code status_message status_details implementation_package_id extra")
	ofMoves = strings.Fields("node_id kind contract_id template_id package_name reassignment_id source_synchronizer_id target_synchronizer_id submitter " +
		"reassignment_counter assignment_exclusivity witness_parties extra")
	ofTopology    = strings.Fields("node_id kind party_id participant_id permission extra")
	ofUnknown     = strings.Fields("ordinal node_id kind raw")
	ofExact       = strings.Fields("node_id interface_id seq field exact")
	ofCheckpoints = strings.Fields("ordinal synchronizer_id record_time extra exact_time exact_extra")
)

// facts reads the updates of a range from the files of its relations, which are sorted alike.
type facts struct {
	events
	updates, archived, exercised, topology, unknown, checkpoints *rows

	parts []partOf // of an update
}

// partOf is a relation with rows of updates, and a function that adds the current row to its update.
type partOf struct {
	of  *rows
	add func(*ledger.Update) error
}

// events are the relations that also have rows of a snapshot.
type events struct {
	all                           []*rows
	created, views, moves, exacts *rows
	exact                         exactValues // of the offset that is read
}

// exactValues are values that their columns can't hold, as they were sent.
type exactValues map[exactKey][]byte

type exactKey struct {
	at      ledger.Offset
	node    int32 // -1: of no event
	ordinal int64 // -1: of no element and no interface view
	view    string
	field   string
}

// openRelations opens relations of a range after an offset.
func (i *Import) openRelations(ctx context.Context, m *Manifest, after ledger.Offset, list []relationColumns) (all []*rows, err error) {
	for _, r := range list {
		opened, err := i.relation(ctx, m, r.name, r.columns, after)
		if err != nil {
			for _, r := range all {
				r.close()
			}
			return nil, err
		}
		*r.to = opened
		all = append(all, opened)
	}
	return all, nil
}

type relationColumns struct {
	name    string
	columns []string
	to      **rows
}

func (e *events) relations() []relationColumns {
	return []relationColumns{
		{"created_events", ofCreated, &e.created}, {"interface_views", ofViews, &e.views}, {"reassignments", ofMoves, &e.moves}, {"exact_payloads", ofExact, &e.exacts},
	}
}

func (i *Import) openFacts(ctx context.Context, m *Manifest, after ledger.Offset) (f *facts, err error) {
	f = &facts{}
	f.all, err = i.openRelations(ctx, m, after, append(f.relations(),
		relationColumns{"updates", ofUpdates, &f.updates}, relationColumns{"archived_events", ofArchived, &f.archived},
		relationColumns{"exercised_events", ofExercised, &f.exercised}, relationColumns{"topology_events", ofTopology, &f.topology},
		relationColumns{"unknown_elements", ofUnknown, &f.unknown}, relationColumns{"offset_checkpoints", ofCheckpoints, &f.checkpoints}))
	f.parts = []partOf{
		{f.created, f.addCreated}, {f.archived, f.addArchived}, {f.exercised, f.addExercised}, {f.moves, f.addMove}, {f.topology, f.addTopology}, {f.unknown, f.addUnknown},
	}
	return f, err
}

func (e *events) close() {
	for _, r := range e.all {
		r.close()
	}
}

// addTo adds the rows of an update. A row with a lower offset would belong to no update, which no export has.
func (p *partOf) addTo(u *ledger.Update) error {
	r := p.of
	for r.has && r.at <= u.Offset {
		if r.at < u.Offset {
			return fmt.Errorf("%s has a row at offset %d, where there is no update", r.file.Name, r.at)
		}
		err := p.add(u)
		if err == nil {
			err = r.next()
		}
		if err != nil {
			return fmt.Errorf("a row of %s: %w", r.file.Name, err)
		}
	}
	return nil
}

// readExact reads the exact values up to an offset, and forgets those before it.
func (e *events) readExact(at ledger.Offset) error {
	maps.DeleteFunc(e.exact, func(key exactKey, _ []byte) bool { return key.at < at })
	r := e.exacts
	for r.has && r.at <= at {
		key := exactKey{at: r.at, node: -1, ordinal: -1, view: r.text("interface_id"), field: r.text("field")}
		if node := r.optionalInteger("node_id"); node != nil {
			key.node = *node
		}
		if ordinal := r.optionalBigint("seq"); ordinal != nil {
			key.ordinal = *ordinal
		}
		if e.exact == nil {
			e.exact = exactValues{}
		}
		e.exact[key] = r.bytes("exact")
		if err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

// value returns a value as it was sent.
func (x exactValues) value(key exactKey, field string, value ledger.JSON) ledger.JSON {
	key.field = field
	if exact, ok := x[key]; ok {
		return exact
	}
	return value
}

// time returns a time as it was sent.
func (x exactValues) time(key exactKey, field string, t ledger.Time) (ledger.Time, error) {
	key.field = field
	if exact, ok := x[key]; ok {
		var sent ledger.Time
		if err := sent.UnmarshalJSON(exact); err != nil {
			return t, fmt.Errorf("%s: %w", field, err)
		}
		return sent, nil
	}
	return t, nil
}

// update reads the next update, with its events. bytes is about its size as JSON.
func (f *facts) update(u *ledger.Update) (bytes int64, err error) {
	r := f.updates
	*u = ledger.Update{
		Offset: r.at, Kind: ledger.UpdateKind(r.text("kind")), ID: r.unique("update_id"), CommandID: r.optional("command_id"),
		WorkflowID: r.word("workflow_id"), SynchronizerID: r.word("synchronizer_id"), RecordTime: r.time("record_time"), EffectiveAt: r.time("effective_at"),
		TraceParent: r.optional("trace_parent"), TraceState: r.word("trace_state"), ExternalTransactionHash: r.bytes("external_transaction_hash"),
		TransactionHash: r.bytes("transaction_hash"), PaidTrafficCost: r.optionalBigint("paid_traffic_cost"), Extra: r.json("extra"),
	}
	if err := r.next(); err != nil {
		return 0, err
	}
	if err := f.readExact(u.Offset); err != nil {
		return 0, err
	}
	if u.Plain = len(f.exact) == 0; !u.Plain {
		key := exactKey{at: u.Offset, node: -1, ordinal: -1}
		u.Extra = f.exact.value(key, "extra", u.Extra)
		if u.RecordTime, err = f.exact.time(key, "recordTime", u.RecordTime); err == nil {
			u.EffectiveAt, err = f.exact.time(key, "effectiveAt", u.EffectiveAt)
		}
		if err != nil {
			return 0, err
		}
	}
	for i := range f.parts {
		if err := f.parts[i].addTo(u); err != nil {
			return 0, err
		}
	}
	return sizeOf(u), nil
}

// sizeOf returns about how many bytes of JSON an update was.
func sizeOf(u *ledger.Update) int64 {
	n := 500 + len(u.Extra)
	for i := range u.Created {
		c := &u.Created[i]
		n += 800 + len(c.Argument) + len(c.Blob) + len(c.Extra)
		for j := range c.InterfaceViews {
			n += 200 + len(c.InterfaceViews[j].Value)
		}
	}
	for i := range u.Exercised {
		n += 800 + len(u.Exercised[i].Argument) + len(u.Exercised[i].Result)
	}
	for i := range u.Unknown {
		n += len(u.Unknown[i].Raw)
	}
	return int64(n + 500*(len(u.Archived)+len(u.Assigned)+len(u.Unassigned)+len(u.Topology)))
}

// creation reads a creation event, with its interface views.
func (e *events) creation() (c ledger.CreatedEvent, err error) {
	r := e.created
	c = ledger.CreatedEvent{
		Offset: r.at, NodeID: r.integer("node_id"), Origin: ledger.Origin(r.text("origin")), ContractID: r.unique("contract_id"),
		TemplateID: r.text("template_id"), PackageName: r.text("package_name"), RepresentativePackageID: r.word("representative_package_id"),
		Argument: r.json("payload"), ContractKey: r.json("contract_key"), ContractKeyHash: r.bytes("contract_key_hash"),
		Signatories: r.list("signatories"), Observers: r.list("observers"), WitnessParties: r.list("witness_parties"),
		CreatedAt: r.time("created_at"), ACSDelta: r.boolean("acs_delta"), Blob: r.bytes("created_event_blob"), Extra: r.json("extra"),
	}
	if len(e.exact) > 0 {
		key := exactKey{at: c.Offset, node: c.NodeID, ordinal: -1}
		c.Argument, c.ContractKey = e.exact.value(key, "payload", c.Argument), e.exact.value(key, "contract_key", c.ContractKey)
		c.Extra = e.exact.value(key, "extra", c.Extra)
		if c.CreatedAt, err = e.exact.time(key, "createdAt", c.CreatedAt); err != nil {
			return c, err
		}
	}
	for v := e.views; v.has && v.at == c.Offset && v.integer("node_id") == c.NodeID; {
		view := ledger.InterfaceView{
			InterfaceID: v.text("interface_id"), Value: v.json("view_value"), StatusCode: v.optionalInteger("status_code"),
			StatusMessage: v.word("status_message"), StatusDetails: v.json("status_details"),
			ImplementationPackageID: v.word("implementation_package_id"), Extra: v.json("extra"),
		}
		if len(e.exact) > 0 {
			key := exactKey{at: c.Offset, node: c.NodeID, ordinal: int64(len(c.InterfaceViews)), view: view.InterfaceID}
			view.Value = e.exact.value(key, "view_value", view.Value)
			view.StatusDetails, view.Extra = e.exact.value(key, "status_details", view.StatusDetails), e.exact.value(key, "extra", view.Extra)
		}
		c.InterfaceViews = append(c.InterfaceViews, view)
		if err := v.next(); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (f *facts) addCreated(u *ledger.Update) error {
	c, err := f.creation()
	u.Created = append(u.Created, c)
	return err
}

// addArchived adds an archival. One by an exercise is in the relation of exercises.
func (f *facts) addArchived(u *ledger.Update) error {
	r := f.archived
	if r.word("choice") != nil {
		return nil
	}
	a := ledger.ArchivedEvent{
		NodeID: r.integer("node_id"), ContractID: r.unique("contract_id"), TemplateID: r.text("template_id"), PackageName: r.text("package_name"),
		WitnessParties: r.list("witness_parties"), ImplementedInterfaces: r.list("implemented_interfaces"), Extra: r.json("extra"),
	}
	a.Extra = f.exact.value(exactKey{at: u.Offset, node: a.NodeID, ordinal: -1}, "extra", a.Extra)
	u.Archived = append(u.Archived, a)
	return nil
}

func (f *facts) addExercised(u *ledger.Update) error {
	r := f.exercised
	e := ledger.ExercisedEvent{
		NodeID: r.integer("node_id"), ContractID: r.unique("contract_id"), TemplateID: r.text("template_id"), PackageName: r.text("package_name"),
		InterfaceID: r.word("interface_id"), Choice: r.text("choice"), Argument: r.json("choice_argument"), Result: r.json("exercise_result"),
		ActingParties: r.list("acting_parties"), Consuming: *r.boolean("consuming"), LastDescendantNodeID: r.integer("last_descendant_node_id"),
		WitnessParties: r.list("witness_parties"), ACSDelta: r.boolean("acs_delta"), ImplementedInterfaces: r.list("implemented_interfaces"),
		Extra: r.json("extra"),
	}
	key := exactKey{at: u.Offset, node: e.NodeID, ordinal: -1}
	e.Argument, e.Result = f.exact.value(key, "choice_argument", e.Argument), f.exact.value(key, "exercise_result", e.Result)
	e.Extra = f.exact.value(key, "extra", e.Extra)
	u.Exercised = append(u.Exercised, e)
	return nil
}

func (f *facts) addMove(u *ledger.Update) error {
	if f.moves.text("kind") == "assigned" {
		u.Assigned = append(u.Assigned, f.assigned())
		return nil
	}
	unassigned, err := f.unassigned()
	u.Unassigned = append(u.Unassigned, unassigned)
	return err
}

func (e *events) assigned() ledger.AssignedEvent {
	r := e.moves
	a := ledger.AssignedEvent{
		NodeID: r.integer("node_id"), ContractID: r.unique("contract_id"), TemplateID: r.text("template_id"), PackageName: r.text("package_name"),
		Source: r.text("source_synchronizer_id"), Target: r.text("target_synchronizer_id"), ReassignmentID: r.unique("reassignment_id"),
		Submitter: r.word("submitter"), ReassignmentCounter: r.bigint("reassignment_counter"), Extra: r.json("extra"),
	}
	a.Extra = e.exact.value(exactKey{at: r.at, node: a.NodeID, ordinal: -1}, "assignment_extra", a.Extra)
	return a
}

func (e *events) unassigned() (u ledger.UnassignedEvent, err error) {
	r := e.moves
	u = ledger.UnassignedEvent{
		Offset: r.at, NodeID: r.integer("node_id"), ContractID: r.unique("contract_id"), TemplateID: r.text("template_id"),
		PackageName: r.text("package_name"), Source: r.text("source_synchronizer_id"), Target: r.text("target_synchronizer_id"),
		ReassignmentID: r.unique("reassignment_id"), Submitter: r.word("submitter"), ReassignmentCounter: r.bigint("reassignment_counter"),
		AssignmentExclusivity: r.time("assignment_exclusivity"), WitnessParties: r.list("witness_parties"), Extra: r.json("extra"),
	}
	key := exactKey{at: r.at, node: u.NodeID, ordinal: -1}
	u.Extra = e.exact.value(key, "extra", u.Extra)
	u.AssignmentExclusivity, err = e.exact.time(key, "assignmentExclusivity", u.AssignmentExclusivity)
	return u, err
}

func (f *facts) addTopology(u *ledger.Update) error {
	r := f.topology
	e := ledger.TopologyEvent{
		NodeID: r.integer("node_id"), Kind: ledger.TopologyEventKind(r.text("kind")), PartyID: r.word("party_id"),
		ParticipantID: r.word("participant_id"), Permission: r.word("permission"), Extra: r.json("extra"),
	}
	e.Extra = f.exact.value(exactKey{at: u.Offset, node: e.NodeID, ordinal: -1}, "extra", e.Extra)
	u.Topology = append(u.Topology, e)
	return nil
}

// addUnknown adds an element of an unknown kind. Its ordinal is its place in the update.
func (f *facts) addUnknown(u *ledger.Update) error {
	r := f.unknown
	if n := int(r.integer("ordinal")); n != len(u.Unknown) {
		return fmt.Errorf("element %d is missing", len(u.Unknown))
	}
	e := ledger.UnknownElement{NodeID: r.optionalInteger("node_id"), Kind: r.text("kind"), Raw: r.json("raw")}
	key := exactKey{at: u.Offset, node: -1, ordinal: int64(len(u.Unknown))}
	if e.NodeID != nil {
		key.node = *e.NodeID
	}
	e.Raw = f.exact.value(key, "raw", e.Raw)
	u.Unknown = append(u.Unknown, e)
	return nil
}

// checkpointsUpTo reads the offset checkpoints up to an offset. Rows of one offset that differ only in synchronizer and time are one
// checkpoint, with its times in the order of the list.
func (f *facts) checkpointsUpTo(at ledger.Offset) (list []ledger.OffsetCheckpoint, err error) {
	r := f.checkpoints
	for ; r.has && r.at <= at; err = r.next() {
		if err != nil {
			return nil, err
		}
		said := ledger.SynchronizerTime{SynchronizerID: r.text("synchronizer_id"), RecordTime: r.time("record_time")}
		if exact := r.bytes("exact_time"); exact != nil {
			if err := said.RecordTime.UnmarshalJSON(exact); err != nil {
				return nil, fmt.Errorf("the time of %s at offset %d: %w", said.SynchronizerID, r.at, err)
			}
		}
		extra := r.json("extra")
		if exact := r.json("exact_extra"); exact != nil {
			extra = exact
		}
		n := len(list) - 1
		for n >= 0 && list[n].Offset == r.at && !bytes.Equal(list[n].Extra, extra) {
			n--
		}
		if n < 0 || list[n].Offset != r.at {
			n, list = len(list), append(list, ledger.OffsetCheckpoint{Offset: r.at, Extra: extra})
		}
		list[n].Times = append(list[n].Times, said)
	}
	return list, err
}
