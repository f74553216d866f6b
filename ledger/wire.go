package ledger

import "github.com/go-json-experiment/json/jsontext"

// The wire structs mirror the server's JSON member by member. A sum type is a struct with one pointer per known
// variant. The last field of each takes the members that this version does not know, as one object; its tag says so
// twice, because the module calls the option embed and the toolchain's own package, for which the module stands in
// when built with GOEXPERIMENT=jsonv2, calls it unknown. Either ignores the other's name without a word.
//
// Leaves are spans: the decoder checks the syntax and says where a value lies, and the conversion to the domain
// types reads it there. So a payload keeps its bytes, null and absent can be told from empty without a pointer
// per field, and a text is judged with its field's name at hand.

// span is where a JSON value lies in the body. The zero span is an absent member.
type span struct{ from, to int }

// UnmarshalJSONFrom notes where the next value lies.
func (s *span) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	s.to = int(dec.InputOffset())
	s.from = s.to - len(value)
	return nil
}

type wireElement struct {
	Update  *wireUpdate    `json:"update"`
	Unknown jsontext.Value `json:",embed,unknown"`
}

type wireUpdate struct {
	Transaction  *wireBox[wireTransaction]  `json:"Transaction"`
	Reassignment *wireBox[wireReassignment] `json:"Reassignment"`
	Topology     *wireBox[wireTopology]     `json:"TopologyTransaction"`
	Checkpoint   *wireBox[wireCheckpoint]   `json:"OffsetCheckpoint"`
	Unknown      jsontext.Value             `json:",embed,unknown"`
}

// wireBox is the level between a variant's name and its members.
type wireBox[T any] struct {
	Value   *T             `json:"value"`
	Unknown jsontext.Value `json:",embed,unknown"`
}

type wireTransaction struct {
	UpdateID                span           `json:"updateId"`
	CommandID               span           `json:"commandId"`
	WorkflowID              span           `json:"workflowId"`
	EffectiveAt             span           `json:"effectiveAt"`
	Events                  []wireEvent    `json:"events"`
	Offset                  span           `json:"offset"`
	SynchronizerID          span           `json:"synchronizerId"`
	TraceContext            *wireTrace     `json:"traceContext"`
	RecordTime              span           `json:"recordTime"`
	ExternalTransactionHash span           `json:"externalTransactionHash"`
	PaidTrafficCost         span           `json:"paidTrafficCost"`
	TransactionHash         span           `json:"transactionHash"`
	Unknown                 jsontext.Value `json:",embed,unknown"`
}

type wireReassignment struct {
	UpdateID        span                    `json:"updateId"`
	CommandID       span                    `json:"commandId"`
	WorkflowID      span                    `json:"workflowId"`
	Events          []wireReassignmentEvent `json:"events"`
	Offset          span                    `json:"offset"`
	SynchronizerID  span                    `json:"synchronizerId"`
	TraceContext    *wireTrace              `json:"traceContext"`
	RecordTime      span                    `json:"recordTime"`
	PaidTrafficCost span                    `json:"paidTrafficCost"`
	Unknown         jsontext.Value          `json:",embed,unknown"`
}

type wireTopology struct {
	UpdateID       span                `json:"updateId"`
	Events         []wireTopologyEvent `json:"events"`
	Offset         span                `json:"offset"`
	SynchronizerID span                `json:"synchronizerId"`
	TraceContext   *wireTrace          `json:"traceContext"`
	RecordTime     span                `json:"recordTime"`
	Unknown        jsontext.Value      `json:",embed,unknown"`
}

type wireCheckpoint struct {
	Offset  span                   `json:"offset"`
	Times   []wireSynchronizerTime `json:"synchronizerTimes"`
	Unknown jsontext.Value         `json:",embed,unknown"`
}

type wireSynchronizerTime struct {
	SynchronizerID span           `json:"synchronizerId"`
	RecordTime     span           `json:"recordTime"`
	Unknown        jsontext.Value `json:",embed,unknown"`
}

type wireTrace struct {
	Parent  span           `json:"traceparent"`
	State   span           `json:"tracestate"`
	Unknown jsontext.Value `json:",embed,unknown"`
}

type wireEvent struct {
	Created   *wireCreated   `json:"CreatedEvent"`
	Archived  *wireArchived  `json:"ArchivedEvent"`
	Exercised *wireExercised `json:"ExercisedEvent"`
	Unknown   jsontext.Value `json:",embed,unknown"`
}

type wireCreated struct {
	Offset                  span           `json:"offset"`
	NodeID                  span           `json:"nodeId"`
	ContractID              span           `json:"contractId"`
	TemplateID              span           `json:"templateId"`
	ContractKey             span           `json:"contractKey"`
	ContractKeyHash         span           `json:"contractKeyHash"`
	CreateArgument          span           `json:"createArgument"`
	CreatedEventBlob        span           `json:"createdEventBlob"`
	InterfaceViews          []wireView     `json:"interfaceViews"`
	WitnessParties          []span         `json:"witnessParties"`
	Signatories             []span         `json:"signatories"`
	Observers               []span         `json:"observers"`
	CreatedAt               span           `json:"createdAt"`
	PackageName             span           `json:"packageName"`
	RepresentativePackageID span           `json:"representativePackageId"`
	ACSDelta                span           `json:"acsDelta"`
	Unknown                 jsontext.Value `json:",embed,unknown"`
}

type wireView struct {
	InterfaceID             span            `json:"interfaceId"`
	ViewStatus              *wireViewStatus `json:"viewStatus"`
	ViewValue               span            `json:"viewValue"`
	ImplementationPackageID span            `json:"implementationPackageId"`
	Unknown                 jsontext.Value  `json:",embed,unknown"`
}

