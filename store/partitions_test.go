package store

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
)

func TestPartitionsFirstMissing(t *testing.T) {
	t.Parallel()
	spans := []span{{0, 10}, {10, 20}, {50, 60}}
	for _, c := range []struct {
		offsets []int64
		missing int64
		found   bool
	}{
		{nil, 0, false},
		{[]int64{0, 9, 10, 19, 50, 59}, 0, false},
		{[]int64{5, 20, 60}, 20, true},
		{[]int64{49}, 49, true},
		{[]int64{60}, 60, true},
		{[]int64{math.MaxInt64}, math.MaxInt64, true},
	} {
		missing, found := firstMissing(spans, c.offsets)
		require.Equal(t, c.found, found, c.offsets)
		require.Equal(t, c.missing, missing, c.offsets)
	}
	_, found := firstMissing(nil, []int64{0})
	require.True(t, found)
}

func TestPartitionsNext(t *testing.T) {
	t.Parallel()
	const m = firstWidth
	many := make([]span, widthStep)
	for i := range many {
		many[i] = span{int64(i) * m, int64(i+1) * m}
	}
	for _, c := range []struct {
		spans  []span
		offset int64
		want   span
	}{
		{nil, 0, span{0, m}},
		{nil, m - 1, span{0, m}},
		{nil, m, span{m, 2 * m}},
		{nil, math.MaxInt64 - 1, span{math.MaxInt64 - math.MaxInt64%m, math.MaxInt64}},
		{many, 16 * m, span{16 * m, 20 * m}},
		{many, 23 * m, span{20 * m, 24 * m}},
		{append([]span{{18 * m, 19 * m}}, many...), 17 * m, span{16 * m, 18 * m}},
		{append([]span{{18 * m, 19 * m}}, many...), 19 * m, span{19 * m, 20 * m}},
	} {
		require.Equal(t, c.want, nextPartition(c.spans, c.offset), c.offset)
	}
}

// Wherever rows come, partitions hold them, do not overlap, and are few: 64 hold 1.3 billion offsets.
func TestPartitionsGrow(t *testing.T) {
	t.Parallel()
	var spans []span
	end := int64(0)
	for n := 1; n <= 64; n++ {
		next := nextPartition(spans, end)
		require.Equal(t, end, next.from, "no holes in a ledger without gaps")
		spans = append(spans, next)
		end = next.to
	}
	require.Greater(t, end, int64(1_300_000_000))

	rapid.Check(t, func(t *rapid.T) {
		var spans []span
		for _, offset := range rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64-1), 1, 100).Draw(t, "offsets") {
			offset >>= rapid.IntRange(0, 62).Draw(t, "shift")
			missing, found := firstMissing(spans, []int64{offset})
			if !found {
				continue
			}
			require.Equal(t, offset, missing)
			next := nextPartition(spans, offset)
			require.LessOrEqual(t, next.from, offset)
			require.Greater(t, next.to, offset)
			spans = insertSpan(spans, next)
			for i := 1; i < len(spans); i++ {
				require.LessOrEqual(t, spans[i-1].to, spans[i].from, "overlap")
			}
			_, found = firstMissing(spans, []int64{offset})
			require.False(t, found)
		}
	})
}

// A table is changed once more behind each partition that is attached: a session that was reading the list of partitions meanwhile
// may have kept one without it.
func TestAttachedPartitionsAreAnnounced(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	u := newUpdate(1, "sync::1")
	u.Created = []ledger.CreatedEvent{creation(0, "lives"), creation(1, "passes")}
	u.Archived = []ledger.ArchivedEvent{archival(2, "passes")}
	require.NoError(t, l.Append(t.Context(), testScope, []ledger.Page{{To: 1, Updates: []ledger.Update{u}}}))
	require.Equal(t, []string{"archived true", "created true", "lifetimes true", "updates true"}, d.rows(`
		SELECT p.relname, bool_and(a.xmin::text::bigint > i.xmin::text::bigint)
		FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent AND p.relkind = 'p' AND p.relnamespace = 'indexer'::regnamespace
		JOIN pg_attribute a ON a.attrelid = p.oid AND a.attname IN ('ledger_offset', 'deactivated_offset') AND a.attnum = ANY (
			SELECT unnest(k.partattrs::smallint[]) FROM pg_partitioned_table k WHERE k.partrelid = p.oid)
		GROUP BY 1 ORDER BY 1`))
}

// Sparse offsets, at borders, downwards and at the end of what a bigint holds.
func TestPartitionsTakeSparseOffsets(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	offsets := []ledger.Offset{1, 999_999, 1_000_000, 1_000_001, 5_000_000_000, 5_000_000_001, math.MaxInt64 - 1}
	var page ledger.Page
	for _, offset := range offsets {
		u := newUpdate(offset, "sync::1")
		u.Created = []ledger.CreatedEvent{creation(0, fmt.Sprint("contract-", offset)), creation(1, fmt.Sprint("transient-", offset))}
		u.Archived = []ledger.ArchivedEvent{archival(2, fmt.Sprint("transient-", offset))}
		page.Updates, page.To = append(page.Updates, u), offset
	}
	require.NoError(t, l.Append(t.Context(), testScope, []ledger.Page{page}))
	require.Equal(t, fmt.Sprint(len(offsets)), d.row("SELECT count(*) FROM ledger.active_contracts"))
	require.Equal(t, "4 4 4 4", d.row(`SELECT count(*) FILTER (WHERE relation = 'updates'), count(*) FILTER (WHERE relation = 'created'),
		count(*) FILTER (WHERE relation = 'archived'), count(*) FILTER (WHERE relation = 'lifetimes') FROM indexer.partitions`))
	require.Equal(t, "0", d.row("SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'"))
	require.Equal(t, "0", d.row("SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND connamespace = 'indexer'::regnamespace AND conname LIKE '%range'"))
	// Each partition has its parent's indexes.
	require.Equal(t, "0", d.row(`SELECT count(*) FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent AND p.relkind = 'p'
		WHERE (SELECT count(*) FROM pg_index WHERE indrelid = i.inhrelid) <> (SELECT count(*) FROM pg_index WHERE indrelid = i.inhparent)`))

	below := newPartitions(l) // knows nothing yet, as after a restart
	require.NoError(t, below.ensure(t.Context(), "updates", []int64{4_999_999_999, 2_500_000, 3_999_999_999}))
	require.NoError(t, below.ensure(t.Context(), "updates", []int64{2_999_999, 1, math.MaxInt64 - 1}))
	require.Equal(t, "7", d.row("SELECT count(*) FROM indexer.partitions WHERE relation = 'updates'"))
	require.Error(t, below.ensure(t.Context(), "updates", []int64{math.MaxInt64}), "no range holds it")
}

