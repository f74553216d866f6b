package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// Resync takes in the active contracts that the participant shows at the watermark, in a scope that is in force from
// there on. What it shows and is not active here begins there, and so does, anew, what is stored with other interface
// views or without a payload. What is active here and it does not show ends there, unless only what a scope adds is
// read. What was stored before stays as it is, covered in the scope in which it was read.
//
// It has the methods of ingest.SnapshotSink, so the loop that reads a first snapshot reads it too. Readers see nothing
// of it before the last page is written, which does all of it in one transaction. The watermark must not move
// meanwhile: a resync comes before anything else is written in a term.
type Resync struct {
	*UpdatesWriter
	added  bool // only what the scope adds is read: nothing ends
	scope  ledger.Scope
	extent Extent
	first  int32 // the node of its first row
}

// Resync returns the sink of a resync. added is true if only what the scope adds to the one in force is read.
func (l *UpdatesWriter) Resync(added bool) *Resync { return &Resync{UpdatesWriter: l, added: added} }

// LatestSnapshot returns nil: the offset of a resync is the watermark.
func (*Resync) LatestSnapshot(context.Context) (*ledger.SnapshotProgress, error) { return nil, nil }

// DropSnapshot drops a resync that is not whole.
func (r *Resync) DropSnapshot(ctx context.Context) error { return r.DropResync(ctx) }

// DropResync drops a resync that is not whole, if there is one.
func (l *UpdatesWriter) DropResync(ctx context.Context) error {
	unfinished, err := writing.UnfinishedResync(ctx, l.term.Pool)
	if err != nil || unfinished == nil {
		return err
	}
	return l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		return writing.DropResync(ctx, tx)
	})
}

// BeginSnapshot begins a resync at the watermark, or returns how far the one that was begun there in this scope has
// come; Finished: the scope is in force. Another one that was begun is dropped, and what was written ahead of the
// watermark is removed, because it was read in the scope before. What CheckChange refuses is a *ledger.Problem.
func (r *Resync) BeginSnapshot(ctx context.Context, _ string, scope ledger.Scope,
	at ledger.Offset) (progress ledger.SnapshotProgress, err error) {
	defer pg.Wrap(&err, "begin a resync at offset %d", at)
	r.scope = scope
	err = r.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if r.extent, err = bounds.Read(ctx, tx); err != nil {
			return err
		}
		if !r.extent.Started || r.extent.Watermark != at {
			return ErrWatermarkMoved
		}
		progress = ledger.SnapshotProgress{At: at}
		before, _, err := r.store.scopeInForce(ctx, tx)
		if err != nil {
			return err
		}
		if before.Hash() == scope.Hash() {
			progress.Finished = true
			return nil
		}
		unfinished, err := writing.UnfinishedResync(ctx, tx)
		if err != nil {
			return err
		}
		if u := unfinished; u != nil && u.LedgerOffset == int64(at) && u.Scope == scope.Hash() {
			r.first = u.NodeID
			progress.Entries = u.Entries
			progress.Next = ledger.Token{Kind: ledger.TokenKind(u.TokenKind), Value: u.Token}
			return nil
		}
		return r.begin(ctx, tx, at)
	})
	return progress, err
}

func (r *Resync) begin(ctx context.Context, tx pgx.Tx, at ledger.Offset) error {
	if err := r.store.refuseChange(ctx, tx, r.scope); err != nil {
		return err
	}
	if err := writing.DropResync(ctx, tx); err != nil {
		return err
	}
	end, err := r.store.storedTo(ctx, tx, at)
	if err != nil {
		return err
	}
	if err := r.removeAfter(ctx, tx, at, &ResetReport{}); err != nil {
		return err
	}
	if r.first, err = queries.ResyncNode(ctx, tx, int64(at)); err != nil {
		return fmt.Errorf("look for the resyncs that were there before: %w", err)
	}
	err = queries.ResyncStart(ctx, tx, dbsqlc.ResyncStartParams{LedgerOffset: int64(at), NodeID: r.first,
		Scope: r.scope.Hash()})
	if err != nil {
		return fmt.Errorf("record the resync: %w", err)
	}
	// Readers never saw what was stored ahead, but replicated copies have it.
	return writing.NoteRewrite(ctx, tx, tables.StreamUpdates, int64(at), int64(end), writing.Reset)
}

