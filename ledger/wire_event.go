package ledger

import "github.com/go-json-experiment/json/jsontext"

type wireEvent struct {
	Created   *wireCreated
	Archived  *wireArchived
	Exercised *wireExercised
	Unknown   jsontext.Value
}

func (w *wireEvent) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireEvent) member(name []byte) wireValue {
	switch string(name) {
	case "CreatedEvent":
		return optional(&w.Created)
	case "ArchivedEvent":
		return optional(&w.Archived)
	case "ExercisedEvent":
		return optional(&w.Exercised)
	}
	return nil
}

type wireCreated struct {
	Offset                  span
	NodeID                  span
	ContractID              span
	TemplateID              span
	ContractKey             span
	ContractKeyHash         span
	CreateArgument          span
	CreatedEventBlob        span
	InterfaceViews          []wireView
	WitnessParties          []span
	Signatories             []span
	Observers               []span
	CreatedAt               span
	PackageName             span
	RepresentativePackageID span
	ACSDelta                span
	Unknown                 jsontext.Value
}

func (w *wireCreated) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireCreated) member(name []byte) wireValue {
	switch string(name) {
	case "offset":
		return &w.Offset
	case "nodeId":
		return &w.NodeID
	case "contractId":
		return &w.ContractID
	case "templateId":
		return &w.TemplateID
	case "contractKey":
		return &w.ContractKey
	case "contractKeyHash":
		return &w.ContractKeyHash
	case "createArgument":
		return &w.CreateArgument
	case "createdEventBlob":
		return &w.CreatedEventBlob
	case "interfaceViews":
		return repeated(&w.InterfaceViews)
	case "witnessParties":
		return repeated(&w.WitnessParties)
	case "signatories":
		return repeated(&w.Signatories)
	case "observers":
		return repeated(&w.Observers)
	case "createdAt":
		return &w.CreatedAt
	case "packageName":
		return &w.PackageName
	case "representativePackageId":
		return &w.RepresentativePackageID
	case "acsDelta":
		return &w.ACSDelta
	}
	return nil
}

type wireView struct {
	InterfaceID             span
	ViewStatus              *wireViewStatus
	ViewValue               span
	ImplementationPackageID span
	Unknown                 jsontext.Value
}

func (w *wireView) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireView) member(name []byte) wireValue {
	switch string(name) {
	case "interfaceId":
		return &w.InterfaceID
	case "viewStatus":
		return optional(&w.ViewStatus)
	case "viewValue":
		return &w.ViewValue
	case "implementationPackageId":
		return &w.ImplementationPackageID
	}
	return nil
}

type wireViewStatus struct {
	Code    span
	Message span
	Details span
	Unknown jsontext.Value
}

func (w *wireViewStatus) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireViewStatus) member(name []byte) wireValue {
	switch string(name) {
	case "code":
		return &w.Code
	case "message":
		return &w.Message
	case "details":
		return &w.Details
	}
	return nil
}

type wireArchived struct {
	Offset                span
	NodeID                span
	ContractID            span
	TemplateID            span
	WitnessParties        []span
	PackageName           span
	ImplementedInterfaces []span
	Unknown               jsontext.Value
}

func (w *wireArchived) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireArchived) member(name []byte) wireValue {
	switch string(name) {
	case "offset":
		return &w.Offset
	case "nodeId":
		return &w.NodeID
	case "contractId":
		return &w.ContractID
	case "templateId":
		return &w.TemplateID
	case "witnessParties":
		return repeated(&w.WitnessParties)
	case "packageName":
		return &w.PackageName
	case "implementedInterfaces":
		return repeated(&w.ImplementedInterfaces)
	}
	return nil
}

type wireExercised struct {
	Offset                span
	NodeID                span
	ContractID            span
	TemplateID            span
	InterfaceID           span
	Choice                span
	ChoiceArgument        span
	ActingParties         []span
	Consuming             span
	WitnessParties        []span
	LastDescendantNodeID  span
	ExerciseResult        span
	PackageName           span
	ImplementedInterfaces []span
	ACSDelta              span
	Unknown               jsontext.Value
}