// Two leaders of different roles need the same partitions at the same time, and others that are in each other's way.
func TestPartitionsOfTwoLeaders(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	leaders := []*Leader{d.lead(d.store(), RoleUpdates), d.lead(d.store(), RoleHistory)}
	var offsets []int64
	for i := range int64(widthStep + 6) {
		offsets = append(offsets, i*firstWidth+5)
	}
	var group sync.WaitGroup
	errs := make([]error, len(leaders))
	for i, l := range leaders {
		group.Go(func() {
			for n := range offsets { // one from below, one from above
				offset := offsets[n]
				if i == 1 {
					offset = offsets[len(offsets)-1-n]
				}
				if errs[i] = l.partitions.ensure(t.Context(), "topology_events", []int64{offset}); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	for _, offset := range offsets {
		d.exec("INSERT INTO indexer.topology_events (ledger_offset, node_id, kind) VALUES ($1, 0, 'added')", offset)
	}

	// One leader's view is out of date, and what it makes of it overlaps what is there.
	require.NoError(t, leaders[0].partitions.ensure(t.Context(), "reassignments", []int64{100 * firstWidth}))
	for i := range int64(widthStep) {
		require.NoError(t, leaders[1].partitions.ensure(t.Context(), "reassignments", []int64{(200 + 2*i) * firstWidth}))
	}
	require.NoError(t, leaders[1].partitions.ensure(t.Context(), "reassignments", []int64{301 * firstWidth}))
	leaders[0].partitions.spans["reassignments"] = nil
	require.NoError(t, leaders[0].partitions.ensure(t.Context(), "reassignments", []int64{300 * firstWidth, 302*firstWidth + 1, 202 * firstWidth, 203 * firstWidth}))
}

// Readers are not in the way of an attachment, nor it in theirs; DDL on the table is waited for.
func TestPartitionsAttachBesideReaders(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	require.NoError(t, l.Append(ctx, testScope, oneCreation(0, 10)))
	reader, err := d.connect().Begin(ctx)
	require.NoError(t, err)
	defer rollback(ctx, reader)
	const count = "SELECT count(*) FROM ledger.created_events JOIN ledger.updates USING (ledger_offset)"
	read := func() (n int) {
		require.NoError(t, reader.QueryRow(ctx, count).Scan(&n))
		return n
	}
	require.Equal(t, 1, read())
	require.NoError(t, l.Append(ctx, testScope, oneCreation(10, 7_000_000)))
	require.Equal(t, "2", d.row(count))
	// A transaction goes on with the partitions that it knows, until it takes the lock of another table. So they are
	// there before their rows.
	require.Contains(t, []int{1, 2}, read())
	_, err = reader.Exec(ctx, "LOCK TABLE indexer.scopes IN ACCESS SHARE MODE")
	require.NoError(t, err)
	require.Equal(t, 2, read())
	require.NoError(t, l.Append(ctx, testScope, oneCreation(7_000_000, 7_000_000+firstWidth-attachAhead)))
	require.Equal(t, "2", d.row("SELECT count(*) FROM indexer.partitions WHERE from_offset = 8000000"), "updates and created")
	_, err = reader.Exec(ctx, "LOCK TABLE indexer.synchronizers IN ACCESS SHARE MODE")
	require.NoError(t, err)
	require.Equal(t, 3, read())
	require.NoError(t, l.Append(ctx, testScope, oneCreation(7_000_000+firstWidth-attachAhead, 8_000_001)))
	require.Equal(t, 4, read())

	writer, err := d.connect().Begin(ctx) // as another leader's batch
	require.NoError(t, err)
	defer rollback(ctx, writer)
	_, err = writer.Exec(ctx, "INSERT INTO indexer.updates (ledger_offset, kind) VALUES (500, 'unknown')")
	require.NoError(t, err)
	require.NoError(t, l.Append(ctx, testScope, oneCreation(8_000_001, 9_000_000)))

	ddl, err := d.connect().Begin(ctx)
	require.NoError(t, err)
	_, err = ddl.Exec(ctx, "LOCK TABLE indexer.updates IN SHARE UPDATE EXCLUSIVE MODE")
	require.NoError(t, err)
	attached := make(chan error, 1)
	go func() { attached <- l.partitions.ensure(context.WithoutCancel(ctx), "updates", []int64{20_000_000}) }()
	d.waitFor("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%ATTACH PARTITION%')")
	require.NoError(t, ddl.Rollback(ctx))
	require.NoError(t, <-attached)
	for _, table := range strings.Fields("updates created") {
		require.Equal(t, "true", d.row("SELECT count(*) >= 3 FROM indexer.partitions WHERE relation = $1", table))
	}
}
