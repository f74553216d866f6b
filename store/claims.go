package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// claims are what the database says that it holds of the updates, row by row, whether or not the rows agree.
type claims struct {
	coverage    []dbsqlc.IndexerCoverage
	checkpoints []dbsqlc.ClaimCheckpointsRow
	floors      []dbsqlc.IndexerFloors
	scopes      []dbsqlc.ClaimScopesRow
	snapshots   []dbsqlc.ClaimSnapshotsRow
	carried     *int64 // the snapshot that most carried rows are of; nil: there are none
}

func (s *Store) readClaims(ctx context.Context, tx pgx.Tx) (*claims, error) {
	var c claims
	var err error
	q := s.queries
	if c.coverage, err = q.ClaimCoverage(ctx, tx); err != nil {
		return nil, fmt.Errorf("read coverage: %w", err)
	}
	if c.checkpoints, err = q.ClaimCheckpoints(ctx, tx); err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	if c.floors, err = q.ClaimFloors(ctx, tx); err != nil {
		return nil, fmt.Errorf("read floors: %w", err)
	}
	if c.scopes, err = q.ClaimScopes(ctx, tx); err != nil {
		return nil, fmt.Errorf("read scopes: %w", err)
	}
	if c.snapshots, err = q.ClaimSnapshots(ctx, tx); err != nil {
		return nil, fmt.Errorf("read snapshots: %w", err)
	}
	carried, err := q.ClaimCarried(ctx, tx)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read of which snapshot the carried rows are: %w", err)
	}
	if err == nil {
		c.carried = &carried
	}
	return &c, nil
}

// agreement is what the claims should say, as far as they tell when they contradict one another.
type agreement struct {
	started    bool // false: nothing was indexed, and the rest says nothing
	floor      int64
	watermark  int64
	snapshot   bool // indexing began with a snapshot, at the floor
	stateFloor *int64
	scope      string // hash; empty: nothing tells
	coverage   []coveredRange
	holes      []ledger.Range
}

// coveredRange is a range as a row of coverage should claim it, and which of the rows claim some of it.
type coveredRange struct {
	from, to int64
	rows     []int
}

// agree works out what the claims should say:
//
//   - The floor is where most of those who tell it say: floors (history_floor, and state_floor where it is not NULL), the
//     lower end of coverage, the snapshot, the carried rows; the checkpoint where nothing is covered yet. Of two that are
//     told equally often it is the lower one if updates are stored in between, else the one that claims less.
//   - The state floor is the floor where indexing began with a snapshot or at offset 0, else NULL. It began with a
//     snapshot where one is recorded as finished or at the floor, or where there are carried rows and something else that
//     tells of one: a state floor that is not the beginning of the ledger, or a snapshot that is recorded.
//   - The watermark is told by the checkpoint and by the upper end of coverage. Between two that differ the last stored
//     update decides: it is there, and what is stored behind none is read again. Of a checkpoint that is gone the last
//     stored update takes the place. The ledger's end, where it is known, is not exceeded.
//   - Coverage is what its rows claim between the two, merged, each in the scope that most of those who name one name.
func (s *Store) agree(ctx context.Context, tx pgx.Tx, c *claims, end *ledger.Offset) (*agreement, error) {
	a := &agreement{started: c.started()}
	if !a.started {
		return a, nil
	}
	last := func(after, upTo int64) (int64, error) {
		offset, err := s.queries.ClaimLastUpdate(ctx, tx, dbsqlc.ClaimLastUpdateParams{After: after, UpTo: upTo})
		if err != nil {
			return 0, fmt.Errorf("look for the last update after offset %d up to %d: %w", after, upTo, err)
		}
		return offset, nil
	}
	var err error
	if a.floor, err = c.floor(last); err != nil {
		return nil, err
	}
	a.snapshot = c.carried != nil && c.tellOfSnapshot() || slices.ContainsFunc(c.snapshots, func(s dbsqlc.ClaimSnapshotsRow) bool {
		return s.Finished || s.SnapshotOffset == a.floor
	})
	if a.snapshot || a.floor == 0 {
		a.stateFloor = &a.floor
	}
	if a.watermark, err = c.watermark(a.floor, last); err != nil {
		return nil, err
	}
	if end != nil {
		if int64(*end) < a.floor {
			return nil, &ledger.Problem{
				What: fmt.Sprintf("the ledger ends at offset %d, before offset %d, where indexing into database %s began", *end, a.floor, s.Address()),
				Do: "correct --ledger-url or --database-url: this is not the ledger that the database was written from, " +
					"or its participant was set up anew, which needs a new database",
			}
		}
		a.watermark = min(a.watermark, int64(*end))
	}
	a.scope, _ = mostFrequent(c.scopeVotes())
	a.cover(c.coverage)
	return a, nil
}

