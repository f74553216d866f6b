package ledger

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// variant checks that a sum type holds exactly one variant, out of the known ones that are set and the unknown ones,
// and returns the name of that variant where it is unknown.
func variant(unknown jsontext.Value, known ...bool) (name string, err error) {
	count := 0
	for _, set := range known {
		if set {
			count++
		}
	}
	eachMember(unknown, func(member string) { name = member; count++ })
	switch count {
	case 0:
		return "", errors.New("holds no variant, and exactly one is expected")
	case 1:
		return name, nil
	default:
		return "", fmt.Errorf("holds %d variants, and exactly one is expected", count)
	}
}

// element converts an element of an update response: to an update, or else to a checkpoint.
func (r *reader) element(w *wireElement) (*Update, *OffsetCheckpoint, error) {
	if w.Update == nil {
		return nil, nil, below("update", errMissing)
	}
	u := w.Update
	unknown, err := variant(u.Unknown, u.Transaction != nil, u.Reassignment != nil, u.Topology != nil, u.Checkpoint != nil)
	if err != nil {
		return nil, nil, below("update", err)
	}
	switch {
	case u.Transaction != nil:
		update, err := convert(r.transaction, w, "Transaction", u.Transaction)
		return update, nil, err
	case u.Reassignment != nil:
		update, err := convert(r.reassignment, w, "Reassignment", u.Reassignment)
		return update, nil, err
	case u.Topology != nil:
		update, err := convert(r.topology, w, "TopologyTransaction", u.Topology)
		return update, nil, err
	case u.Checkpoint != nil:
		const name = "OffsetCheckpoint"
		if u.Checkpoint.Value == nil {
			return nil, nil, below(name, below("value", errMissing))
		}
		checkpoint, err := r.checkpoint(u.Checkpoint.Value)
		if err != nil {
			return nil, nil, below(name, err)
		}
		checkpoint.Extra = withEnvelope(checkpoint.Extra, w.Unknown, "update", name, u.Checkpoint.Unknown)
		return nil, checkpoint, nil
	default:
		update, err := unknownUpdate(unknown, u.Unknown)
		if err != nil {
			return nil, nil, below("update", err)
		}
		update.Extra = withEnvelope(nil, w.Unknown, "update", unknown, nil)
		return update, nil, nil
	}
}

// convert converts the update of a variant that is called name.
func convert[W any](convert func(*W) (*Update, error), element *wireElement, name string, box *wireBox[W]) (*Update, error) {
	if box.Value == nil {
		return nil, below(name, below("value", errMissing))
	}
	update, err := convert(box.Value)
	if err != nil {
		return nil, below(name, err)
	}
	update.Extra = withEnvelope(update.Extra, element.Unknown, "update", name, box.Unknown)
	return update, nil
}

func (r *reader) transaction(w *wireTransaction) (*Update, error) {
	o := object{reader: r}
	update := &r.update
	*update = Update{
		Kind:                    KindTransaction,
		Offset:                  o.updateOffset("offset", w.Offset),
		ID:                      o.unique("updateId", w.UpdateID),
		CommandID:               o.optionalText("commandId", w.CommandID),
		WorkflowID:              o.optionalText("workflowId", w.WorkflowID),
		SynchronizerID:          o.requiredText("synchronizerId", w.SynchronizerID),
		RecordTime:              o.time("recordTime", w.RecordTime),
		EffectiveAt:             o.time("effectiveAt", w.EffectiveAt),
		ExternalTransactionHash: o.bytes("externalTransactionHash", w.ExternalTransactionHash),
		TransactionHash:         o.bytes("transactionHash", w.TransactionHash),
		PaidTrafficCost:         o.optionalInt64("paidTrafficCost", w.PaidTrafficCost),
		Extra:                   o.unknown(w.Unknown),
	}
	if w.Events == nil {
		o.fail("events", errMissing)
	}
	o.trace(update, w.TraceContext)
	if o.err != nil {
		return nil, o.err
	}
	return update, r.events(update, w.Events)
}

func (r *reader) reassignment(w *wireReassignment) (*Update, error) {
	o := object{reader: r}
	update := &r.update
	*update = Update{
		Kind:            KindReassignment,
		Offset:          o.updateOffset("offset", w.Offset),
		ID:              o.unique("updateId", w.UpdateID),
		CommandID:       o.optionalText("commandId", w.CommandID),
		WorkflowID:      o.optionalText("workflowId", w.WorkflowID),
		SynchronizerID:  o.optionalShared("synchronizerId", w.SynchronizerID), // 3.3 leaves it out
		RecordTime:      o.time("recordTime", w.RecordTime),
		PaidTrafficCost: o.optionalInt64("paidTrafficCost", w.PaidTrafficCost),
		Extra:           o.unknown(w.Unknown),
	}
	if w.Events == nil {
		o.fail("events", errMissing)
	}
	o.trace(update, w.TraceContext)
	if o.err != nil {
		return nil, o.err
	}
	return update, r.reassignmentEvents(update, w.Events)
}

func (r *reader) topology(w *wireTopology) (*Update, error) {
	o := object{reader: r}
	update := &r.update
	*update = Update{
		Kind:           KindTopology,
		Offset:         o.updateOffset("offset", w.Offset),
		ID:             o.unique("updateId", w.UpdateID),
		SynchronizerID: o.requiredText("synchronizerId", w.SynchronizerID),
		RecordTime:     o.time("recordTime", w.RecordTime),
		Extra:          o.unknown(w.Unknown),
	}
	if w.Events == nil {
		o.fail("events", errMissing)
	}
	o.trace(update, w.TraceContext)
	if o.err != nil {
		return nil, o.err
	}
	return update, r.topologyEvents(update, w.Events)
}

// trace takes over the trace context.
func (o *object) trace(update *Update, w *wireTrace) {
	if w == nil {
		return
	}
	update.TraceParent = o.optionalText("traceContext.traceparent", w.Parent)
	update.TraceState = o.optionalText("traceContext.tracestate", w.State)
	rest := w.Unknown
	if rest == nil && update.TraceParent == nil && update.TraceState == nil {
		rest = jsontext.Value("{}") // an empty object is not an absent one
	}
	update.Extra = appendMember(update.Extra, extraTrace, rest)
}

func (r *reader) checkpoint(w *wireCheckpoint) (*OffsetCheckpoint, error) {
	o := object{reader: r}
	checkpoint := &OffsetCheckpoint{
		Offset: o.bound("offset", w.Offset),
		Extra:  o.unknown(w.Unknown),
	}
	if len(w.Times) > mostTimes {
		o.fail("synchronizerTimes", fmt.Errorf("has %d times, and %d are read: one for each synchronizer of the participant", len(w.Times), mostTimes))
		return nil, o.err
	}
	if w.Times == nil {
		o.fail("synchronizerTimes", errMissing)
	} else {
		checkpoint.Times = make([]SynchronizerTime, len(w.Times))
	}
	var rest JSON
	for i, t := range w.Times {
		entry := object{reader: r}
		checkpoint.Times[i] = SynchronizerTime{
			SynchronizerID: entry.shared("synchronizerId", t.SynchronizerID),
			RecordTime:     entry.time("recordTime", t.RecordTime),
		}
		if entry.err != nil {
			o.fail(index("synchronizerTimes", i), entry.err)
		}
		rest = extend(rest, index("", i), t.Unknown)
	}
	checkpoint.Extra = appendMember(checkpoint.Extra, extraTimes, rest)
	return checkpoint, o.err
}
