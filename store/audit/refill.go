package audit

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// Refiller makes what was stored in an earlier scope complete for the scope in force, in the role of the backfill.
type Refiller struct{ writer }

// NewRefiller returns the Refiller of a leader.
func NewRefiller(s *store.Store, leader *store.BackfillWriter) *Refiller {
	return &Refiller{newWriter(s, leader.Leader)}
}

// Refill makes the facts of a page's range those of the page, which was read in the scope in force, with what follows from them for the
// contracts concerned, and moves the coverage of the range from the earlier scope to the one in force. The first one that leaves nothing
// in an earlier scope ends the change of scope.
//
// Ranges are refilled downwards without a gap: of a contract that becomes visible, the events that end it are stored before the
// event that activates it, so that no contract is ever shown as active that is not.
//
// All is done in one transaction, in which the writer of the updates waits. Errors: ErrNotLeader, or the database's; an error where the
// page is not the upper end of what is stored in an earlier scope. After any error the outcome is unknown: ask EarlierScope again.
func (r *Refiller) Refill(ctx context.Context, scope ledger.Scope, page ledger.Page) error {
	if err := r.refill(ctx, scope.Hash(), page); err != nil {
		return fmt.Errorf("fill in offsets after %d up to %d in the scope in force: %w", page.From, page.To, session.Refused(err))
	}
	return nil
}

func (r *Refiller) refill(ctx context.Context, scope string, page ledger.Page) error {
	if err := writing.CheckPage(&page, page.From); err != nil || page.From == page.To {
		return err
	}
	page = r.term.Redacted.Page(page)
	wanted := names.NewWanted()
	for i := range page.Updates {
		rows.UpdateNames(wanted, &page.Updates[i])
	}
	numbers, err := r.term.Resolve(ctx, wanted)
	if err != nil {
		return err
	}
	var facts rows.Facts
	for i := range page.Updates {
		facts.Add(numbers, &page.Updates[i])
	}
	if err := writing.EnsurePartitions(ctx, r.term.Partitions, &facts); err != nil {
		return err
	}
	return r.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.term.Exclude(ctx, tx, session.RoleUpdates); err != nil {
			return err
		}
		extent, err := r.refuseElsewhere(ctx, tx, scope, page)
		if err != nil {
			return err
		}
		different, err := r.differing(ctx, tx, page)
		if err == nil && len(different) > 0 {
			err = r.replace(ctx, tx, wanted, page, different, int64(extent.Watermark))
		}
		if err != nil {
			return err
		}
		if err := r.moveCoverage(ctx, tx, scope, page); err != nil || len(different) == 0 {
			return err
		}
		return r.reseal(ctx, tx, findings.SealedUpdates, int64(page.From), int64(page.To), writing.FilledIn, func(found func(findings.Difference) error) error {
			return r.stored.compare(ctx, tx, page, found)
		})
	})
}

// refuseElsewhere refuses a page that is not the upper end of what is stored in an earlier scope.
func (r *Refiller) refuseElsewhere(ctx context.Context, tx pgx.Tx, scope string, page ledger.Page) (held.Extent, error) {
	extent, err := held.Read(ctx, r.stored.db, tx)
	if err != nil {
		return extent, err
	}
	if extent.ChangedTo != scope {
		return extent, fmt.Errorf("scope %s is not one that the database was changed to", scope)
	}
	earlier, err := r.stored.db.Queries.CoverageEarlier(ctx, tx, tables.StreamUpdates)
	if err != nil {
		return extent, fmt.Errorf("read what is covered in an earlier scope: %w", err)
	}
	at := int64(page.To)
	for _, e := range slices.Backward(earlier) {
		if at > int64(page.From) && e.ToInclusive == at {
			at = e.FromExclusive
		} else if e.ToInclusive > int64(page.To) {
			return extent, fmt.Errorf("what is stored up to offset %d in an earlier scope comes first", e.ToInclusive)
		}
	}
	if at > int64(page.From) {
		return extent, fmt.Errorf("offset %d is not covered in an earlier scope", at)
	}
	return extent, nil
}

