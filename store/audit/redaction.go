package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
)

// Redaction says what is redacted: a contract, or an update with the contracts that it created. One of them is set.
// Derived: records of the transaction history follow from the stored updates.
type Redaction struct {
	ContractID, UpdateID string
	Derived              bool
}

// String names it.
func (r Redaction) String() string {
	if r.UpdateID != "" {
		return "update " + r.UpdateID
	}
	return "contract " + r.ContractID
}

// RedactionReport is what a redaction erases, or has erased.
type RedactionReport struct {
	// whose content it is: the one that was named, or those that the update created
	Contracts []string        `json:"contracts"`
	Offsets   []ledger.Offset `json:"offsets"`          // where the update is stored; empty: a contract was named
	Before    *RedactedBefore `json:"before,omitempty"` // nil: it was not redacted before
	Rows      []RedactedRows  `json:"rows"`             // table by table, those without any left out

	// Of a redaction that was made. Vacuumed are the tables and partitions of which the space of the erased versions was
	// freed; VacuumFailed says why it was not.
	Vacuumed     []string `json:"vacuumed,omitempty"`
	VacuumFailed error    `json:"-"`
}

// RedactedBefore is an earlier redaction of the same.
type RedactedBefore struct {
	At     time.Time `json:"redacted_at"`
	By     string    `json:"redacted_by"` // the database role
	Reason string    `json:"reason"`
}

// String returns the earlier redaction as a sentence. The reason is as the operator gave it.
func (r *RedactedBefore) String() string {
	return fmt.Sprintf("redacted at %s by %s: %s", r.At.UTC().Format(time.RFC3339), r.By, r.Reason)
}

// RedactedRows are the rows of a table from which content is erased.
type RedactedRows struct {
	Relation string `json:"relation"`
	Rows     int64  `json:"rows"`
}

// Redacted counts the contracts and updates that were redacted.
func (s *Stored) Redacted(ctx context.Context) (contracts, updates int64, err error) {
	defer s.db.Wrap(&err, "count what was redacted")
	counts, err := queries.RedactionCounts(ctx, s.db.Pool)
	return counts.Contracts, counts.Updates, err
}

// RedactedBefore returns the redaction of a contract or an update; nil: there was none.
func (s *Stored) RedactedBefore(ctx context.Context, what Redaction) (*RedactedBefore, error) {
	if !rows.TextHolds(what.ContractID + what.UpdateID) {
		return nil, nil
	}
	return s.redactedBefore(ctx, s.db.Pool, what)
}

func (s *Stored) redactedBefore(ctx context.Context, db dbsqlc.DBTX, what Redaction) (*RedactedBefore, error) {
	of := dbsqlc.RedactionOfParams{Kind: redacted.Contract, ID: what.ContractID}
	if what.UpdateID != "" {
		of = dbsqlc.RedactionOfParams{Kind: redacted.Update, ID: what.UpdateID}
	}
	list, err := queries.RedactionOf(ctx, db, of)
	if err != nil {
		return nil, fmt.Errorf("look for a redaction: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return &RedactedBefore{At: list[0].RedactedAt.Time, By: list[0].RedactedBy, Reason: list[0].Reason}, nil
}

// redactionTargets says where the content lies that is erased.
type redactionTargets struct {
	report  RedactionReport
	events  places // of the contracts, and their look-ups
	seqs    []int64
	records map[string][]ledger.Record // that follow from updates, by the update's id, without what is erased
	args    pgx.NamedArgs
	changed map[string][]int64 // places at which something is erased, by stream
	touched []string           // tables and partitions from which something was erased
}

func (r *RedactionReport) add(relation string, rows int64) {
	i := slices.IndexFunc(r.Rows, func(r RedactedRows) bool { return r.Relation == relation })
	switch {
	case rows == 0:
	case i < 0:
		r.Rows = append(r.Rows, RedactedRows{Relation: relation, Rows: rows})
	default:
		r.Rows[i].Rows += rows
	}
}