type wireViewStatus struct {
	Code    span           `json:"code"`
	Message span           `json:"message"`
	Details span           `json:"details"`
	Unknown jsontext.Value `json:",embed,unknown"`
}

type wireArchived struct {
	Offset                span           `json:"offset"`
	NodeID                span           `json:"nodeId"`
	ContractID            span           `json:"contractId"`
	TemplateID            span           `json:"templateId"`
	WitnessParties        []span         `json:"witnessParties"`
	PackageName           span           `json:"packageName"`
	ImplementedInterfaces []span         `json:"implementedInterfaces"`
	Unknown               jsontext.Value `json:",embed,unknown"`
}

type wireExercised struct {
	Offset                span           `json:"offset"`
	NodeID                span           `json:"nodeId"`
	ContractID            span           `json:"contractId"`
	TemplateID            span           `json:"templateId"`
	InterfaceID           span           `json:"interfaceId"`
	Choice                span           `json:"choice"`
	ChoiceArgument        span           `json:"choiceArgument"`
	ActingParties         []span         `json:"actingParties"`
	Consuming             span           `json:"consuming"`
	WitnessParties        []span         `json:"witnessParties"`
	LastDescendantNodeID  span           `json:"lastDescendantNodeId"`
	ExerciseResult        span           `json:"exerciseResult"`
	PackageName           span           `json:"packageName"`
	ImplementedInterfaces []span         `json:"implementedInterfaces"`
	ACSDelta              span           `json:"acsDelta"`
	Unknown               jsontext.Value `json:",embed,unknown"`
}

type wireReassignmentEvent struct {
	Assigned   *wireAssigned            `json:"JsAssignmentEvent"`
	Unassigned *wireBox[wireUnassigned] `json:"JsUnassignedEvent"`
	Unknown    jsontext.Value           `json:",embed,unknown"`
}

type wireAssigned struct {
	Source              span           `json:"source"`
	Target              span           `json:"target"`
	ReassignmentID      span           `json:"reassignmentId"`
	UnassignID          span           `json:"unassignId"` // the name of reassignmentId in 3.3
	Submitter           span           `json:"submitter"`
	ReassignmentCounter span           `json:"reassignmentCounter"`
	CreatedEvent        *wireCreated   `json:"createdEvent"`
	Unknown             jsontext.Value `json:",embed,unknown"`
}

type wireUnassigned struct {
	ReassignmentID        span           `json:"reassignmentId"`
	UnassignID            span           `json:"unassignId"` // the name of reassignmentId in 3.3
	ContractID            span           `json:"contractId"`
	TemplateID            span           `json:"templateId"`
	Source                span           `json:"source"`
	Target                span           `json:"target"`
	Submitter             span           `json:"submitter"`
	ReassignmentCounter   span           `json:"reassignmentCounter"`
	AssignmentExclusivity span           `json:"assignmentExclusivity"`
	WitnessParties        []span         `json:"witnessParties"`
	PackageName           span           `json:"packageName"`
	Offset                span           `json:"offset"`
	NodeID                span           `json:"nodeId"`
	Unknown               jsontext.Value `json:",embed,unknown"`
}

type wireTopologyEvent struct {
	Event   *wireTopologyVariant `json:"event"`
	Unknown jsontext.Value       `json:",embed,unknown"`
}

type wireTopologyVariant struct {
	Added      *wireBox[wireAuthorization] `json:"ParticipantAuthorizationAdded"`
	Changed    *wireBox[wireAuthorization] `json:"ParticipantAuthorizationChanged"`
	Revoked    *wireBox[wireAuthorization] `json:"ParticipantAuthorizationRevoked"`
	Onboarding *wireBox[wireAuthorization] `json:"ParticipantAuthorizationOnboarding"`
	Unknown    jsontext.Value              `json:",embed,unknown"`
}

type wireAuthorization struct {
	PartyID       span           `json:"partyId"`
	ParticipantID span           `json:"participantId"`
	Permission    span           `json:"participantPermission"`
	Unknown       jsontext.Value `json:",embed,unknown"`
}

type wireEntry struct {
	WorkflowID span              `json:"workflowId"`
	Token      span              `json:"streamContinuationToken"`
	Entry      *wireEntryVariant `json:"contractEntry"`
	Unknown    jsontext.Value    `json:",embed,unknown"`
}

type wireEntryVariant struct {
	Active     *wireActive               `json:"JsActiveContract"`
	Unassigned *wireIncompleteUnassigned `json:"JsIncompleteUnassigned"`
	Assigned   *wireIncompleteAssigned   `json:"JsIncompleteAssigned"`
	Empty      *wireEmpty                `json:"JsEmpty"`
	Unknown    jsontext.Value            `json:",embed,unknown"`
}

type wireActive struct {
	CreatedEvent        *wireCreated   `json:"createdEvent"`
	SynchronizerID      span           `json:"synchronizerId"`
	ReassignmentCounter span           `json:"reassignmentCounter"`
	Unknown             jsontext.Value `json:",embed,unknown"`
}

type wireIncompleteUnassigned struct {
	CreatedEvent    *wireCreated    `json:"createdEvent"`
	UnassignedEvent *wireUnassigned `json:"unassignedEvent"`
	Unknown         jsontext.Value  `json:",embed,unknown"`
}

type wireIncompleteAssigned struct {
	AssignedEvent *wireAssigned  `json:"assignedEvent"`
	Unknown       jsontext.Value `json:",embed,unknown"`
}

type wireEmpty struct {
	Unknown jsontext.Value `json:",embed,unknown"`
}
