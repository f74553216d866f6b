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

// Refiller completes facts that were stored in a scope which lacks something of the one in force, in the role of the
// backfill. It loses nothing that is stored: it writes pages that were read in a scope that shows both.
type Refiller struct {
	writer
	store *store.Store
}

// NewRefiller returns the Refiller of a leader.
func NewRefiller(s *store.Store, leader *store.BackfillWriter) *Refiller {
	return &Refiller{newWriter(s, leader.Leader), s}
}

// Refill replaces the facts of a page's range by those of the page, with what follows from them for the contracts
// concerned, and moves the coverage of the range to the scope in which the page was read, which shows everything that
// the earlier scope and the one in force show.
//
// Ranges are refilled downwards without a gap: of a contract that becomes visible, the events that end it are stored
// before the event that activates it, so that no contract is ever shown as active that is not.
//
// All is done in one transaction, in which the writer of the updates waits. Errors: ErrNotLeader, or the database's; an
// error where the page is not the upper end of what is stored in an earlier scope. After any error the outcome is
// unknown: ask EarlierScope again.
func (r *Refiller) Refill(ctx context.Context, scope ledger.Scope, page ledger.Page) error {
	if err := r.refill(ctx, scope, page); err != nil {
		return fmt.Errorf("fill in offsets after %d up to %d in the scope in force: %w", page.From, page.To,
			session.Refused(err))
	}
	return nil
}

func (r *Refiller) refill(ctx context.Context, scope ledger.Scope, page ledger.Page) error {
	if err := writing.CheckPage(&page, page.From); err != nil || page.From == page.To {
		return err
	}
	page = r.term.Redacted.Page(page)
	wanted := names.NewWanted()
	facts := rows.FactsOf(wanted, page.Updates)
	if err := r.term.Resolve(ctx, wanted); err != nil {
		return err
	}
	if err := writing.EnsurePartitions(ctx, r.term.Partitions, facts); err != nil {
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
		if err != nil {
			return err
		}
		move := func() error { return r.moveCoverage(ctx, tx, scope, page) }
		if len(different) == 0 {
			err = move()
		} else {
			err = r.replace(ctx, tx, wanted, page, different, int64(extent.Watermark), move)
		}
		if err != nil {
			return err
		}
		returned, err := writing.ReturnToScope(ctx, tx, r.term.Partitions, int64(page.From))
		if err == nil && returned {
			err = writing.NoteRewrite(ctx, tx, findings.SealedUpdates, int64(page.From)-1, int64(page.From),
				writing.ScopeChanged)
		}
		if err != nil || len(different) == 0 {
			return err
		}
		return r.reseal(ctx, tx, findings.SealedUpdates, int64(page.From), int64(page.To), writing.FilledIn,
			func(found func(findings.Difference) error) error {
				return r.stored.compare(ctx, tx, page, found)
			})
	})
}

// refuseElsewhere refuses a page that is not the upper end of what is stored in an earlier scope, and one that was read
// in another scope than that range needs.
func (r *Refiller) refuseElsewhere(ctx context.Context, tx pgx.Tx, scope ledger.Scope,
	page ledger.Page) (held.Extent, error) {
	extent, err := held.Read(ctx, r.stored.db, tx)
	if err != nil {
		return extent, err
	}
	last, err := r.lastEarlier(ctx, tx)
	switch {
	case err != nil:
	case last == nil || last.Snapshot || last.To != page.To || last.From > page.From:
		err = fmt.Errorf("offsets after %d up to %d are not the end of what is stored in an earlier scope", page.From,
			page.To)
	case last.Scope.Hash() != scope.Hash():
		err = fmt.Errorf("they were read in scope %s, and the scope was changed meanwhile: try again", scope.Canonical())
	}
	return extent, err
}

// lastEarlier returns the last range that is stored in an earlier scope; nil: there is none.
func (r *Refiller) lastEarlier(ctx context.Context, tx pgx.Tx) (*ledger.EarlierRange, error) {
	earlier, err := r.store.EarlierWithin(ctx, tx)
	if err != nil || len(earlier) == 0 {
		return nil, err
	}
	return &earlier[len(earlier)-1], nil
}

