package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// ContractHistory is what a database knows of a contract, up to the watermark.
type ContractHistory struct {
	Extent
	Contract  *ledger.Contract // as its latest creation event says, or else its look-up; nil: neither is stored
	Events    []ContractEvent  // in the order of the ledger
	Older     bool             // there are older events, which are left out
	Active    []ContractActive // where it is active at the watermark
	Lifetimes []ContractLifetime
	Lookup    *ContractLookup // nil: it was never asked for
}

// historyLimit is how many events of a contract are read: one that lives long can be exercised millions of times.
const historyLimit = 1000

// Known reports whether the database holds anything of the contract.
func (h *ContractHistory) Known() bool { return len(h.Events)+len(h.Active) > 0 || h.Lookup != nil }

// The kinds of ContractEvent.
const (
	EventCreated    = "created"
	EventArchived   = "archived" // in either shape: a consuming exercise is one too
	EventExercised  = "exercised"
	EventAssigned   = rows.KindAssigned
	EventUnassigned = rows.KindUnassigned
)

// ContractEvent is something that happened to a contract. Fields that its kind does not have are nil or empty, and so
// are the update's id and the record time of an event from a snapshot. The JSON forms of this type and the next three
// are for scripts.
type ContractEvent struct {
	Offset         ledger.Offset `json:"ledger_offset"`
	NodeID         int32         `json:"node_id"`
	Kind           string        `json:"kind"`
	Origin         ledger.Origin `json:"origin,omitempty"` // of a creation
	UpdateID       *string       `json:"update_id"`
	RecordTime     ledger.Time   `json:"record_time"`
	SynchronizerID *string       `json:"synchronizer_id"`
	TemplateID     *string       `json:"template_id"`
	PackageName    *string       `json:"package_name"`
	ACSDelta       *bool         `json:"acs_delta,omitempty"`

	Choice      *string `json:"choice,omitempty"`
	Consuming   *bool   `json:"consuming,omitempty"`
	InterfaceID *string `json:"interface_id,omitempty"`

	Source              *string `json:"source_synchronizer_id,omitempty"`
	Target              *string `json:"target_synchronizer_id,omitempty"`
	ReassignmentID      *string `json:"reassignment_id,omitempty"`
	ReassignmentCounter *int64  `json:"reassignment_counter,omitempty"`
}

// ContractActive is a synchronizer on which a contract is active, and since when.
type ContractActive struct {
	SynchronizerID      *string       `json:"synchronizer_id"` // nil: the updates named none
	Offset              ledger.Offset `json:"activated_offset"`
	NodeID              int32         `json:"activated_node_id"`
	ReassignmentCounter int64         `json:"reassignment_counter"`
}

// ContractLifetime is a time in which a contract was active on a synchronizer: at the offsets from Activated on, and
// not at Deactivated any more.
type ContractLifetime struct {
	SynchronizerID *string       `json:"synchronizer_id"`
	Activated      ledger.Offset `json:"activated_offset"`
	NodeID         int32         `json:"activated_node_id"` // of the activation
	Deactivated    ledger.Offset `json:"deactivated_offset"`
}

// ContractLookup is the outcome of the look-up of a contract whose creation is not stored.
type ContractLookup struct {
	Status ledger.LookupStatus `json:"status"`           // or "wanted": it has not ended
	Reason string              `json:"reason,omitempty"` // why the answer could not be used
	At     ledger.Time         `json:"looked_up_at"`     // not valid where it has not ended
	Offset ledger.Offset       `json:"ledger_offset"`    // of the event that it was asked for
	NodeID int32               `json:"node_id"`
}

