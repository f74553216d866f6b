package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

// CheckIdentity compares the database with the ledger and the scope that are about to be written into it. A
// database of another participant, and one whose rows have another scope, are *ledger.Problem. An empty
// participantID (a server that does not say who it is) passes.
func (s *Store) CheckIdentity(ctx context.Context, participantID string, scope ledger.Scope) error {
	stored, err := queries.ParticipantGet(ctx, s.db.Pool)
	if err != nil {
		return s.db.Unusable(fmt.Errorf("read the stored participant: %w", err))
	}
	if stored != "" && participantID != "" && stored != participantID {
		return s.otherParticipant(stored, participantID)
	}
	scopes, err := queries.ScopesInUse(ctx, s.db.Pool, StreamUpdates)
	if err != nil {
		return s.db.Unusable(fmt.Errorf("read the stored scope: %w", err))
	}
	for _, stored := range scopes {
		if stored.Scope == scope.Hash() {
			continue
		}
		at, _, err := s.Watermark(ctx)
		if err != nil {
			return err
		}
		holds, err := s.decodeScope(stored.Scope, stored.Definition)
		if err != nil {
			return err
		}
		here, there := holds.Differences(scope)
		return &ledger.Problem{
			What: fmt.Sprintf("database %s holds the scope of %s, complete up to offset %d, but this run is configured with %s",
				s.Address(), here, at, there),
			Do: fmt.Sprintf("set --parties, --templates, --interfaces, --shape, --blobs, --reassignments and --topology as "+
				"they were; or, if parties, templates or interfaces were added or taken away on purpose, start "+
				"`indexer run` once with --change-scope: what was stored up to offset %d stays as it is; or use a new "+
				"database or pair of schemas (--tables-schema, --views-schema)", at),
		}
	}
	return nil
}

func (s *Store) otherParticipant(stored, asked string) error {
	return &ledger.Problem{
		What: fmt.Sprintf("database %s belongs to participant %s, but the ledger URL leads to participant %s", s.Address(),
			stored, asked),
		Do: "correct --ledger-url or --database-url; offsets of two participants can't be mixed, so each needs a database " +
			"or a pair of schemas (--tables-schema, --views-schema) of its own",
	}
}

// ParticipantID returns the id of the participant whose ledger is stored, or the party that operates the network;
// empty: not known.
func (s *Store) ParticipantID(ctx context.Context) (id string, err error) {
	defer s.db.Wrap(&err, "read whose ledger is stored")
	return queries.ParticipantGet(ctx, s.db.Pool)
}

// Watermark returns where the updates stream resumes. ok is false where nothing was started: Start or a snapshot has to
// come first.
func (l *UpdatesWriter) Watermark(ctx context.Context) (at ledger.Offset, ok bool, err error) {
	at, ok, err = bounds.Watermark(ctx, l.term.Pool)
	return at, ok, l.store.db.Unusable(err)
}

// Start gives the updates stream its first watermark. stateKnown says that the active set is known there: at the
// beginning of the ledger. It fails with ErrWatermarkMoved where the stream has one already.
func (l *UpdatesWriter) Start(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset,
	stateKnown bool) (err error) {
	defer pg.Wrap(&err, "start at offset %d", at)
	return l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.startAt(ctx, tx, at, stateKnown); err != nil {
			return err
		}
		// A backfill that brought nothing may have left its partitions, and its scope.
		if err := l.discardSnapshot(ctx, tx); err != nil {
			return err
		}
		if err := queries.ScopesClear(ctx, tx); err != nil {
			return fmt.Errorf("forget the scope: %w", err)
		}
		return l.recordIdentity(ctx, tx, participantID, scope)
	})
}

func (l *UpdatesWriter) startAt(ctx context.Context, tx pgx.Tx, at ledger.Offset, stateKnown bool) error {
	err := swapped(queries.CheckpointStart(ctx, tx, dbsqlc.CheckpointStartParams{Stream: StreamUpdates,
		LedgerOffset: int64(at)}))
	if err != nil {
		return fmt.Errorf("set the first watermark: %w", err)
	}
	if err := l.buildMissingIndexes(ctx, tx); err != nil {
		return err
	}
	floors := dbsqlc.FloorsSetParams{Stream: StreamUpdates, HistoryFloor: int64(at)}
	if stateKnown {
		floor := int64(at)
		floors.StateFloor = &floor
	}
	if err := queries.FloorsSet(ctx, tx, floors); err != nil {
		return fmt.Errorf("set the floors: %w", err)
	}
	return nil
}

// discardSnapshot forgets an unfinished snapshot, and drops the partitions with its entries.
func (l *UpdatesWriter) discardSnapshot(ctx context.Context, tx pgx.Tx) error {
	discarded, err := queries.SnapshotDiscard(ctx, tx)
	if err != nil {
		return fmt.Errorf("discard the unfinished snapshot: %w", err)
	}
	for _, at := range discarded {
		for _, table := range tables.OfSnapshot() {
			if !table.Partitioned {
				continue
			}
			name := partitions.NewUpTo(table.Name, at).Table()
			if _, err := tx.Exec(ctx, "DROP TABLE IF EXISTS "+name); err != nil {
				return fmt.Errorf("drop partition %s of the unfinished snapshot: %w", name, err)
			}
		}
	}
	l.term.Partitions.Forget()
	return nil
}

// RecordIdentity records the participant where the database does not know it yet, because the server did not report it
// at the start. An empty participantID is nothing to record.
func (l *UpdatesWriter) RecordIdentity(ctx context.Context, participantID string, scope ledger.Scope) error {
	if participantID == "" {
		return nil
	}
	_, started, err := l.Watermark(ctx)
	if err != nil || !started { // Start and BeginSnapshot record it themselves
		return err
	}
	err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return l.recordIdentity(ctx, tx, participantID, scope)
	})
	if err != nil {
		return fmt.Errorf("record the participant: %w", err)
	}
	return nil
}

func (l *UpdatesWriter) recordIdentity(ctx context.Context, tx pgx.Tx, participantID string, scope ledger.Scope) error {
	if participantID != "" {
		if err := queries.ParticipantRecord(ctx, tx, participantID); err != nil {
			return fmt.Errorf("record participant %s: %w", participantID, err)
		}
		stored, err := queries.ParticipantGet(ctx, tx)
		if err != nil {
			return fmt.Errorf("read the stored participant: %w", err)
		}
		if stored != participantID { // it was recorded since CheckIdentity
			return l.store.otherParticipant(stored, participantID)
		}
	}
	err := queries.ScopeRecord(ctx, tx, dbsqlc.ScopeRecordParams{Scope: scope.Hash(), Definition: scope.Canonical()})
	if err != nil {
		return fmt.Errorf("record the scope: %w", err)
	}
	return nil
}