// tellOfSnapshot tells whether something else than carried rows says that indexing began with a snapshot.
func (c *claims) tellOfSnapshot() bool {
	return len(c.snapshots) > 0 || slices.ContainsFunc(c.floors, func(f dbsqlc.IndexerFloors) bool { return f.StateFloor != nil && *f.StateFloor > 0 })
}

func (c *claims) started() bool {
	return len(c.checkpoints) > 0 || len(c.floors) > 0 || len(c.coverage) > 0 ||
		slices.ContainsFunc(c.snapshots, func(s dbsqlc.ClaimSnapshotsRow) bool { return s.Finished })
}

func (c *claims) checkpoint() *int64 {
	for _, row := range c.checkpoints {
		if row.Stream == StreamUpdates {
			return row.LedgerOffset
		}
	}
	return nil
}

func (c *claims) floor(last func(after, upTo int64) (int64, error)) (int64, error) {
	var told []int64
	for _, row := range c.floors {
		told = append(told, row.HistoryFloor)
		if row.StateFloor != nil {
			told = append(told, *row.StateFloor)
		}
	}
	for _, row := range c.snapshots {
		told = append(told, row.SnapshotOffset)
	}
	if c.carried != nil {
		told = append(told, *c.carried)
	}
	if len(c.coverage) > 0 {
		told = append(told, c.coverage[0].FromExclusive)
	} else if at := c.checkpoint(); at != nil {
		told = append(told, *at)
	}
	if len(told) == 0 {
		return 0, nil // nothing but a checkpoint without an offset
	}
	_, most := mostFrequent(told)
	low, high := slices.Min(most), slices.Max(most)
	if len(c.coverage) == 0 {
		return low, nil
	}
	between, err := last(low, high)
	if err != nil || between > 0 {
		return low, err
	}
	return high, nil
}

func (c *claims) watermark(floor int64, last func(after, upTo int64) (int64, error)) (int64, error) {
	covered := floor
	for _, row := range c.coverage {
		covered = max(covered, row.ToInclusive)
	}
	low, high := covered, int64(math.MaxInt64)
	if at := c.checkpoint(); at != nil {
		low, high = max(min(covered, *at), floor), max(covered, *at)
	}
	between, err := last(low, high)
	return max(low, between), err
}

// scopeVotes are the hashes of the scopes that are named, as often as they are, definitions before names.
func (c *claims) scopeVotes() (votes []string) {
	for _, row := range c.scopes {
		if hash, ok := definedHash(row.Definition); ok {
			votes = append(votes, hash)
		}
		votes = append(votes, row.Scope)
	}
	for _, row := range c.coverage {
		votes = append(votes, row.Scope)
	}
	for _, row := range c.snapshots {
		votes = append(votes, row.Scope)
	}
	return votes
}

// definedHash is the hash of a scope's definition, if it is one.
func definedHash(definition []byte) (string, bool) {
	var scope ledger.Scope
	if err := json.Unmarshal(definition, &scope); err != nil {
		return "", false
	}
	return scope.Hash(), true
}

// mostFrequent are the values that occur most often, in the order of their first occurrence, and the first of them.
func mostFrequent[T comparable](values []T) (first T, all []T) {
	counts, most := map[T]int{}, 0
	for _, v := range values {
		counts[v]++
		most = max(most, counts[v])
	}
	for _, v := range values {
		if counts[v] == most {
			all = append(all, v)
			delete(counts, v)
		}
	}
	if len(all) > 0 {
		first = all[0]
	}
	return first, all
}

// cover merges what the rows claim between the floor and the watermark, and finds what none claims. The rows are in order.
func (a *agreement) cover(rows []dbsqlc.IndexerCoverage) {
	at := a.floor
	hole := func(to int64) {
		if at < to {
			a.holes = append(a.holes, ledger.Range{From: ledger.Offset(at), To: ledger.Offset(to)})
		}
	}
	for i, row := range rows {
		from, to := max(row.FromExclusive, a.floor), min(row.ToInclusive, a.watermark)
		if from >= to {
			continue
		}
		if n := len(a.coverage); n > 0 && from <= a.coverage[n-1].to {
			a.coverage[n-1].to = max(a.coverage[n-1].to, to)
			a.coverage[n-1].rows = append(a.coverage[n-1].rows, i)
		} else {
			hole(from)
			a.coverage = append(a.coverage, coveredRange{from, to, []int{i}})
		}
		at = max(at, to)
	}
	hole(a.watermark)
}