// ContractHistory returns what is known of a contract, whatever text its id is: an id that no column can hold is not
// known. All is read in one snapshot of the database.
func (s *Store) ContractHistory(ctx context.Context, contractID string) (ContractHistory, error) {
	var h ContractHistory
	err := s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		var err error
		if h.Extent, err = bounds.Read(ctx, tx); err != nil || !h.Started || !rows.TextHolds(contractID) {
			return err
		}
		if err := s.contractEvents(ctx, tx, contractID, &h); err != nil {
			return fmt.Errorf("read the events of a contract: %w", err)
		}
		if err := s.contractState(ctx, tx, contractID, &h); err != nil {
			return fmt.Errorf("read the state of a contract: %w", err)
		}
		if err := s.contractLookup(ctx, tx, contractID, &h); err != nil {
			return fmt.Errorf("read the look-up of a contract: %w", err)
		}
		return nil
	})
	return h, err
}

func (s *Store) contractEvents(ctx context.Context, db dbsqlc.DBTX, contractID string, h *ContractHistory) error {
	found, err := db.Query(ctx, contractEventsSQL(), contractID, historyLimit+1)
	if err != nil {
		return err
	}
	events, err := pgx.CollectRows(found, scanEvent)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		h.Events = append(h.Events, e)
		if e.Consuming != nil && *e.Consuming {
			h.Events = append(h.Events, ContractEvent{
				Offset: e.Offset, NodeID: e.NodeID, Kind: EventArchived, UpdateID: e.UpdateID, RecordTime: e.RecordTime,
				SynchronizerID: e.SynchronizerID, TemplateID: e.TemplateID, PackageName: e.PackageName, ACSDelta: e.ACSDelta,
			})
		}
	}
	if more := len(h.Events) - historyLimit; more > 0 {
		h.Events, h.Older = h.Events[more:], true
	}
	stored, err := queries.ContractStored(ctx, db, contractID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	h.Contract = &ledger.Contract{
		ContractID: contractID, TemplateID: textOf(stored.TemplateID), PackageName: textOf(stored.PackageName),
		Argument: stored.Payload, ContractKey: stored.ContractKey, ContractKeyHash: stored.ContractKeyHash,
		Signatories: stored.Signatories, Observers: stored.Observers, WitnessParties: stored.WitnessParties,
		CreatedAt: ledgerTime(stored.CreatedAt),
	}
	return err
}

// eventColumns are the columns that tables of events have, or have not, with their types.
var eventColumns = [][2]string{
	{"origin", "text"}, {"acs_delta", "boolean"}, {"choice", "text"}, {"consuming", "boolean"}, {"interface_id", "text"},
	{"source_ref", "integer"}, {"target_ref", "integer"}, {"reassignment_id", "text"}, {"reassignment_counter", "bigint"},
}

// contractEventsSQL reads the latest $2 events of contract $1 up to the watermark: the rows of each table of events of
// contracts. The kind of an event is what the column kind says, in a table that has one, and else the table's name.
func contractEventsSQL() string {
	columns := map[string][]string{}
	for _, t := range new(rows.Facts).Tables() {
		columns[t.Name] = t.Columns()
	}
	var branches []string
	for _, t := range tables.In(tables.Facts) {
		if !t.Contract {
			continue
		}
		has := func(column, otherwise string) string {
			if slices.Contains(columns[t.Name], column) {
				return "e." + column
			}
			return otherwise
		}
		list := []string{"e.ledger_offset", "e.node_id", "e.record_time", "e.synchronizer_ref", "e.template_ref",
			has("kind", "'"+t.Name+"'") + " AS kind"}
		for _, c := range eventColumns {
			list = append(list, has(c[0], "NULL::"+c[1]+" AS "+c[0]))
		}
		branches = append(branches, "SELECT "+strings.Join(list, ", ")+" FROM "+t.Name+" e WHERE e.contract_id = $1")
	}
	return `
SELECT e.ledger_offset, e.node_id, e.kind, coalesce(e.origin, ''), CASE WHEN e.origin IS DISTINCT FROM 'snapshot' THEN
        (SELECT u.update_id FROM updates u WHERE u.ledger_offset = e.ledger_offset) END,
    e.record_time, s.synchronizer_id, t.template_id, t.package_name, e.acs_delta, e.choice, e.consuming, e.interface_id,
    so.synchronizer_id, ta.synchronizer_id, e.reassignment_id, e.reassignment_counter
FROM (` + strings.Join(branches, "\n    UNION ALL ") + `) e
LEFT JOIN templates t ON t.template_ref = e.template_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = e.synchronizer_ref
LEFT JOIN synchronizers so ON so.synchronizer_ref = e.source_ref
LEFT JOIN synchronizers ta ON ta.synchronizer_ref = e.target_ref
WHERE e.ledger_offset + 0 <= (SELECT watermark())
ORDER BY e.ledger_offset DESC, e.node_id DESC LIMIT $2`
}

