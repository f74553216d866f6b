// Package partitions attaches partitions before rows need them.
package partitions

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

var queries = dbsqlc.New()

// Partitions keep every index small enough to stay in memory, and are few, because planning and lock slots pay for
// each. So the first WidthStep partitions of a table are FirstWidth wide, and each next WidthStep are four times as
// wide as those before: 64 partitions hold 1.3 billion offsets. A ledger in which many offsets go by from one update to
// the next has that many times wider ones.
const (
	FirstWidth = 1_000_000 // offsets
	WidthStep  = 16        // partitions

	// Partitions are attached this long before rows come. A statement continues with the partitions that it was planned
	// with, and a transaction with those of its first statement: one that came together with its rows would be missed by
	// readers who see the watermark behind them.
	AttachAhead = FirstWidth / 4 // offsets
)

// span is a range of offsets: from inclusive, to exclusive.
type span struct{ from, to int64 }

// Set attaches the partitions that rows are about to need, before the batch that brings them: attaching
// inside the batch would hold its locks until the commit. It is safe for concurrent use.
type Set struct {
	db     dbsqlc.DBTX
	write  func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error
	logger *slog.Logger
	apart  int64 // how many offsets go by from one update to the next, about

	attaching sync.Mutex // held while partitions are attached; it does not block those whose partitions are attached

	mu     sync.Mutex
	loaded bool
	spans  map[string][]span // per relation, in order; a list is replaced, not changed
}

// New returns a Set that knows no partition yet. It reads the list from db, and attaches partitions in transactions of
// their own, which write runs. offsetsPerUpdate is about how many offsets go by from one update to the next; 0 means 1.
func New(
	db dbsqlc.DBTX, write func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error, logger *slog.Logger,
	offsetsPerUpdate int64,
) *Set {
	return &Set{db: db, write: write, logger: logger, apart: max(1, offsetsPerUpdate)}
}

// Smallest returns the width of the smallest partitions, in offsets. All partitions begin and end at multiples of it,
// or at the history floor.
func (p *Set) Smallest() int64 { return p.apart * FirstWidth }

// Ensure makes sure that relation can take rows of the given offsets, and of those that come next.
func (p *Set) Ensure(ctx context.Context, relation string, rows iter.Seq[int64]) error {
	var offsets []int64
	for offset := range rows {
		offsets = needed(offsets, offset, p.Smallest())
	}
	if len(offsets) == 0 {
		return nil
	}
	if last, ahead := slices.Max(offsets), p.apart*AttachAhead; last < math.MaxInt64-ahead {
		offsets = append(slices.Clip(offsets), last+ahead)
	}
	if spans, loaded := p.attached(relation); loaded {
		if _, found := firstMissing(spans, offsets); !found {
			return nil
		}
	}
	p.attaching.Lock()
	defer p.attaching.Unlock()
	spans, loaded := p.attached(relation)
	for {
		if !loaded {
			if err := p.load(ctx); err != nil {
				return err
			}
			spans, loaded = p.attached(relation)
		}
		missing, found := firstMissing(spans, offsets)
		if !found {
			return nil
		}
		next := nextPartition(spans, missing, p.Smallest())
		if err := p.attach(ctx, partOf(relation, next)); err != nil {
			// Another process, such as a repair, may have attached it, or one that overlaps with it.
			if loadErr := p.load(ctx); loadErr != nil {
				return loadErr
			}
			before := spans
			if spans, _ = p.attached(relation); slices.Equal(before, spans) {
				return err
			}
			continue
		}
		if err := p.announce(ctx, relation); err != nil {
			return err
		}
		spans = p.insert(relation, next)
	}
}

// EnsureUpTo makes sure that one partition of a relation has all offsets up to a floor, where a snapshot lies: its
// entries are of any of them.
func (p *Set) EnsureUpTo(ctx context.Context, relation string, floor int64) error {
	wanted := partUpTo(relation, floor)
	if spans, loaded := p.attached(relation); loaded && slices.Contains(spans, wanted.span) {
		return nil
	}
	p.attaching.Lock()
	defer p.attaching.Unlock()
	if err := p.load(ctx); err != nil {
		return err
	}
	if spans, _ := p.attached(relation); slices.Contains(spans, wanted.span) {
		return nil
	}
	if err := p.attach(ctx, wanted); err != nil {
		return err
	}
	p.insert(relation, wanted.span)
	return p.announce(ctx, relation)
}

