package rows

import (
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
)

// Exercised is a row of exercised.
type Exercised struct {
	LedgerOffset          int64              `db:"ledger_offset"`
	NodeID                int32              `db:"node_id"`
	TemplateRef           *int32             `db:"template_ref"`
	RecordTime            pgtype.Timestamptz `db:"record_time"`
	SynchronizerRef       *int32             `db:"synchronizer_ref"`
	ActingPartiesRef      *int32             `db:"acting_parties_ref"`
	WitnessPartiesRef     *int32             `db:"witness_parties_ref"`
	LastDescendantNodeID  int32              `db:"last_descendant_node_id"`
	Consuming             bool               `db:"consuming"`
	ACSDelta              *bool              `db:"acs_delta"`
	Choice                string             `db:"choice"`
	ContractID            string             `db:"contract_id"`
	InterfaceID           *string            `db:"interface_id"`
	ChoiceArgument        []byte             `db:"choice_argument"`
	ExerciseResult        []byte             `db:"exercise_result"`
	ImplementedInterfaces []string           `db:"implemented_interfaces"`
	Extra                 []byte             `db:"extra"`
	Exact                 []byte             `db:"exact"`
}

// exercise adds an exercise. One that archives nothing uses its contract where acs_delta is not false: that is active,
// or should be.
func (w *walk) exercise(e *ledger.ExercisedEvent) {
	witnesses := w.wanted.List(e.WitnessParties)
	w.seenBy = w.seenBy.With(witnesses)
	w.exercised = append(w.exercised, Exercised{
		LedgerOffset: int64(w.u.Offset), NodeID: e.NodeID, ContractID: e.ContractID,
		TemplateRef:     w.wanted.Template(e.TemplateID, e.PackageName, nil),
		SynchronizerRef: w.synchronizer, RecordTime: Timestamp(w.u.RecordTime), InterfaceID: e.InterfaceID, Choice: e.Choice,
		ChoiceArgument:   w.exact.Value("choice_argument", e.Argument),
		ExerciseResult:   w.exact.Value("exercise_result", e.Result),
		ActingPartiesRef: w.wanted.Parties(e.ActingParties), Consuming: e.Consuming,
		LastDescendantNodeID: e.LastDescendantNodeID,
		WitnessPartiesRef:    w.wanted.At(witnesses), ACSDelta: e.ACSDelta, ImplementedInterfaces: e.ImplementedInterfaces,
		Extra: w.exact.Value("extra", e.Extra), Exact: w.exact.Column(),
	})
	if witnessed := e.ACSDelta != nil && !*e.ACSDelta; e.Consuming || !witnessed {
		w.effect(Effect{ContractID: e.ContractID, Synchronizer: w.synchronizer, NodeID: e.NodeID,
			IsReference: !e.Consuming, WantsLookup: !witnessed})
	}
}