func scanEvent(row pgx.CollectableRow) (e ContractEvent, err error) {
	var at pgtype.Timestamptz
	err = row.Scan(&e.Offset, &e.NodeID, &e.Kind, &e.Origin, &e.UpdateID, &at, &e.SynchronizerID, &e.TemplateID,
		&e.PackageName, &e.ACSDelta, &e.Choice, &e.Consuming, &e.InterfaceID, &e.Source, &e.Target, &e.ReassignmentID,
		&e.ReassignmentCounter)
	if e.RecordTime = ledgerTime(at); e.Kind == EventArchived {
		e.ACSDelta = new(true) // it implies it
	}
	return e, err
}

func (s *Store) contractState(ctx context.Context, db dbsqlc.DBTX, contractID string, h *ContractHistory) error {
	active, err := queries.ContractActive(ctx, db, contractID)
	if err != nil {
		return err
	}
	for _, a := range active {
		h.Active = append(h.Active, ContractActive{
			SynchronizerID: a.SynchronizerID, Offset: ledger.Offset(a.ActivatedOffset), NodeID: a.ActivatedNodeID,
			ReassignmentCounter: a.ReassignmentCounter,
		})
	}
	// A lifetime ends with an event of the contract, and is found by its end.
	var ends []int64
	for _, e := range h.Events {
		ends = append(ends, int64(e.Offset))
	}
	lifetimes, err := queries.ContractLifetimes(ctx, db, dbsqlc.ContractLifetimesParams{
		ContractID: contractID, DeactivatedOffsets: slices.Compact(ends),
	})
	if err != nil {
		return err
	}
	for _, l := range lifetimes {
		h.Lifetimes = append(h.Lifetimes, ContractLifetime{
			SynchronizerID: l.SynchronizerID, Activated: ledger.Offset(l.ActivatedOffset),
			Deactivated: ledger.Offset(l.DeactivatedOffset),
			NodeID:      l.ActivatedNodeID,
		})
	}
	return nil
}

func (s *Store) contractLookup(ctx context.Context, db dbsqlc.DBTX, contractID string, h *ContractHistory) error {
	row, err := queries.ContractLookup(ctx, db, contractID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	h.Lookup = &ContractLookup{
		Status: ledger.LookupStatus(row.Status), Reason: textOf(row.Reason), At: ledgerTime(row.LookedUpAt),
		Offset: ledger.Offset(row.LedgerOffset),
		NodeID: row.NodeID,
	}
	if h.Contract == nil && h.Lookup.Status == ledger.LookupFound {
		h.Contract = &ledger.Contract{
			ContractID: contractID, TemplateID: textOf(row.TemplateID), PackageName: textOf(row.PackageName),
			Argument: row.Payload, ContractKey: row.ContractKey, ContractKeyHash: row.ContractKeyHash,
			Signatories: row.Signatories,
			Observers:   row.Observers, WitnessParties: row.WitnessParties, CreatedAt: ledgerTime(row.CreatedAt),
		}
	}
	return nil
}

func ledgerTime(t pgtype.Timestamptz) ledger.Time {
	return ledger.Time{Time: t.Time.UTC(), Valid: t.Valid}
}