// Forget makes the next Ensure read the list of partitions again.
func (p *Set) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loaded = false
}

// attached returns what is known to be attached; loaded is false where nothing is known.
func (p *Set) attached(relation string) (spans []span, loaded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spans[relation], p.loaded
}

func (p *Set) insert(relation string, s span) []span {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spans[relation] = insertSpan(p.spans[relation], s)
	return p.spans[relation]
}

// insertSpan returns a new list: others may be reading the old one.
func insertSpan(spans []span, s span) []span {
	i, _ := slices.BinarySearchFunc(spans, s.from, func(s span, from int64) int { return cmp.Compare(s.from, from) })
	return slices.Insert(slices.Clip(spans), i, s)
}

// firstMissing finds an offset that no span holds. Spans are in order and do not overlap.
func firstMissing(spans []span, offsets []int64) (offset int64, found bool) {
	for _, offset := range offsets {
		i, _ := slices.BinarySearchFunc(spans, offset, func(s span, offset int64) int { return cmp.Compare(s.to-1, offset) })
		if i == len(spans) || spans[i].from > offset {
			return offset, true
		}
	}
	return 0, false
}

// needed adds an offset that needs a partition to a list. One of each of the smallest partitions, the last, stands for
// those before it there: partitions begin and end where those do.
func needed(offsets []int64, offset, smallest int64) []int64 {
	last := len(offsets) - 1
	if last < 0 || offsets[last]/smallest != offset/smallest {
		return append(offsets, offset)
	}
	offsets[last] = max(offsets[last], offset)
	return offsets
}

// nextPartition returns the partition to make for offset, which no span holds: as wide as the number of partitions asks
// for, the first ones being of a width, aligned to its width, and cut where others begin or end.
func nextPartition(spans []span, offset, width int64) span {
	for range len(spans) / WidthStep {
		if width > math.MaxInt64/4 {
			break
		}
		width *= 4
	}
	next := span{from: offset - offset%width}
	next.to = next.from + width
	if next.to < next.from {
		next.to = math.MaxInt64
	}
	for _, s := range spans {
		if s.to <= offset {
			next.from = max(next.from, s.to)
		}
		if s.from > offset {
			next.to = min(next.to, s.from)
		}
	}
	return next
}

// load reads which partitions exist. It announces those that were not announced because the process that attached them
// ended or failed before.
func (p *Set) load(ctx context.Context) error {
	rows, err := queries.PartitionList(ctx, p.db)
	if err != nil {
		return fmt.Errorf("read partitions: %w", err)
	}
	spans := map[string][]span{}
	for _, row := range rows {
		spans[row.Relation] = append(spans[row.Relation], span{row.FromOffset, row.ToOffset})
	}
	left, err := queries.PartitionsUnannounced(ctx, p.db, dbsqlc.PartitionsUnannouncedParams{Relations: partitioned(),
		Statistics: unannounced})
	if err != nil {
		return fmt.Errorf("ask for partitions that were not announced: %w", err)
	}
	for _, relation := range left {
		if err := p.announce(ctx, relation); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spans, p.loaded = spans, true
	return nil
}

const (
	attachLockTimeout = 2 * time.Second // attaching waits behind other DDL on the table; readers and writers it passes
	attachTries       = 30
)

// partitionColumn returns the column whose ranges a table is partitioned by.
func partitionColumn(relation string) (string, error) {
	for _, table := range tables.All() {
		if table.Name == relation && table.Partitioned {
			return table.Place, nil
		}
	}
	return "", fmt.Errorf("table %s has no partitions", relation)
}

// partitioned returns the names of the tables with partitions.
func partitioned() (relations []string) {
	for _, table := range tables.All() {
		if table.Partitioned {
			relations = append(relations, table.Name)
		}
	}
	return relations
}

// part is a partition of a relation, before and after it is attached.
type part struct {
	relation, name string
	span
}

// partOf returns the partition of a span, which is named for where it begins.
func partOf(relation string, s span) part {
	return part{relation, fmt.Sprintf("%s_p%d", relation, s.from), s}
}

// partUpTo returns the partition of all offsets up to a floor.
func partUpTo(relation string, floor int64) part {
	return part{relation, fmt.Sprintf("%s_to%d", relation, floor), span{0, floor + 1}}
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// createSQL makes the partition as a table of its own, which is attached later: CREATE TABLE … PARTITION OF would lock
// out every reader of the parent. The CHECK spares the attachment a scan.
func (p *part) createSQL() (string, error) {
	column, err := partitionColumn(p.relation)
	return fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMPRESSION, CONSTRAINT "+
		"%s CHECK (%s >= %d AND %[4]s < %[6]d))",
		quoted(p.name), quoted(p.relation), quoted(p.name+"_range"), column, p.from, p.to), err
}

func (p *part) create(ctx context.Context, tx pgx.Tx) error {
	statement, err := p.createSQL()
	if err == nil {
		_, err = tx.Exec(ctx, statement)
	}
	if err != nil {
		return fmt.Errorf("make partition %s: %w", p.name, err)
	}
	return nil
}

// attachSQL attaches the partition that createSQL made.
func (p *part) attachSQL() []string {
	return []string{
		fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", quoted(p.relation), quoted(p.name),
			p.from, p.to),
		fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", quoted(p.name), quoted(p.name+"_range")),
	}
}