// replace writes the offsets of the page that differ again, and makes right what follows from them. What follows is known by computing
// it before and after: rows that are the same are not touched.
func (r *Refiller) replace(
	ctx context.Context, tx pgx.Tx, wanted *names.Wanted, page ledger.Page, different map[ledger.Offset]bool, watermark int64,
) error {
	if err := r.stored.db.Queries.DerivePlainly(ctx, tx); err != nil {
		return fmt.Errorf("have contracts looked up by index: %w", err)
	}
	contracts, created := contractsAt(page.Updates, different)
	before, err := r.stepOf(ctx, tx, contracts, watermark)
	if err != nil {
		return err
	}
	if err := r.rewrite(ctx, tx, wanted, page, different); err != nil {
		return err
	}
	after, err := r.stepOf(ctx, tx, contracts, watermark)
	if err != nil {
		return err
	}
	if err := r.term.Partitions.Ensure(ctx, "lifetimes", after.DeactivatedOffsets()); err != nil {
		return err
	}
	if err := r.project(ctx, tx, before, after); err != nil {
		return err
	}
	return r.lookUp(ctx, tx, created, after)
}

// contractsAt returns the contracts that the events of some updates are of, and those of them that are created there.
func contractsAt(updates []ledger.Update, at map[ledger.Offset]bool) (all, created []string) {
	seen := map[string]bool{}
	for i := range updates {
		u := &updates[i]
		if !at[u.Offset] {
			continue
		}
		for e := range u.All {
			seen[e.Contract()] = true
		}
		for j := range u.Created {
			created = append(created, u.Created[j].ContractID)
		}
	}
	delete(seen, "") // elements that are of none
	return slices.Sorted(maps.Keys(seen)), created
}

// stepOf computes from the stored facts what was and is active of some contracts.
func (r *Refiller) stepOf(ctx context.Context, tx pgx.Tx, contracts []string, watermark int64) (*active.Step, error) {
	list, err := r.stored.db.Queries.StepEventsOf(ctx, tx, dbsqlc.StepEventsOfParams{ContractIds: contracts, UpTo: watermark})
	if err != nil {
		return nil, fmt.Errorf("read the events of %d contracts: %w", len(contracts), err)
	}
	return active.NewStep(active.StoredEvents(list)), nil
}

// lifetimeKey is the key of a lifetime, and, without an end, of an active contract.
type lifetimeKey struct {
	ended, activated int64
	nodeID           int32
}

// project replaces the active contracts and lifetimes that differ.
func (r *Refiller) project(ctx context.Context, tx pgx.Tx, before, after *active.Step) error {
	activeKey := func(a *dbsqlc.ActiveContracts) lifetimeKey {
		return lifetimeKey{0, a.ActivatedOffset, a.ActivatedNodeID}
	}
	closedKey := func(l *dbsqlc.Lifetimes) lifetimeKey {
		return lifetimeKey{l.DeactivatedOffset, l.ActivatedOffset, l.ActivatedNodeID}
	}
	goneActive, newActive := changed(before.Activations, after.Activations, activeKey)
	goneClosed, newClosed := changed(before.Lifetimes, after.Lifetimes, closedKey)
	q := r.stored.db.Queries
	var opened dbsqlc.ActiveContractsRemoveParams
	for _, k := range goneActive {
		opened.ActivatedOffsets, opened.ActivatedNodeIds = append(opened.ActivatedOffsets, k.activated), append(opened.ActivatedNodeIds, k.nodeID)
	}
	if err := q.ActiveContractsRemove(ctx, tx, opened); err != nil {
		return fmt.Errorf("remove %d active contracts: %w", len(goneActive), err)
	}
	var closed dbsqlc.LifetimesRemoveParams
	for _, k := range goneClosed {
		closed.DeactivatedOffsets, closed.ActivatedOffsets = append(closed.DeactivatedOffsets, k.ended), append(closed.ActivatedOffsets, k.activated)
		closed.ActivatedNodeIds = append(closed.ActivatedNodeIds, k.nodeID)
	}
	if err := q.LifetimesRemove(ctx, tx, closed); err != nil {
		return fmt.Errorf("remove %d lifetimes: %w", len(goneClosed), err)
	}
	if err := writing.CopyRows(ctx, tx, "lifetimes", newClosed); err != nil {
		return err
	}
	return writing.CopyRows(ctx, tx, "active_contracts", newActive)
}

