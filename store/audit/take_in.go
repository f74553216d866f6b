package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// TakeIn makes what is active as of an offset what the participant shows there, as a resync does, where no update says
// so: of its entries those begin there that are not active here, and what has the keys, which are those of ActiveAt,
// ends there. What follows from that follows in the same transaction, which takes about as long as RepairDerived.
// Events, and what was active before the offset, stay as they are. The entries and keys are of a scope: where another
// one is in force the error is errScopeChanged, and during a change of the scope a *ledger.Problem.
func (r *Repairer) TakeIn(ctx context.Context, scope ledger.Scope, at ledger.Offset, entries []ledger.ContractEntry,
	gone []EntryKey) (err error) {
	defer pg.Wrap(&err, "take in what is active as of offset %d", at)
	entries = r.term.Redacted.Entries(entries)
	if err := r.ensureLifetimes(ctx); err != nil {
		return err
	}
	if err := writing.EnsureResync(ctx, r.term.Partitions, at); err != nil {
		return err
	}
	return r.repair(ctx, leasesThatRemember, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := r.stored.extentAt(ctx, tx, at); err != nil { // pruned meanwhile
			return err
		}
		unfinished, err := writing.UnfinishedResync(ctx, tx)
		if err != nil {
			return err
		}
		if unfinished != nil {
			return &ledger.Problem{
				What: "what the participant shows as active is not taken in while the scope is changed",
				Do:   "let `indexer run --change-scope` finish, and verify again",
			}
		}
		if err := r.stored.refuseChangedScope(ctx, tx, scope); err != nil {
			return err
		}
		node, err := queries.ResyncNode(ctx, tx, int64(at))
		if err != nil {
			return fmt.Errorf("look for what was taken in before: %w", err)
		}
		if err := r.begin(ctx, tx, at, node, entries); err != nil {
			return err
		}
		ends := dbsqlc.ResyncDeactivateParams{LedgerOffset: int64(at), FirstNodeID: node + int32(len(entries))}
		for _, key := range gone {
			ends.ContractIds = append(ends.ContractIds, key.contractID)
			ends.SynchronizerRefs = append(ends.SynchronizerRefs, key.number)
		}
		if err := queries.ResyncDeactivate(ctx, tx, ends); err != nil {
			return fmt.Errorf("end what is not shown: %w", err)
		}
		if err := r.derive(ctx, tx, nil); err != nil {
			return err
		}
		return r.repaired(ctx, tx, tables.StreamUpdates, int64(at)-1, int64(at), writing.Repaired)
	})
}

// begin stores the entries that are not active as of the offset, at nodes from one on.
func (r *Repairer) begin(ctx context.Context, tx pgx.Tx, at ledger.Offset, node int32,
	entries []ledger.ContractEntry) error {
	wanted, taken := names.NewReferences(), rows.NewCarried(ledger.SnapshotProgress{At: at})
	for i := range entries {
		if entries[i].Active == nil {
			continue
		}
		if err := taken.Take(wanted, &entries[i], node+int32(i)); err != nil {
			return err
		}
	}
	if err := r.addNames(ctx, tx, wanted); err != nil {
		return err
	}
	if _, err := r.stored.resolve(ctx, tx, wanted); err != nil {
		return err
	}
	known, err := writing.ActiveAsOf(ctx, tx, at, taken.Active)
	if err != nil {
		return err
	}
	taken.Leave(func(a *rows.ActiveContract) bool { return known[writing.KeyOf(a)] != nil })
	return writing.CopyTables(ctx, tx, taken.Tables())
}
