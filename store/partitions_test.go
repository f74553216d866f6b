package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/storetest"
)

// A table is changed once more behind each partition that is attached: a session that was reading the list of
// partitions meanwhile may have kept one without it.
func TestAttachedPartitionsAreAnnounced(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	u := storetest.NewUpdate(1, "sync::1")
	u.Created = []ledger.CreatedEvent{storetest.Creation(0, "lives"), storetest.Creation(1, "passes")}
	u.Archived = []ledger.ArchivedEvent{storetest.Archival(2, "passes")}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{To: 1, Updates: []ledger.Update{u}}}))
	require.Equal(t, []string{"archived true", "created true", "lifetimes true", "updates true"}, d.Rows(`
		SELECT p.relname, bool_and(a.xmin::text::bigint > i.xmin::text::bigint)
		FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent AND p.relkind = 'p' AND p.relnamespace = 'indexer'::regnamespace
		JOIN pg_attribute a ON a.attrelid = p.oid AND a.attname IN ('ledger_offset', 'deactivated_offset') AND a.attnum = ANY (
			SELECT unnest(k.partattrs::smallint[]) FROM pg_partitioned_table k WHERE k.partrelid = p.oid)
		GROUP BY 1 ORDER BY 1`))
}

// Whoever attached a partition may end, or fail, before it is announced. Who needs the next one, or reads the list of
// partitions first, announces it.
func TestPartitionsAreAnnouncedAfterAKill(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	set := func(write func(context.Context, func(context.Context, pgx.Tx) error) error) *partitions.Set {
		return partitions.New(l.term.Pool, write, l.store.db.Config.Logger, 0)
	}
	announced := func(relation string) string {
		return d.Row(`SELECT a.xmin::text::bigint > max(i.xmin::text::bigint) AND coalesce(a.attstattarget, -1) < 0 FROM pg_inherits i JOIN pg_attribute a ON a.attrelid = i.inhparent
			WHERE i.inhparent = ('indexer.' || $1::text)::regclass AND a.attname = 'ledger_offset' GROUP BY a.xmin, a.attstattarget`, relation)
	}
	killed := errors.New("killed")
	for relation, again := range map[string]bool{"topology_events": true, "reassignments": false} {
		writes := 0
		ending := set(func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
			if writes++; writes == 2 {
				return killed
			}
			return l.term.Write(ctx, fn)
		})
		require.ErrorIs(t, ending.Ensure(t.Context(), relation, slices.Values([]int64{1})), killed)
		require.Equal(t, "false", announced(relation))
		next, needed := set(l.term.Write), "interface_views"
		if again {
			next, needed = ending, relation
		}
		require.NoError(t, next.Ensure(t.Context(), needed, slices.Values([]int64{1})))
		require.Equal(t, "true", announced(relation))
	}
}

// A statistics target of somebody else, of a table that has no partitions by offset, or of one that has, stands for no
// partition that was not announced.
func TestStatisticsTargetsOfOthersAreNoMark(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.Exec("CREATE TABLE indexer.of_others (n integer) PARTITION BY RANGE (n)")
	d.Exec("ALTER TABLE indexer.of_others ALTER COLUMN n SET STATISTICS 100")
	d.Exec("ALTER TABLE ONLY indexer.created ALTER COLUMN ledger_offset SET STATISTICS 1000")
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 0, To: 1, Updates: []ledger.Update{storetest.NewUpdate(1, "sync::1")}}}))
	require.Equal(t, "1000", d.Row("SELECT attstattarget FROM pg_attribute WHERE attrelid = 'indexer.created'::regclass AND attname = 'ledger_offset'"))
}

// Partitions that are being vacuumed, or analyzed, hold up no new ones.
func TestPartitionsAttachBesideVacuum(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	d.append(l, 0, storetest.NewUpdate(1, "sync::1"))
	vacuum, err := d.Connect().Begin(t.Context())
	require.NoError(t, err)
	_, err = vacuum.Exec(t.Context(), "LOCK TABLE indexer.updates_p0 IN SHARE UPDATE EXCLUSIVE MODE")
	require.NoError(t, err)
	d.append(l, 1, storetest.NewUpdate(partitions.FirstWidth, "sync::1"))
	require.Equal(t, "2", d.Row("SELECT count(*) FROM indexer.partitions WHERE relation = 'updates'"))
	require.NoError(t, vacuum.Rollback(t.Context()))
}

