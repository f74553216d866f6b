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
	coverage    []dbsqlc.Coverage
	checkpoints []dbsqlc.ClaimCheckpointsRow
	floors      []dbsqlc.Floors
	scopes      []dbsqlc.ClaimScopesRow
	snapshots   []dbsqlc.ClaimSnapshotsRow
	carried     *int64       // the snapshot that most carried rows are of; nil: there are none
	fill        *dbsqlc.Fill // nil: no history was filled in
	projected   bool         // more than one row of what is derived follows from events behind the checkpoint
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
	fill, err := q.ClaimFill(ctx, tx)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read how far history was filled in: %w", err)
	}
	if err == nil {
		c.fill = &fill
	}
	if at := c.checkpoint(); at != nil {
		if c.projected, err = q.ClaimProjected(ctx, tx, *at); err != nil {
			return nil, fmt.Errorf("look for what follows from events behind offset %d: %w", *at, err)
		}
	}
	return &c, nil
}

// agreement is what the claims should say, as far as they tell when they contradict one another.
type agreement struct {
	started    bool // false: nothing was indexed, and the rest says nothing
	floor      int64
	base       int64 // active_contracts and lifetimes follow from what is after it; above the floor where history was filled in
	watermark  int64
	snapshot   bool // there is one, at the base
	stateFloor *int64
	replaying  bool   // lifetimes from before the base are being worked out
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
//   - The floor is told by floors (history_floor) and by the lower end of coverage. Where they differ it is the lowest of
//     them, and of the base, behind which updates are stored up to the next; else the one that most tell, the base's tellers
//     included: claiming less is safe.
//   - The base is told by the state floor where it is not NULL, the snapshot, the carried rows, and the record of what was
//     filled in. It is the floor where nothing was filled in, or all was.
//   - The state floor is the base where that is a snapshot's offset or 0, else NULL. It is a snapshot's where one is recorded
//     as finished or there, or where there are carried rows and something else that tells of one: a state floor that is not
//     the beginning of the ledger, or a snapshot that is recorded.
//   - The watermark is told by the checkpoint and by the upper end of coverage, but for what was written ahead. Between two
//     that differ the last stored update decides: it is there, and what is stored behind none is read again. Of a checkpoint
//     that is gone the last stored update takes the place. The ledger's end, where it is known, is not exceeded; if it had to
//     lower the watermark, nothing counts that was written ahead.
//   - Coverage is what its rows claim between the two, merged, and below the floor what was filled in and does not reach up to
//     it, and row by row what was written ahead, each in the scope that most of those who name one name.
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
	a.base, a.snapshot = c.base(a.floor)
	if a.snapshot || a.base == 0 {
		a.stateFloor = &a.base
	}
	a.replaying = c.fill != nil && c.fill.LifetimesTo != nil
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
	}
	beyond := end != nil && int64(*end) < a.watermark
	if beyond {
		a.watermark = int64(*end)
	}
	a.scope, _ = mostFrequent(c.scopeVotes())
	a.cover(c.coverage, !beyond)
	return a, nil
}