// WriteSnapshotPage stores a page's rows where nobody sees them, with the token that follows it, in one transaction.
// That of the last page begins and ends contracts, and puts the scope in force. See UpdatesWriter.WriteSnapshotPage.
func (r *Resync) WriteSnapshotPage(
	ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
) (_ ledger.SnapshotProgress, err error) {
	page.Entries = r.term.Redacted.Entries(page.Entries)
	next := progress.After(&page)
	defer session.WrapRefused(&err, "write entries %d to %d of the resync at offset %d", progress.Entries+1, next.Entries,
		progress.At)
	err = r.writePage(ctx, progress, next, order, &page)
	return next, err
}

func (r *Resync) writePage(ctx context.Context, progress, next ledger.SnapshotProgress, order CommitOrder,
	page *ledger.SnapshotPage) error {
	taken, err := r.take(ctx, progress, page)
	if err != nil {
		return err
	}
	advance := func(ctx context.Context, tx pgx.Tx) error { return r.advance(ctx, tx, progress, next, page.Last) }
	copyRows := func(ctx context.Context, tx pgx.Tx) error { return r.copyTaken(ctx, tx, taken) }
	if !page.Last {
		return r.term.WriteInOrder(ctx, order, inOrder(order, advance, copyRows))
	}
	if order != nil {
		if err := order.Wait(ctx); err != nil {
			return err
		}
	}
	if err := writing.EnsureResync(ctx, r.term.Partitions, progress.At); err != nil {
		return err
	}
	return r.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if err := advance(ctx, tx); err != nil {
			return err
		}
		if err := copyRows(ctx, tx); err != nil {
			return err
		}
		return r.end(ctx, tx, next)
	})
}

// take makes the rows of a page's active contracts. Contracts in the middle of a reassignment are active nowhere, and
// their assignment brings them. Where it is not known what was active when indexing began, it stays so.
func (r *Resync) take(ctx context.Context, progress ledger.SnapshotProgress,
	page *ledger.SnapshotPage) (*rows.Carried, error) {
	wanted, taken := names.NewReferences(), rows.NewCarried(progress)
	for i := range page.Entries {
		e := &page.Entries[i]
		if e.Active == nil || r.extent.StateFloor == nil && e.Active.Created.Offset <= r.extent.HistoryFloor {
			continue
		}
		if err := taken.Take(wanted, e, r.first+int32(progress.Entries)+int32(i)); err != nil {
			return nil, err
		}
	}
	return taken, r.term.Resolve(ctx, wanted)
}

// copyTaken stores what of the taken contracts is not active here, or is stored otherwise than the scope shows it; and
// of those that are active here that they were shown.
func (r *Resync) copyTaken(ctx context.Context, tx pgx.Tx, taken *rows.Carried) error {
	known, err := writing.ActiveAsOf(ctx, tx, r.extent.Watermark, taken.Active)
	if err != nil {
		return err
	}
	var shown []rows.Shown
	for i := range taken.Active {
		if a := &taken.Active[i]; !r.added && known[writing.KeyOf(a)] != nil {
			shown = append(shown, rows.Shown{NodeID: a.ActivatedNodeID, SynchronizerRef: a.SynchronizerRef,
				ContractID: a.ContractID})
		}
	}
	whole, err := storedWhole(ctx, tx, taken, known)
	if err != nil {
		return err
	}
	taken.Leave(func(a *rows.ActiveContract) bool { return whole[writing.KeyOf(a)] })
	return writing.CopyTables(ctx, tx, append(taken.Resynced(), rows.TableOf("resync_shown", shown)))
}