// Sparse offsets, at borders, downwards and at the end of what a bigint holds.
func TestPartitionsTakeSparseOffsets(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	offsets := []ledger.Offset{1, 999_999, 1_000_000, 1_000_001, 5_000_000_000, 5_000_000_001, math.MaxInt64 - 1}
	var page ledger.Page
	for _, offset := range offsets {
		u := storetest.NewUpdate(offset, "sync::1")
		u.Created = []ledger.CreatedEvent{storetest.Creation(0, fmt.Sprint("contract-", offset)), storetest.Creation(1, fmt.Sprint("transient-", offset))}
		u.Archived = []ledger.ArchivedEvent{storetest.Archival(2, fmt.Sprint("transient-", offset))}
		page.Updates, page.To = append(page.Updates, u), offset
	}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	require.Equal(t, fmt.Sprint(len(offsets)), d.Row("SELECT count(*) FROM ledger.active_contracts"))
	require.Equal(t, "4 4 4 4", d.Row(`SELECT count(*) FILTER (WHERE relation = 'updates'), count(*) FILTER (WHERE relation = 'created'),
		count(*) FILTER (WHERE relation = 'archived'), count(*) FILTER (WHERE relation = 'lifetimes') FROM indexer.partitions`))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'"))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND connamespace = 'indexer'::regnamespace AND conname LIKE '%range'"))
	// Each partition has its parent's indexes.
	require.Equal(t, "0", d.Row(`SELECT count(*) FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent AND p.relkind = 'p'
		WHERE (SELECT count(*) FROM pg_index WHERE indrelid = i.inhrelid) <> (SELECT count(*) FROM pg_index WHERE indrelid = i.inhparent)`))

	below := partitions.New(l.term.Pool, l.term.Write, l.store.db.Config.Logger, 0) // knows nothing yet, as after a restart
	require.NoError(t, below.Ensure(t.Context(), "updates", slices.Values([]int64{4_999_999_999, 2_500_000, 3_999_999_999})))
	require.NoError(t, below.Ensure(t.Context(), "updates", slices.Values([]int64{2_999_999, 1, math.MaxInt64 - 1})))
	require.Equal(t, "7", d.Row("SELECT count(*) FROM indexer.partitions WHERE relation = 'updates'"))
	require.Error(t, below.Ensure(t.Context(), "updates", slices.Values([]int64{math.MaxInt64})), "no range holds it")
}

// Two leaders of different roles need the same partitions at the same time, and others that are in each other's way.
func TestPartitionsOfTwoLeaders(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	leaders := []*Leader{d.lead(d.store(), LeaseUpdates), d.lead(d.store(), LeasePruning)}
	var offsets []int64
	for i := range int64(partitions.WidthStep + 6) {
		offsets = append(offsets, i*partitions.FirstWidth+5)
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
				if errs[i] = l.term.Partitions.Ensure(t.Context(), "topology_events", slices.Values([]int64{offset})); errs[i] != nil {
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
		d.Exec("INSERT INTO indexer.topology_events (ledger_offset, node_id, kind) VALUES ($1, 0, 'added')", offset)
	}

	// One leader's view is out of date, and what it makes of it overlaps what is there.
	require.NoError(t, leaders[0].term.Partitions.Ensure(t.Context(), "reassignments", slices.Values([]int64{100 * partitions.FirstWidth})))
	for i := range int64(partitions.WidthStep) {
		require.NoError(t, leaders[1].term.Partitions.Ensure(t.Context(), "reassignments", slices.Values([]int64{(200 + 2*i) * partitions.FirstWidth})))
	}
	require.NoError(t, leaders[1].term.Partitions.Ensure(t.Context(), "reassignments", slices.Values([]int64{301 * partitions.FirstWidth})))
	require.NoError(t, leaders[0].term.Partitions.Ensure(t.Context(), "reassignments", slices.Values([]int64{300 * partitions.FirstWidth, 302*partitions.FirstWidth + 1, 202 * partitions.FirstWidth, 203 * partitions.FirstWidth})))
}

// Readers are not in the way of an attachment, nor it in theirs; DDL on the table is waited for.
func TestPartitionsAttachBesideReaders(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(0, 10)))
	reader, err := d.Connect().Begin(ctx)
	require.NoError(t, err)
	defer pg.Rollback(ctx, reader)
	const count = "SELECT count(*) FROM ledger.created_events JOIN ledger.updates USING (ledger_offset)"
	read := func() (n int) {
		require.NoError(t, reader.QueryRow(ctx, count).Scan(&n))
		return n
	}
	require.Equal(t, 1, read())
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(10, 7_000_000)))
	require.Equal(t, "2", d.Row(count))
	// A transaction continues with the partitions that it knows, until it takes the lock of another table. So they are
	// there before their rows.
	require.Contains(t, []int{1, 2}, read())
	_, err = reader.Exec(ctx, "LOCK TABLE indexer.scopes IN ACCESS SHARE MODE")
	require.NoError(t, err)
	require.Equal(t, 2, read())
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(7_000_000, 7_000_000+partitions.FirstWidth-partitions.AttachAhead)))
	require.Equal(t, "2", d.Row("SELECT count(*) FROM indexer.partitions WHERE from_offset = 8000000"), "updates and created")
	_, err = reader.Exec(ctx, "LOCK TABLE indexer.synchronizers IN ACCESS SHARE MODE")
	require.NoError(t, err)
	require.Equal(t, 3, read())
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(7_000_000+partitions.FirstWidth-partitions.AttachAhead, 8_000_001)))
	require.Equal(t, 4, read())

	writer := d.Begin("INSERT INTO indexer.updates (ledger_offset, kind) VALUES (500, 'unknown')") // as another leader's batch
	defer pg.Rollback(ctx, writer)
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(8_000_001, 9_000_000)))

	ddl := d.Begin("LOCK TABLE indexer.updates IN SHARE UPDATE EXCLUSIVE MODE")
	attached := make(chan error, 1)
	go func() {
		attached <- l.term.Partitions.Ensure(context.WithoutCancel(ctx), "updates", slices.Values([]int64{20_000_000}))
	}()
	d.WaitForLock("%ATTACH PARTITION%")
	require.NoError(t, ddl.Rollback(ctx))
	require.NoError(t, <-attached)
	for _, table := range strings.Fields("updates created") {
		require.Equal(t, "true", d.Row("SELECT count(*) >= 3 FROM indexer.partitions WHERE relation = $1", table))
	}
}
