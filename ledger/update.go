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

// Origin is what a creation event was part of; its text is stored in the database.
type Origin string

// The origins of a creation event.
const (
	OriginTransaction Origin = "transaction"
	OriginAssignment  Origin = "assignment"
	OriginSnapshot    Origin = "snapshot"
)

// CreatedEvent is the creation of a contract, or its arrival on a synchronizer (interface.md, "CreatedEvent").
type CreatedEvent struct {
	Offset                  Offset
	NodeID                  int32
	Origin                  Origin
	ContractID              string
	TemplateID              string // package-id:Module:Entity as served
	PackageName             string
	RepresentativePackageID *string
	Argument                JSON // nil if only an interface filter matched
	ContractKey             JSON
	ContractKeyHash         []byte
	Signatories             []string
	Observers               []string
	WitnessParties          []string
	CreatedAt               Time
	ACSDelta                *bool // nil: the server (3.3) does not say
	Blob                    []byte
	InterfaceViews          []InterfaceView
	Extra                   JSON
}

// Contract implements Element.
func (e *CreatedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *CreatedEvent) Redact() {
	e.Argument, e.ContractKey, e.ContractKeyHash, e.Blob, e.Extra = nil, nil, nil, nil, nil
	e.InterfaceViews = slices.Clone(e.InterfaceViews)
	for i := range e.InterfaceViews {
		v := &e.InterfaceViews[i]
		v.Value, v.StatusMessage, v.StatusDetails, v.Extra = nil, nil, nil, nil
	}
}

// InterfaceView is a contract seen through an interface (interface.md, "InterfaceView").
type InterfaceView struct {
	InterfaceID             string
	Value                   JSON
	StatusCode              *int32 // 0: the view was computed
	StatusMessage           *string
	StatusDetails           JSON // array, as served
	ImplementationPackageID *string
	Extra                   JSON
}

// ArchivedEvent is the archival of a contract in the ACS_DELTA shape. It implies acs_delta true.
type ArchivedEvent struct {
	NodeID                int32
	ContractID            string
	TemplateID            string // may name another package than the creation does
	PackageName           string
	WitnessParties        []string
	ImplementedInterfaces []string
	Extra                 JSON
}

// Contract implements Element.
func (e *ArchivedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *ArchivedEvent) Redact() { e.Extra = nil }

// ExercisedEvent is the exercise of a choice in the LEDGER_EFFECTS shape. A consuming exercise archives its contract.
type ExercisedEvent struct {
	NodeID                int32
	ContractID            string
	TemplateID            string
	PackageName           string
	InterfaceID           *string
	Choice                string
	Argument              JSON
	Result                JSON
	ActingParties         []string
	Consuming             bool
	LastDescendantNodeID  int32
	WitnessParties        []string
	ACSDelta              *bool
	ImplementedInterfaces []string
	Extra                 JSON
}

// Contract implements Element.
func (e *ExercisedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *ExercisedEvent) Redact() { e.Argument, e.Result, e.Extra = nil, nil, nil }

// AssignedEvent is the arrival of a contract on the target synchronizer. Its creation event is in Update.Created, with
// the same NodeID.
type AssignedEvent struct {
	NodeID              int32
	ContractID          string
	TemplateID          string
	PackageName         string
	Source              string
	Target              string
	ReassignmentID      string
	Submitter           *string
	ReassignmentCounter int64
	Extra               JSON
}

// Contract implements Element.
func (e *AssignedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *AssignedEvent) Redact() { e.Extra = nil }

// UnassignedEvent is the departure of a contract from the source synchronizer.
type UnassignedEvent struct {
	Offset                Offset
	NodeID                int32
	ContractID            string
	TemplateID            string
	PackageName           string
	Source                string
	Target                string
	ReassignmentID        string
	Submitter             *string
	ReassignmentCounter   int64
	AssignmentExclusivity Time
	WitnessParties        []string
	Extra                 JSON
}

// Contract implements Element.
func (e *UnassignedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *UnassignedEvent) Redact() { e.Extra = nil }

// TopologyEventKind is what happened to a party's hosting; its text is stored in the database.
type TopologyEventKind string

// The kinds of topology event.
const (
	TopologyAdded      TopologyEventKind = "added"
	TopologyChanged    TopologyEventKind = "changed"
	TopologyRevoked    TopologyEventKind = "revoked"
	TopologyOnboarding TopologyEventKind = "onboarding"
	TopologyUnknown    TopologyEventKind = "unknown"
)

// TopologyEvent is a change of a party's hosting on a participant.
type TopologyEvent struct {
	NodeID        int32 // index in the update's list: the server sends no node id
	Kind          TopologyEventKind
	PartyID       *string // nil if Kind is TopologyUnknown
	ParticipantID *string
	Permission    *string // nil for a revocation
	Extra         JSON
}

// Contract implements Element.
func (e *TopologyEvent) Contract() string { return "" }

// Redact implements Element.
func (e *TopologyEvent) Redact() { e.Extra = nil }

// UnknownElement is an update or an event of a kind that this version does not know, as the server sent it.
type UnknownElement struct {
	NodeID *int32 // nil for a whole update, or if the event has none
	Kind   string // the variant's name as served
	Raw    JSON   // the object with the variant's name as its only key
}

// Contract implements Element.
func (e *UnknownElement) Contract() string { return "" }

// Redact implements Element.
func (e *UnknownElement) Redact() { e.Raw = nil }

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
