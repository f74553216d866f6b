package ledger

import "github.com/go-json-experiment/json/jsontext"

type wireElement struct {
	Update  *wireUpdate
	Unknown jsontext.Value
}

func (w *wireElement) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireElement) member(name []byte) wireValue {
	if string(name) == "update" {
		return optional(&w.Update)
	}
	return nil
}

type wireUpdate struct {
	Transaction  *wireBox[wireTransaction]
	Reassignment *wireBox[wireReassignment]
	Topology     *wireBox[wireTopology]
	Checkpoint   *wireBox[wireCheckpoint]
	Unknown      jsontext.Value
}

func (w *wireUpdate) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireUpdate) member(name []byte) wireValue {
	switch string(name) {
	case "Transaction":
		return optional(&w.Transaction)
	case "Reassignment":
		return optional(&w.Reassignment)
	case "TopologyTransaction":
		return optional(&w.Topology)
	case "OffsetCheckpoint":
		return optional(&w.Checkpoint)
	}
	return nil
}

// wireBox is the level between a variant's name and its members.
type wireBox[T any] struct {
	Value   *T
	Unknown jsontext.Value
}

func (w *wireBox[T]) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireBox[T]) member(name []byte) wireValue {
	if string(name) == "value" {
		return optional(&w.Value)
	}
	return nil
}

type wireTransaction struct {
	UpdateID                span
	CommandID               span
	WorkflowID              span
	EffectiveAt             span
	Events                  []wireEvent
	Offset                  span
	SynchronizerID          span
	TraceContext            *wireTrace
	RecordTime              span
	ExternalTransactionHash span
	PaidTrafficCost         span
	TransactionHash         span
	Unknown                 jsontext.Value
}

func (w *wireTransaction) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireTransaction) member(name []byte) wireValue {
	switch string(name) {
	case "updateId":
		return &w.UpdateID
	case "commandId":
		return &w.CommandID
	case "workflowId":
		return &w.WorkflowID
	case "effectiveAt":
		return &w.EffectiveAt
	case "events":
		return repeated(&w.Events)
	case "offset":
		return &w.Offset
	case "synchronizerId":
		return &w.SynchronizerID
	case "traceContext":
		return optional(&w.TraceContext)
	case "recordTime":
		return &w.RecordTime
	case "externalTransactionHash":
		return &w.ExternalTransactionHash
	case "paidTrafficCost":
		return &w.PaidTrafficCost
	case "transactionHash":
		return &w.TransactionHash
	}
	return nil
}

type wireReassignment struct {
	UpdateID        span
	CommandID       span
	WorkflowID      span
	Events          []wireReassignmentEvent
	Offset          span
	SynchronizerID  span
	TraceContext    *wireTrace
	RecordTime      span
	PaidTrafficCost span
	Unknown         jsontext.Value
}

func (w *wireReassignment) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireReassignment) member(name []byte) wireValue {
	switch string(name) {
	case "updateId":
		return &w.UpdateID
	case "commandId":
		return &w.CommandID
	case "workflowId":
		return &w.WorkflowID
	case "events":
		return repeated(&w.Events)
	case "offset":
		return &w.Offset
	case "synchronizerId":
		return &w.SynchronizerID
	case "traceContext":
		return optional(&w.TraceContext)
	case "recordTime":
		return &w.RecordTime
	case "paidTrafficCost":
		return &w.PaidTrafficCost
	}
	return nil
}

type wireTopology struct {
	UpdateID       span
	Events         []wireTopologyEvent
	Offset         span
	SynchronizerID span
	TraceContext   *wireTrace
	RecordTime     span
	Unknown        jsontext.Value
}

func (w *wireTopology) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireTopology) member(name []byte) wireValue {
	switch string(name) {
	case "updateId":
		return &w.UpdateID
	case "events":
		return repeated(&w.Events)
	case "offset":
		return &w.Offset
	case "synchronizerId":
		return &w.SynchronizerID
	case "traceContext":
		return optional(&w.TraceContext)
	case "recordTime":
		return &w.RecordTime
	}
	return nil
}

type wireCheckpoint struct {
	Offset  span
	Times   []wireSynchronizerTime
	Unknown jsontext.Value
}

func (w *wireCheckpoint) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireCheckpoint) member(name []byte) wireValue {
	switch string(name) {
	case "offset":
		return &w.Offset
	case "synchronizerTimes":
		return repeated(&w.Times)
	}
	return nil
}

type wireSynchronizerTime struct {
	SynchronizerID span
	RecordTime     span
	Unknown        jsontext.Value
}

func (w *wireSynchronizerTime) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireSynchronizerTime) member(name []byte) wireValue {
	switch string(name) {
	case "synchronizerId":
		return &w.SynchronizerID
	case "recordTime":
		return &w.RecordTime
	}
	return nil
}

type wireTrace struct {
	Parent  span
	State   span
	Unknown jsontext.Value
}

func (w *wireTrace) readFrom(from source) error { return readObject(from, w, &w.Unknown) }

func (w *wireTrace) member(name []byte) wireValue {
	switch string(name) {
	case "traceparent":
		return &w.Parent
	case "tracestate":
		return &w.State
	}
	return nil
}