// replace writes the offsets of the page that differ again, and makes right what follows from them. What follows is
// known by computing it before and after: rows that are the same are not touched. move moves the coverage, from which
// it follows too.
func (r *Refiller) replace(
	ctx context.Context, tx pgx.Tx, wanted *names.Wanted, page ledger.Page, different map[ledger.Offset]bool,
	watermark int64, move func() error,
) error {
	if err := r.stored.db.Queries.DerivePlainly(ctx, tx); err != nil {
		return fmt.Errorf("have contracts looked up by index: %w", err)
	}
	contracts, created := contractsAt(page.Updates, different)
	before, err := r.stepOf(ctx, tx, contracts, watermark)
	if err != nil {
		return err
	}
	if err := r.rewrite(ctx, tx, page, different); err != nil {
		return err
	}
	if err := move(); err != nil {
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
	list, err := r.stored.db.Queries.StepEventsOf(ctx, tx, dbsqlc.StepEventsOfParams{ContractIds: contracts,
		UpTo: watermark})
	if err != nil {
		return nil, fmt.Errorf("read the events of %d contracts: %w", len(contracts), err)
	}
	return active.NewStep(active.StoredEffects(list)), nil
}

// lifetimeKey is the key of a lifetime, and, without an end, of an active contract.
type lifetimeKey struct {
	ended, activated int64
	nodeID           int32
}

// project replaces the active contracts and lifetimes that differ.
func (r *Refiller) project(ctx context.Context, tx pgx.Tx, before, after *active.Step) error {
	activeKey := func(a *rows.ActiveContract) lifetimeKey {
		return lifetimeKey{0, a.ActivatedOffset, a.ActivatedNodeID}
	}
	closedKey := func(l *rows.Lifetime) lifetimeKey {
		return lifetimeKey{l.DeactivatedOffset, l.ActivatedOffset, l.ActivatedNodeID}
	}
	goneActive, newActive := changed(before.Activations, after.Activations, activeKey)
	goneClosed, newClosed := changed(before.Lifetimes, after.Lifetimes, closedKey)
	var opened dbsqlc.ActiveContractsRemoveParams
	for _, k := range goneActive {
		opened.ActivatedOffsets, opened.ActivatedNodeIds = append(opened.ActivatedOffsets, k.activated),
			append(opened.ActivatedNodeIds, k.nodeID)
	}
	var closed dbsqlc.LifetimesRemoveParams
	for _, k := range goneClosed {
		closed.DeactivatedOffsets, closed.ActivatedOffsets = append(closed.DeactivatedOffsets, k.ended),
			append(closed.ActivatedOffsets, k.activated)
		closed.ActivatedNodeIds = append(closed.ActivatedNodeIds, k.nodeID)
	}
	return r.reproject(ctx, tx, opened, closed, newActive, newClosed)
}

// reproject removes active contracts and lifetimes, and writes others.
func (r *Refiller) reproject(
	ctx context.Context, tx pgx.Tx, opened dbsqlc.ActiveContractsRemoveParams, closed dbsqlc.LifetimesRemoveParams,
	newActive []rows.ActiveContract, newClosed []rows.Lifetime,
) error {
	if err := r.stored.db.Queries.ActiveContractsRemove(ctx, tx, opened); err != nil {
		return fmt.Errorf("remove %d active contracts: %w", len(opened.ActivatedOffsets), err)
	}
	if err := r.stored.db.Queries.LifetimesRemove(ctx, tx, closed); err != nil {
		return fmt.Errorf("remove %d lifetimes: %w", len(closed.ActivatedOffsets), err)
	}
	return writing.CopyTables(ctx, tx, []rows.Table{rows.TableOf("lifetimes", newClosed), rows.TableOf("active_contracts",
		newActive)})
}

// changed returns the keys of the rows that are not, or not the same, afterwards, and the rows that were not, or not
// the same, before.
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

// lookUp forgets the look-ups of contracts whose creation is stored now, and asks for those that events use and whose
// creation is not stored, or not yet.
func (r *Refiller) lookUp(ctx context.Context, tx pgx.Tx, created []string, after *active.Step) error {
	q := r.stored.db.Queries
	// a contract that left the scope was asked for when it ended: it is known now that it was active
	for i := range after.Activations {
		created = append(created, after.Activations[i].ContractID)
	}
	for i := range after.Lifetimes {
		created = append(created, after.Lifetimes[i].ContractID)
	}
	if err := writing.ForgetLookups(ctx, tx, created); err != nil {
		return err
	}
	var wanted dbsqlc.LookupsWantKnownParams
	want := func(contractID string, offset int64, nodeID int32) {
		wanted.ContractIds, wanted.LedgerOffsets, wanted.NodeIds = append(wanted.ContractIds, contractID),
			append(wanted.LedgerOffsets, offset), append(wanted.NodeIds, nodeID)
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

// moveCoverage moves the coverage of the page's range to the scope in which it was read.
func (r *Refiller) moveCoverage(ctx context.Context, tx pgx.Tx, scope ledger.Scope, page ledger.Page) error {
	q, hash, from, to := r.stored.db.Queries, scope.Hash(), int64(page.From), int64(page.To)
	err := q.ScopeRecord(ctx, tx, dbsqlc.ScopeRecordParams{Scope: hash, Definition: scope.Canonical()})
	if err == nil {
		err = q.CoverageCut(ctx, tx, dbsqlc.CoverageCutParams{Stream: tables.StreamUpdates, Scope: hash, FromExclusive: from,
			ToInclusive: to})
	}
	if err == nil {
		err = q.CoverageClose(ctx, tx, dbsqlc.CoverageCloseParams{Stream: tables.StreamUpdates, Scope: hash,
			FromExclusive: from, ToInclusive: to})
	}
	if err != nil {
		return fmt.Errorf("move the coverage: %w", err)
	}
	return writing.ForgetScopes(ctx, tx)
}