// tellOfSnapshot tells whether something else than carried rows says that indexing began with a snapshot.
func (c *claims) tellOfSnapshot() bool {
	return len(c.snapshots) > 0 || slices.ContainsFunc(c.floors, func(f dbsqlc.Floors) bool { return f.StateFloor != nil && *f.StateFloor > 0 })
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

// lowest is where what is covered up to the watermark begins, as far as coverage tells, not what was filled in further below;
// the checkpoint where nothing is covered.
func (c *claims) lowest() (at int64, told bool) {
	checkpoint := c.checkpoint()
	coverage := slices.DeleteFunc(slices.Clone(c.coverage), c.ahead)
	if len(coverage) == 0 {
		if checkpoint == nil {
			return 0, false
		}
		return *checkpoint, true
	}
	for _, f := range c.floors {
		for _, row := range coverage {
			if row.FromExclusive == f.HistoryFloor {
				return row.FromExclusive, true
			}
		}
	}
	for _, row := range coverage {
		if checkpoint != nil && row.ToInclusive >= *checkpoint {
			return row.FromExclusive, true
		}
	}
	if checkpoint != nil && slices.ContainsFunc(c.floors, func(f dbsqlc.Floors) bool { return f.HistoryFloor == *checkpoint }) {
		return *checkpoint, true // nothing was read there yet, and history was filled in below
	}
	return coverage[0].FromExclusive, true
}

// ahead tells whether a row claims what was written and is not shown yet: it begins at the checkpoint, and nothing follows from
// what is behind that, or it begins behind it, or where another one ends, which it would have been merged with. A checkpoint
// below the floor tells nothing.
func (c *claims) ahead(row dbsqlc.Coverage) bool {
	checkpoint := c.checkpoint()
	if checkpoint == nil || slices.ContainsFunc(c.floors, func(f dbsqlc.Floors) bool { return f.HistoryFloor > *checkpoint }) {
		return false
	}
	return row.FromExclusive > *checkpoint || row.FromExclusive == *checkpoint && !c.projected || row.ToInclusive > *checkpoint &&
		slices.ContainsFunc(c.coverage, func(below dbsqlc.Coverage) bool { return below.ToInclusive == row.FromExclusive })
}

func (c *claims) floor(last func(after, upTo int64) (int64, error)) (int64, error) {
	var told []int64
	for _, row := range c.floors {
		told = append(told, row.HistoryFloor)
	}
	lowest, covered := c.lowest()
	if covered && slices.Contains(told, lowest) {
		return lowest, nil
	}
	if covered {
		told = append(told, lowest)
	}
	told = append(told, c.tellBase()...)
	if len(told) == 0 {
		return 0, nil // nothing but a checkpoint without an offset
	}
	_, most := mostFrequent(told)
	if len(c.coverage) == 0 {
		for _, row := range c.floors { // history that was filled in lies below the base, which more of them tell
			if c.fill != nil && row.HistoryFloor < c.fill.ProjectedFrom {
				return row.HistoryFloor, nil
			}
		}
		return slices.Min(most), nil
	}
	slices.Sort(told)
	told = slices.Compact(told)
	for i, low := range told[:len(told)-1] {
		between, err := last(low, told[i+1])
		if err != nil || between > 0 {
			return low, err
		}
	}
	return slices.Max(most), nil
}

// tellBase is what tells the base, as often as it is told. Without history that was filled in that is the floor too.
func (c *claims) tellBase() (told []int64) {
	for _, row := range c.floors {
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
	if c.fill != nil {
		told = append(told, c.fill.ProjectedFrom)
	}
	return told
}

// base works out the base, and whether it is a snapshot's offset. It is not below the floor.
func (c *claims) base(floor int64) (base int64, snapshot bool) {
	below := func(at int64) bool { return at < floor }
	told := slices.DeleteFunc(c.tellBase(), below)
	base, most := mostFrequent(told)
	switch {
	case len(told) == 0:
		base = floor
	case c.fill != nil && slices.Contains(most, c.fill.ProjectedFrom):
		base = c.fill.ProjectedFrom
	case slices.Contains(most, floor):
		base = floor
	}
	snapshot = c.carried != nil && c.tellOfSnapshot() || slices.ContainsFunc(c.snapshots, func(s dbsqlc.ClaimSnapshotsRow) bool {
		return s.Finished || s.SnapshotOffset == base
	})
	if c.fill != nil && !snapshot { // nothing may be left of the snapshot but its offset
		snapshot = base > floor && slices.ContainsFunc(c.floors, func(f dbsqlc.Floors) bool { return f.StateFloor != nil && *f.StateFloor == base })
	}
	switch {
	case snapshot:
		return base, true
	case c.fill != nil && !below(c.fill.ProjectedFrom):
		return c.fill.ProjectedFrom, false
	}
	return floor, false
}

func (c *claims) watermark(floor int64, last func(after, upTo int64) (int64, error)) (int64, error) {
	covered := floor
	begun := int64(math.MaxInt64) // what was written ahead
	for _, row := range c.coverage {
		if c.ahead(row) {
			begun = min(begun, row.FromExclusive)
		} else {
			covered = max(covered, row.ToInclusive)
		}
	}
	low, high := covered, int64(math.MaxInt64)
	if at := c.checkpoint(); at != nil {
		low, high = max(min(covered, *at), floor), max(covered, *at)
	}
	high = min(high, max(low, begun))
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

// cover merges what the rows claim between the floor and the watermark, and finds what none claims. Below the floor rows may
// claim what was filled in and does not reach up to it, and behind the watermark, where that counts, what was written ahead. The
// rows are in order.
func (a *agreement) cover(rows []dbsqlc.Coverage, ahead bool) {
	at := a.floor
	hole := func(to int64) {
		if at < to {
			a.holes = append(a.holes, ledger.Range{From: ledger.Offset(at), To: ledger.Offset(to)})
		}
		at = max(at, to)
	}
	for i, row := range rows {
		filled := row.ToInclusive < a.floor
		from, to := max(row.FromExclusive, a.floor), min(row.ToInclusive, a.watermark)
		if filled || ahead && row.FromExclusive >= a.watermark {
			from, to = row.FromExclusive, row.ToInclusive
		}
		if from >= to {
			continue
		}
		n := len(a.coverage)
		switch {
		case from >= a.watermark:
			hole(a.watermark)
			a.coverage = append(a.coverage, coveredRange{from, to, []int{i}})
		case n > 0 && from <= a.coverage[n-1].to:
			a.coverage[n-1].to = max(a.coverage[n-1].to, to)
			a.coverage[n-1].rows = append(a.coverage[n-1].rows, i)
		default:
			if !filled {
				hole(from)
			}
			a.coverage = append(a.coverage, coveredRange{from, to, []int{i}})
		}
		at = max(at, to)
	}
	hole(a.watermark)
}
