package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// Status is where a database stands: its updates stream, and what is done beside it.
type Status struct {
	ParticipantID string // empty: not recorded
	Started       bool   // false: the fields up to UpdatedAt say nothing
	Watermark     ledger.Offset
	Frontier      ledger.Offset // everything up to here is fetched and stored; at least Watermark
	HistoryFloor  ledger.Offset
	StateFloor    *ledger.Offset // nil: the active set is known at no offset
	UpdatedAt     time.Time      // when the watermark last moved

	Snapshot *ledger.SnapshotProgress // unfinished; nil where there is none
	Unknown  int64                    // elements of unknown kinds that were stored raw
	Leader   Leadership

	Lookups  Lookups
	Packages Packages
	Tasks    []Task // by name
}

// Lookups counts the contracts whose creation was never seen, by what became of their look-up.
type Lookups struct{ Wanted, Found, NotFound, Unusable int64 }

// Packages counts packages.
type Packages struct {
	Known         int64 // that a template id named or that were vetted at some time
	Vetted        int64 // per synchronizer, when that was last read
	Synchronizers int64 // on which something was vetted then
	Changes       int64 // of what is vetted, that were seen
}

// Leadership tells who led last, and may lead now.
type Leadership struct {
	Epoch  int64
	Holder string
	Since  time.Time // zero: nobody led yet
}

// Status reads where the updates stream stands.
func (s *Store) Status(ctx context.Context) (Status, error) {
	var status Status
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return status, fmt.Errorf("database %s: %w", s.Address(), err)
	}
	defer rollback(ctx, tx)
	q := s.queries
	if status.ParticipantID, err = q.ParticipantGet(ctx, tx); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return status, fmt.Errorf("read the stored participant: %w", err)
	}
	leadership, err := q.LeadershipGet(ctx, tx, string(RoleUpdates))
	if err != nil {
		return status, fmt.Errorf("read leadership: %w", err)
	}
	status.Leader = Leadership{Epoch: leadership.Epoch, Since: leadership.LedSince.Time}
	if leadership.Holder != nil {
		status.Leader.Holder = *leadership.Holder
	}
	snapshot, err := q.SnapshotUnfinished(ctx, tx)
	if err == nil {
		progress := snapshotProgress(snapshot)
		status.Snapshot = &progress
	} else if !errors.Is(err, pgx.ErrNoRows) {
		return status, fmt.Errorf("read the unfinished snapshot: %w", err)
	}
	if status.Unknown, err = q.StatusUnknownKinds(ctx, tx); err != nil {
		return status, fmt.Errorf("count the elements of unknown kinds: %w", err)
	}
	if err := s.besideStream(ctx, tx, &status); err != nil {
		return status, err
	}
	checkpoint, err := q.CheckpointGet(ctx, tx, StreamUpdates)
	if errors.Is(err, pgx.ErrNoRows) {
		return status, nil
	}
	if err != nil {
		return status, fmt.Errorf("read the watermark: %w", err)
	}
	status.Started = true
	status.Watermark, status.UpdatedAt = ledger.Offset(*checkpoint.LedgerOffset), checkpoint.UpdatedAt.Time
	frontier, err := q.StatusFrontier(ctx, tx)
	if err != nil {
		return status, fmt.Errorf("read the frontier: %w", err)
	}
	status.Frontier = ledger.Offset(frontier)
	floors, err := q.FloorsGet(ctx, tx, StreamUpdates)
	if err != nil {
		return status, fmt.Errorf("read the floors: %w", err)
	}
	status.HistoryFloor = ledger.Offset(floors.HistoryFloor)
	if floors.StateFloor != nil {
		floor := ledger.Offset(*floors.StateFloor)
		status.StateFloor = &floor
	}
	return status, nil
}

// besideStream reads what the tasks beside the stream brought.
func (s *Store) besideStream(ctx context.Context, tx pgx.Tx, status *Status) error {
	lookups, err := s.queries.LookupsCount(ctx, tx)
	if err != nil {
		return fmt.Errorf("count the look-ups: %w", err)
	}
	status.Lookups = Lookups(lookups)
	packages, err := s.queries.PackagesCount(ctx, tx)
	if err != nil {
		return fmt.Errorf("count the packages: %w", err)
	}
	status.Packages = Packages(packages)
	status.Tasks, err = s.tasks(ctx, tx)
	return err
}

// UpdatesBetween counts the updates with from < offset <= to.
func (s *Store) UpdatesBetween(ctx context.Context, from, to ledger.Offset) (int64, error) {
	n, err := s.queries.StatusUpdatesBetween(ctx, s.pool, dbsqlc.StatusUpdatesBetweenParams{FromExclusive: int64(from), ToInclusive: int64(to)})
	if err != nil {
		return 0, fmt.Errorf("count updates: %w", err)
	}
	return n, nil
}