// storedWhole returns which of the taken contracts are active here as the participant shows them. Where a scope has
// other templates or interfaces, it shows payloads and views that were not served when the contract was created, or
// views no more. A payload that it does not show any more stays.
func storedWhole(ctx context.Context, tx pgx.Tx, taken *rows.Carried,
	known map[active.Key][]dbsqlc.ActiveAsOfRow) (whole map[active.Key]bool, err error) {
	defer pg.Wrap(&err, "read what is stored of active contracts")
	var asked dbsqlc.ResyncStoredParams
	for _, activations := range known {
		asked.LedgerOffsets = append(asked.LedgerOffsets, activations[0].ActivatedOffset)
		asked.NodeIds = append(asked.NodeIds, activations[0].ActivatedNodeID)
	}
	list, err := queries.ResyncStored(ctx, tx, asked)
	if err != nil {
		return nil, err
	}
	stored := map[rows.EventPlace]dbsqlc.ResyncStoredRow{}
	for _, row := range list {
		stored[rows.EventPlace{Offset: row.LedgerOffset, NodeID: row.NodeID}] = row
	}
	whole, interfaces := map[active.Key]bool{}, taken.Interfaces()
	for i := range taken.Active {
		key := writing.KeyOf(&taken.Active[i])
		if known[key] == nil {
			continue
		}
		row := stored[rows.EventPlace{Offset: known[key][0].ActivatedOffset, NodeID: known[key][0].ActivatedNodeID}]
		whole[key] = (row.HasPayload || taken.Created[i].Payload == nil) &&
			slices.Equal(row.Interfaces, interfaces[taken.Active[i].ActivatedNodeID])
	}
	return whole, nil
}

func (r *Resync) advance(ctx context.Context, tx pgx.Tx, from, to ledger.SnapshotProgress, last bool) (err error) {
	defer pg.Wrap(&err, "store the continuation token")
	return swapped(queries.ResyncAdvance(ctx, tx, dbsqlc.ResyncAdvanceParams(over(from, to, last))))
}

// end begins and ends what differs, and puts the scope in force. Answers to look-ups are asked for again, because they
// depend on the parties, but contracts that were found stay: they may not be found again.
func (r *Resync) end(ctx context.Context, tx pgx.Tx, whole ledger.SnapshotProgress) error {
	at := int64(whole.At)
	for _, table := range tables.In(tables.Resynced) {
		if _, err := tx.Exec(ctx, "INSERT INTO "+table.Name+" SELECT * FROM resync_"+table.Name); err != nil {
			return fmt.Errorf("store what begins: %w", err)
		}
	}
	if !r.added {
		err := queries.ResyncDeactivateRest(ctx, tx, dbsqlc.ResyncDeactivateRestParams{LedgerOffset: at,
			FirstNodeID: r.first + int32(whole.Entries)})
		if err != nil {
			return fmt.Errorf("end what is not shown: %w", err)
		}
	}
	if err := queries.ResyncClear(ctx, tx); err != nil {
		return fmt.Errorf("clear what waited: %w", err)
	}
	if err := r.projectResync(ctx, tx, at); err != nil {
		return err
	}
	if err := queries.LookupsAgain(ctx, tx); err != nil {
		return fmt.Errorf("forget the answers to look-ups: %w", err)
	}
	err := queries.ScopeRecord(ctx, tx, dbsqlc.ScopeRecordParams{Scope: r.scope.Hash(), Definition: r.scope.Canonical()})
	if err != nil {
		return fmt.Errorf("record the scope: %w", err)
	}
	if err := writing.PutInForce(ctx, tx, r.scope.Hash()); err != nil {
		return err
	}
	return writing.NoteRewrite(ctx, tx, tables.StreamUpdates, at-1, at, writing.ScopeChanged)
}

// projectResync moves the active set by what begins and ends.
func (r *Resync) projectResync(ctx context.Context, tx pgx.Tx, at int64) error {
	next := dbsqlc.ResyncEventsParams{LedgerOffset: at, AfterNode: r.first - 1, AtMost: active.EventsEnough}
	for {
		list, err := queries.ResyncEvents(ctx, tx, next)
		if err != nil {
			return fmt.Errorf("read what begins and ends: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		if err := r.project(ctx, tx, active.NewStep(active.StoredEffects(list))); err != nil {
			return err
		}
		next.AfterNode = list[len(list)-1].NodeID
	}
}
