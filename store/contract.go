package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
)

// historyLimit is how many events of a contract are read: one that lives long can be exercised millions of times.
const historyLimit = 1000

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
		if h.Extent, err = bounds.Read(ctx, s.db, tx); err != nil || !h.Started || !rows.TextHolds(contractID) {
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
	rows, err := s.db.Queries.ContractEvents(ctx, db, dbsqlc.ContractEventsParams{ContractID: contractID,
		Most: historyLimit + 1})
	if err != nil {
		return err
	}
	if len(rows) > historyLimit {
		rows, h.Older = rows[:historyLimit], true
	}
	slices.Reverse(rows)
	for _, r := range rows {
		h.Events = append(h.Events, ContractEvent{
			Offset: ledger.Offset(r.LedgerOffset), NodeID: r.NodeID, Kind: r.Kind, Origin: ledger.Origin(r.Origin),
			UpdateID:   r.UpdateID,
			RecordTime: ledgerTime(r.RecordTime), SynchronizerID: r.SynchronizerID, TemplateID: r.TemplateID,
			PackageName: r.PackageName,
			ACSDelta:    r.ACSDelta, Choice: r.Choice, Consuming: r.Consuming, InterfaceID: r.InterfaceID,
			Source: r.SourceSynchronizerID,
			Target: r.TargetSynchronizerID, ReassignmentID: r.ReassignmentID, ReassignmentCounter: r.ReassignmentCounter,
		})
	}
	stored, err := s.db.Queries.ContractStored(ctx, db, contractID)
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

func (s *Store) contractState(ctx context.Context, db dbsqlc.DBTX, contractID string, h *ContractHistory) error {
	active, err := s.db.Queries.ContractActive(ctx, db, contractID)
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
	lifetimes, err := s.db.Queries.ContractLifetimes(ctx, db, dbsqlc.ContractLifetimesParams{
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
	row, err := s.db.Queries.ContractLookup(ctx, db, contractID)
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