// changed returns the keys of the rows that are not, or not the same, afterwards, and the rows that were not, or not the same, before.
func changed[R any](before, after []R, key func(*R) lifetimeKey) (gone []lifetimeKey, added []R) {
	was := make(map[lifetimeKey]*R, len(before))
	for i := range before {
		was[key(&before[i])] = &before[i]
	}
	for i := range after {
		k := key(&after[i])
		if old := was[k]; old != nil && reflect.DeepEqual(*old, after[i]) {
			delete(was, k)
		} else {
			added = append(added, after[i])
		}
	}
	return slices.Collect(maps.Keys(was)), added
}

// lookUp forgets the look-ups of contracts whose creation is stored now, and asks for those that events use and whose creation is
// not stored, or not yet.
func (r *Refiller) lookUp(ctx context.Context, tx pgx.Tx, created []string, after *active.Step) error {
	q := r.stored.db.Queries
	gone, err := q.LookupsForgetCreated(ctx, tx, created)
	if err != nil {
		return fmt.Errorf("forget the look-ups of %d contracts: %w", len(created), err)
	}
	var exact dbsqlc.LookupsForgetExactParams
	for _, place := range gone {
		exact.LedgerOffsets, exact.NodeIds = append(exact.LedgerOffsets, place.LedgerOffset), append(exact.NodeIds, place.NodeID)
	}
	if err := q.LookupsForgetExact(ctx, tx, exact); err != nil {
		return fmt.Errorf("remove the exact values of look-ups: %w", err)
	}
	var wanted dbsqlc.LookupsWantKnownParams
	want := func(contractID string, offset int64, nodeID int32) {
		wanted.ContractIds, wanted.LedgerOffsets, wanted.NodeIds = append(wanted.ContractIds, contractID), append(wanted.LedgerOffsets, offset), append(wanted.NodeIds, nodeID)
	}
	for _, u := range after.References {
		want(u.ContractID, u.Offset, u.NodeID)
	}
	for _, d := range after.Deactivations {
		if d.LookupOffset > 0 {
			want(d.Key.ContractID, d.LookupOffset, d.LookupNodeID)
		}
	}
	if err := q.LookupsWantKnown(ctx, tx, wanted); err != nil {
		return fmt.Errorf("ask for %d contracts: %w", len(wanted.ContractIds), err)
	}
	return nil
}

// moveCoverage moves the coverage of the page's range to the scope in force, and ends the change of scope if that was the last.
func (r *Refiller) moveCoverage(ctx context.Context, tx pgx.Tx, scope string, page ledger.Page) error {
	q, from, to := r.stored.db.Queries, int64(page.From), int64(page.To)
	err := q.CoverageCut(ctx, tx, dbsqlc.CoverageCutParams{Stream: tables.StreamUpdates, Scope: scope, FromExclusive: from, ToInclusive: to})
	if err == nil {
		err = q.CoverageClose(ctx, tx, dbsqlc.CoverageCloseParams{Stream: tables.StreamUpdates, Scope: scope, FromExclusive: from, ToInclusive: to})
	}
	if err != nil {
		return fmt.Errorf("move the coverage: %w", err)
	}
	return writing.PutInForce(ctx, tx, scope)
}
