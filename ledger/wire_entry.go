package ledger

import "github.com/go-json-experiment/json/jsontext"

type wireEntry struct {
	WorkflowID span
	Token      span
	Entry      *wireEntryVariant
	Unknown    jsontext.Value
}

func (w *wireEntry) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireEntry) member(name []byte) wireValue {
	switch string(name) {
	case "workflowId":
		return &w.WorkflowID
	case "streamContinuationToken":
		return &w.Token
	case "contractEntry":
		return optional(&w.Entry)
	}
	return nil
}

type wireEntryVariant struct {
	Active     *wireActive
	Unassigned *wireIncompleteUnassigned
	Assigned   *wireIncompleteAssigned
	Empty      *wireEmpty
	Unknown    jsontext.Value
}

func (w *wireEntryVariant) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireEntryVariant) member(name []byte) wireValue {
	switch string(name) {
	case "JsActiveContract":
		return optional(&w.Active)
	case "JsIncompleteUnassigned":
		return optional(&w.Unassigned)
	case "JsIncompleteAssigned":
		return optional(&w.Assigned)
	case "JsEmpty":
		return optional(&w.Empty)
	}
	return nil
}

type wireActive struct {
	CreatedEvent        *wireCreated
	SynchronizerID      span
	ReassignmentCounter span
	Unknown             jsontext.Value
}

func (w *wireActive) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireActive) member(name []byte) wireValue {
	switch string(name) {
	case "createdEvent":
		return optional(&w.CreatedEvent)
	case "synchronizerId":
		return &w.SynchronizerID
	case "reassignmentCounter":
		return &w.ReassignmentCounter
	}
	return nil
}

type wireIncompleteUnassigned struct {
	CreatedEvent    *wireCreated
	UnassignedEvent *wireUnassigned
	Unknown         jsontext.Value
}

func (w *wireIncompleteUnassigned) readFrom(from source) error {
	return readObject(from, w, &w.Unknown)
}

func (w *wireIncompleteUnassigned) member(name []byte) wireValue {
	switch string(name) {
	case "createdEvent":
		return optional(&w.CreatedEvent)
	case "unassignedEvent":
		return optional(&w.UnassignedEvent)
	}
	return nil
}

type wireIncompleteAssigned struct {
	AssignedEvent *wireAssigned
	Unknown       jsontext.Value
}

func (w *wireIncompleteAssigned) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireIncompleteAssigned) member(name []byte) wireValue {
	if string(name) == "assignedEvent" {
		return optional(&w.AssignedEvent)
	}
	return nil
}

type wireEmpty struct {
	Unknown jsontext.Value
}

func (w *wireEmpty) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireEmpty) member([]byte) wireValue { return nil }