// buildIndexes builds the relation's indexes on the partition before it is attached, so that the relation is not locked
// meanwhile. To have PostgreSQL build them all, it attaches the partition for a moment to another table with the same
// indexes.
func (p *part) buildIndexes(ctx context.Context, tx pgx.Tx) error {
	column, err := partitionColumn(p.relation)
	if err != nil {
		return err
	}
	parent := quoted(p.name + "_parent")
	for _, statement := range []string{
		fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING INDEXES) PARTITION BY RANGE (%s)", parent, quoted(p.relation),
			column),
		fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", parent, quoted(p.name), p.from, p.to),
		fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", parent, quoted(p.name)),
		"DROP TABLE " + parent,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("build the indexes of partition %s: %w", p.name, err)
		}
	}
	return nil
}

func (p *Set) attach(ctx context.Context, made part) error {
	create, err := made.createSQL()
	if err != nil {
		return err
	}
	mark, err := changeSQL(made.relation, unannounced)
	if err != nil {
		return err
	}
	statements := slices.Concat([]string{create}, made.attachSQL(), []string{mark})
	return p.alter(ctx, made.relation, func(ctx context.Context, tx pgx.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("attach partition of %s for offsets %d to %d: %w", made.relation, made.from, made.to, err)
			}
		}
		return nil
	})
}

// announce has every session read the list of partitions again. A session that was reading it while a partition was
// attached may keep the list without it: PostgreSQL can take in the notice of the change before the old list is stored.
// It would see none of the partition's rows, and write none, until the next change of the table; this is that change.
// It changes the parent alone: a partition that is being vacuumed would make it wait, and the vacuum end early.
func (p *Set) announce(ctx context.Context, relation string) error {
	change, err := changeSQL(relation, announced)
	if err != nil {
		return err
	}
	return p.alter(ctx, relation, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, change); err != nil {
			return fmt.Errorf("announce a partition of %s: %w", relation, err)
		}
		return nil
	})
}

// Statistics targets of the column by which a table is partitioned. The transaction that attaches a partition sets the
// first one, and the one that announces it sets the second, so that whoever reads the list of partitions next knows if
// the second one is missing. 100 is what PostgreSQL takes for a column without a target, unless
// default_statistics_target is another.
const (
	unannounced = 100
	announced   = -1
)

func changeSQL(relation string, statistics int) (string, error) {
	column, err := partitionColumn(relation)
	return fmt.Sprintf("ALTER TABLE ONLY %s ALTER COLUMN %s SET STATISTICS %d", quoted(relation), column, statistics), err
}

// alter changes a table, and tries again where something else locks it.
func (p *Set) alter(ctx context.Context, relation string, change func(context.Context, pgx.Tx) error) error {
	var err error
	for try := range attachTries {
		err = p.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			if err := pg.WaitAtMost(ctx, tx, attachLockTimeout); err != nil {
				return err
			}
			return change(ctx, tx)
		})
		// CREATE INDEX CONCURRENTLY can wait for this transaction while this one waits for it. Then PostgreSQL ends one of
		// them.
		if !pg.HasCode(err, pg.LockNotAvailable, pg.DeadlockDetected) {
			return err
		}
		p.logger.WarnContext(ctx, "waiting to attach a partition: something locks the table", "relation", relation,
			"try", try+1)
	}
	return err
}