func (w *wireExercised) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireExercised) member(name []byte) wireValue {
	switch string(name) {
	case "offset":
		return &w.Offset
	case "nodeId":
		return &w.NodeID
	case "contractId":
		return &w.ContractID
	case "templateId":
		return &w.TemplateID
	case "interfaceId":
		return &w.InterfaceID
	case "choice":
		return &w.Choice
	case "choiceArgument":
		return &w.ChoiceArgument
	case "actingParties":
		return repeated(&w.ActingParties)
	case "consuming":
		return &w.Consuming
	case "witnessParties":
		return repeated(&w.WitnessParties)
	case "lastDescendantNodeId":
		return &w.LastDescendantNodeID
	case "exerciseResult":
		return &w.ExerciseResult
	case "packageName":
		return &w.PackageName
	case "implementedInterfaces":
		return repeated(&w.ImplementedInterfaces)
	case "acsDelta":
		return &w.ACSDelta
	}
	return nil
}

type wireReassignmentEvent struct {
	Assigned   *wireAssigned
	Unassigned *wireBox[wireUnassigned]
	Unknown    jsontext.Value
}

func (w *wireReassignmentEvent) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireReassignmentEvent) member(name []byte) wireValue {
	switch string(name) {
	case "JsAssignmentEvent":
		return optional(&w.Assigned)
	case "JsUnassignedEvent":
		return optional(&w.Unassigned)
	}
	return nil
}

type wireAssigned struct {
	Source              span
	Target              span
	ReassignmentID      span
	UnassignID          span // the name of reassignmentId in 3.3
	Submitter           span
	ReassignmentCounter span
	CreatedEvent        *wireCreated
	Unknown             jsontext.Value
}

func (w *wireAssigned) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireAssigned) member(name []byte) wireValue {
	switch string(name) {
	case "source":
		return &w.Source
	case "target":
		return &w.Target
	case "reassignmentId":
		return &w.ReassignmentID
	case "unassignId":
		return &w.UnassignID
	case "submitter":
		return &w.Submitter
	case "reassignmentCounter":
		return &w.ReassignmentCounter
	case "createdEvent":
		return optional(&w.CreatedEvent)
	}
	return nil
}

type wireUnassigned struct {
	ReassignmentID        span
	UnassignID            span // the name of reassignmentId in 3.3
	ContractID            span
	TemplateID            span
	Source                span
	Target                span
	Submitter             span
	ReassignmentCounter   span
	AssignmentExclusivity span
	WitnessParties        []span
	PackageName           span
	Offset                span
	NodeID                span
	Unknown               jsontext.Value
}

func (w *wireUnassigned) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireUnassigned) member(name []byte) wireValue {
	switch string(name) {
	case "reassignmentId":
		return &w.ReassignmentID
	case "unassignId":
		return &w.UnassignID
	case "contractId":
		return &w.ContractID
	case "templateId":
		return &w.TemplateID
	case "source":
		return &w.Source
	case "target":
		return &w.Target
	case "submitter":
		return &w.Submitter
	case "reassignmentCounter":
		return &w.ReassignmentCounter
	case "assignmentExclusivity":
		return &w.AssignmentExclusivity
	case "witnessParties":
		return repeated(&w.WitnessParties)
	case "packageName":
		return &w.PackageName
	case "offset":
		return &w.Offset
	case "nodeId":
		return &w.NodeID
	}
	return nil
}

type wireTopologyEvent struct {
	Event   *wireTopologyVariant
	Unknown jsontext.Value
}

func (w *wireTopologyEvent) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireTopologyEvent) member(name []byte) wireValue {
	if string(name) == "event" {
		return optional(&w.Event)
	}
	return nil
}

type wireTopologyVariant struct {
	Added      *wireBox[wireAuthorization]
	Changed    *wireBox[wireAuthorization]
	Revoked    *wireBox[wireAuthorization]
	Onboarding *wireBox[wireAuthorization]
	Unknown    jsontext.Value
}

func (w *wireTopologyVariant) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireTopologyVariant) member(name []byte) wireValue {
	switch string(name) {
	case "ParticipantAuthorizationAdded":
		return optional(&w.Added)
	case "ParticipantAuthorizationChanged":
		return optional(&w.Changed)
	case "ParticipantAuthorizationRevoked":
		return optional(&w.Revoked)
	case "ParticipantAuthorizationOnboarding":
		return optional(&w.Onboarding)
	}
	return nil
}

type wireAuthorization struct {
	PartyID       span
	ParticipantID span
	Permission    span
	Unknown       jsontext.Value
}

func (w *wireAuthorization) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireAuthorization) member(name []byte) wireValue {
	switch string(name) {
	case "partyId":
		return &w.PartyID
	case "participantId":
		return &w.ParticipantID
	case "participantPermission":
		return &w.Permission
	}
	return nil
}
