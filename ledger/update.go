package ledger

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Offset is a position in a participant's ledger. Offsets are non-negative, grow strictly from update to update,
// have gaps, and mean nothing on another participant. Zero is the beginning of the ledger: no update has it.
type Offset int64

// JSON is a JSON value exactly as the server sent it. Nil means absent or null.
type JSON = jsontext.Value

// UpdateKind is the kind of an update; its text is stored in the database.
type UpdateKind string

// The kinds of update.
const (
	KindTransaction  UpdateKind = "transaction"
	KindReassignment UpdateKind = "reassignment"
	KindTopology     UpdateKind = "topology"
	KindUnknown      UpdateKind = "unknown"
)

// Update is one update of the ledger with all of its events (interface.md, "Update"). Optional values are nil (or not
// Valid) if the server left them out or sent null; an empty text, list or blob that it sent is kept as empty.
//
// Lists of parties and of interfaces are sets: sorted by their bytes, each element once. Interface views are in the
// order of their interfaces.
type Update struct {
	Offset         Offset
	Kind           UpdateKind
	ID             string // empty only where Kind is KindUnknown and no updateId could be read
	CommandID      *string
	WorkflowID     *string
	SynchronizerID *string
	RecordTime     Time
	EffectiveAt    Time // transactions only
	TraceParent    *string
	TraceState     *string

	ExternalTransactionHash []byte
	TransactionHash         []byte
	PaidTrafficCost         *int64 // bytes of traffic

	// Extra holds the members that this version does not know, as one object.
	Extra JSON

	// Plain says that jsonb certainly accepts all JSON in it: at most 1 MiB, no NUL, no half of a surrogate pair, no
	// number that needs more than 16,000 digits, and at most 200 nested lists and objects. False: not known.
	Plain bool

	Created    []CreatedEvent // including the creation inside each assignment, see CreatedEvent.Origin
	Archived   []ArchivedEvent
	Exercised  []ExercisedEvent
	Assigned   []AssignedEvent
	Unassigned []UnassignedEvent
	Topology   []TopologyEvent
	Unknown    []UnknownElement // unknown events; for KindUnknown the update itself, with NodeID nil
}

// Element is an event of an update, or an unknown update itself.
type Element interface {
	// Table names the table that has a row for it.
	Table() string
	// Contract returns the id of the contract that it is of; empty: of none, or of one that is not known.
	Contract() string
	// Redact removes its content: what it says, as opposed to ids, parties, names and times.
	Redact()
}

// All yields all elements of the update, list by list: an assignment and the creation inside it are two.
func (u *Update) All(yield func(Element) bool) {
	_ = each(u.Created, yield) && each(u.Archived, yield) && each(u.Exercised, yield) && each(u.Assigned, yield) &&
		each(u.Unassigned, yield) && each(u.Topology, yield) && each(u.Unknown, yield)
}

func each[T any, P interface {
	*T
	Element
}](list []T, yield func(Element) bool) bool {
	for i := range list {
		if !yield(P(&list[i])) {
			return false
		}
	}
	return true
}

// Elements returns the number of elements of the update.
func (u *Update) Elements() (n int) {
	for range u.All {
		n++
	}
	return n
}

// Redact removes the content of the elements that of returns true for and, with whole, of the update itself and of all
// elements but creations: a contract may have come into the scope since, and what it says is its own. It changes copies
// of the elements: others may use the originals.
func (u *Update) Redact(whole bool, of func(Element) bool) {
	if whole {
		u.Extra = nil
	}
	u.Created, u.Archived, u.Exercised = slices.Clone(u.Created), slices.Clone(u.Archived), slices.Clone(u.Exercised)
	u.Assigned, u.Unassigned = slices.Clone(u.Assigned), slices.Clone(u.Unassigned)
	u.Topology, u.Unknown = slices.Clone(u.Topology), slices.Clone(u.Unknown)
	for e := range u.All {
		_, creation := e.(*CreatedEvent)
		if whole && !creation || of(e) {
			e.Redact()
		}
	}
}

// eventLists holds the events of the update that is being read.
type eventLists struct {
	created    arena[CreatedEvent]
	archived   arena[ArchivedEvent]
	exercised  arena[ExercisedEvent]
	assigned   arena[AssignedEvent]
	unassigned arena[UnassignedEvent]
	topology   arena[TopologyEvent]
}

func (l *eventLists) moveTo(u *Update) {
	u.Created, u.Archived, u.Exercised = l.created.take(), l.archived.take(), l.exercised.take()
	u.Assigned, u.Unassigned, u.Topology = l.assigned.take(), l.unassigned.take(), l.topology.take()
}

// The events of a transaction and of a reassignment, by the names that servers give them.
var (
	transactionEvents  = membersOf(createdVariant, archivedVariant, exercisedVariant).keep()
	reassignmentEvents = membersOf(assignedVariant, unassignedVariant).keep()
)

// SynchronizerTime is a synchronizer's record time at an offset.
type SynchronizerTime struct {
	SynchronizerID string
	RecordTime     Time
}

// OffsetCheckpoint says that everything up to Offset that matches was delivered (interface.md, "Update", variant
// OffsetCheckpoint). It may repeat an offset with newer times.
type OffsetCheckpoint struct {
	Offset Offset
	Times  []SynchronizerTime
	Extra  JSON
}

// Page is a complete part of the update stream: every update with From < offset <= To that matches the scope is in
// Updates, in ascending order. To equals From if a read brought nothing.
type Page struct {
	From        Offset // exclusive
	To          Offset // inclusive
	Updates     []Update
	Checkpoints []OffsetCheckpoint
	Bytes       int64 // size of the JSON it was decoded from
	// Scope is the hash of the scope that the page was read in, where ranges of several scopes are read; empty: the one
	// that is asked for.
	Scope string
}
