package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// ownerIndex and amountIndex are indexes of fields of assets' payloads.
func ownerIndex() FieldIndex {
	return FieldIndex{Table: IndexCreated, Path: "wallet.owner", Type: "text", Expression: "payload -> 'wallet' ->> 'owner'"}
}

func amountIndex(ledger string) FieldIndex {
	return FieldIndex{Table: IndexCreated, Path: "amount", Type: "numeric(38,10)",
		Expression: ledger + ".as_numeric(payload ->> 'amount', 10)::numeric(38,10)"}
}

// owned is an update with a creation of an asset.
func owned(at ledger.Offset, owner, amount string) ledger.Update {
	u := storetest.NewUpdate(at, "sync::1")
	c := storetest.Creation(0, fmt.Sprint("contract-", at))
	c.Argument = ledger.JSON(fmt.Sprintf(`{"wallet": {"owner": %q}, "amount": %q}`, owner, amount))
	u.Created = []ledger.CreatedEvent{c}
	return u
}

// random is a text that can't be compressed much.
func random(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		sum := sha256.Sum256(fmt.Append(nil, i))
		b.WriteString(hex.EncodeToString(sum[:]))
	}
	return b.String()
}

const (
	byOwner  = "SELECT ledger_offset FROM ledger.created_events WHERE payload -> 'wallet' ->> 'owner' = %s"
	byAmount = "SELECT ledger_offset FROM ledger.created_events WHERE ledger.as_numeric(payload ->> 'amount', 10)::numeric(38,10) BETWEEN 4 AND 5 ORDER BY 1"
	// partsOfIndexes has a row for each index of a field on a table that holds rows.
	partsOfIndexes = `SELECT c.relname::text, i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_class t ON t.oid = i.indrelid
		WHERE c.relkind = 'i' AND c.relnamespace = 'indexer'::regnamespace AND (i.indexprs IS NOT NULL) AND t.relname ~ '^(created|interface_views)(_p[0-9]+)?$' ORDER BY 1`
)

// requireServed fails where a query does not use an index of each partition.
func (d *testDB) requireServed(query string, partitions int) {
	d.T.Helper()
	d.Exec("SET enable_seqscan = off")
	d.Exec("SET enable_indexscan = off") // which reads a table of a row or none by its key as fast: only bitmaps need a condition
	plan := d.plan(query)
	d.Exec("RESET enable_indexscan")
	require.Len(d.T, regexp.MustCompile(`Index Scan (using|on) created_p\d+_(field|expr|as_numeric)`).FindAllString(plan, -1), partitions, plan)
	require.NotRegexp(d.T, `Seq Scan on created`, plan)
}

// Partitions that are there get an index, and those that come. Values of any length are stored, and found.
func TestFieldIndexesOfEveryPartition(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "builds indexes of several partitions")
	d := newDatabase(t)
	l := d.started()
	s := d.store()
	d.append(l, 0, owned(1, "alice", "5"), owned(2_000_000, "bob", "6"), owned(2_000_001, "alice", "no number"))
	for _, wanted := range []FieldIndex{ownerIndex(), amountIndex("ledger")} {
		index, changed, err := s.CreateFieldIndex(t.Context(), wanted, false)
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, wanted.Path, index.Path)
		require.Equal(t, wanted.Expression, index.Expression)
		require.Equal(t, IndexCreated, index.Table)
		require.Positive(t, index.Bytes)
		require.Equal(t, 2, index.Partitions)
		require.Zero(t, index.Unfinished)
		require.LessOrEqual(t, len(index.Name), 63)
		again, changed, err := s.CreateFieldIndex(t.Context(), wanted, false)
		require.NoError(t, err)
		require.False(t, changed)
		require.Equal(t, index, again)
	}
	parts := d.Rows(partsOfIndexes)
	require.Len(t, parts, 4)
	require.Equal(t, []string{"true true"}, d.Rows(`SELECT DISTINCT i.indisvalid, i.indisready FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname LIKE '%\_field\_%'`))

	long, huge := random(10_000), random(1_000_000)
	d.append(l, 2_000_001, owned(2_000_002, long, "1."+strings.Repeat("0", 5_000)), owned(9_000_000, huge, "4.5"), owned(9_000_001, "alice", long))
	require.Len(t, d.Rows(partsOfIndexes), 6)
	d.requireServed(fmt.Sprintf(byOwner, "'alice'"), 3)
	d.requireServed(byAmount, 3)
	require.Equal(t, []string{"1", "2000001", "9000001"}, d.Rows(fmt.Sprintf(byOwner, "'alice'")+" ORDER BY 1"))
	require.Equal(t, []string{"1", "9000000"}, d.Rows(byAmount))
	require.Equal(t, []string{"2000002"}, d.Rows(fmt.Sprintf(byOwner, "$1"), long))
	require.Equal(t, []string{"9000000"}, d.Rows(fmt.Sprintf(byOwner, "$1"), huge))

	// What is removed and written again is in the indexes, as any row.
	_, err := l.Reset(t.Context(), 2_000_000)
	require.NoError(t, err)
	d.append(l, 2_000_000, owned(2_000_005, "alice", "4"))
	require.Equal(t, []string{"1", "2000005"}, d.Rows(fmt.Sprintf(byOwner, "'alice'")+" ORDER BY 1"))
	require.Equal(t, []string{"1", "2000005"}, d.Rows(byAmount))

	list, err := s.FieldIndexes(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	for i, index := range list {
		require.Len(t, d.Rows(partsOfIndexes), 3*(2-i))
		for _, there := range []bool{true, false} {
			found, err := s.DropFieldIndex(t.Context(), index.Name)
			require.NoError(t, err)
			require.Equal(t, there, found)
		}
	}
	found, err := s.DropFieldIndex(t.Context(), "created_pkey")
	require.NoError(t, err)
	require.False(t, found, "it is none of these")
	require.Empty(t, d.Rows(partsOfIndexes))
	list, err = s.FieldIndexes(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// Indexes of what there is of a template and of a choice, and of a choice's argument, are of every partition of their
// tables, which no snapshot has rows of.
func TestIndexesOfTemplatesAndChoices(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	s := d.store()
	// lived is an update in which a contract is created, and the one of the update before archived by a choice.
	lived := func(at, before ledger.Offset, actor string) ledger.Update {
		u := owned(at, "alice", "1")
		u.Created[0].NodeID, u.Created[0].ContractKey = 1, ledger.JSON(fmt.Sprintf(`{"_1": %q}`, actor))
		x := storetest.Exercise(0, fmt.Sprint("contract-", before), true, nil)
		x.Choice, x.Argument = "Settle", ledger.JSON(fmt.Sprintf(`{"actor": %q}`, actor))
		u.Exercised = []ledger.ExercisedEvent{x}
		return u
	}
	d.append(l, 0, owned(1, "alice", "1"), lived(2, 1, "bob"), lived(2_000_000, 2, "carol"))
	list := []FieldIndex{{Table: IndexLifetimes}, {Table: IndexCreated}, {Table: IndexExercised},
		{Table: IndexExercised, Path: "actor", Type: "text", Expression: "choice_argument ->> 'actor'"}}
	for _, wanted := range list {
		index, changed, err := s.CreateFieldIndex(t.Context(), wanted, true)
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, []any{wanted.Path, wanted.Table}, []any{index.Path, index.Table})
		require.Equal(t, 2, index.Partitions)
		require.Zero(t, index.Unfinished)
		_, changed, err = s.CreateFieldIndex(t.Context(), wanted, false)
		require.NoError(t, err)
		require.False(t, changed)
	}
	d.append(l, 2_000_000, lived(9_000_000, 2_000_000, "bob"))
	d.Exec("SET enable_seqscan = off")
	d.Exec("SET enable_bitmapscan = off")
	for query, wanted := range map[string]struct {
		index string
		rows  []string
	}{
		"SELECT active_from FROM ledger.active_at(5) WHERE package_name = 'asset' AND entity_name = 'Asset'":                                   {`lifetimes_p\d+_(field|template_ref)`, []string{"2"}},
		"SELECT ledger_offset FROM ledger.exercised_events WHERE choice = 'Settle'":                                                            {`exercised_p\d+_(field|choice)`, []string{"2", "2000000", "9000000"}},
		"SELECT ledger_offset FROM ledger.exercised_events WHERE choice_argument ->> 'actor' = 'bob' AND choice IS NOT DISTINCT FROM 'Settle'": {`exercised_p\d+_(field|expr)`, []string{"2", "9000000"}},
		`SELECT ledger_offset FROM ledger.created_with_key('{"_1": "bob"}') WHERE package_name = 'asset'`:                                      {`created_p\d+_(field|jsonb)`, []string{"2", "9000000"}},
	} {
		require.Equal(t, wanted.rows, storetest.Sorted(d.Rows(query)), query)
		plan := d.plan(query)
		require.Regexp(t, "Index( Only)? Scan using "+wanted.index, plan, query)
		require.NotRegexp(t, `Seq Scan on (exercised|lifetimes|created)`, plan, query)
	}
	indexes, err := s.FieldIndexes(t.Context())
	require.NoError(t, err)
	require.Len(t, indexes, len(list))
	for _, index := range indexes {
		found, err := s.DropFieldIndex(t.Context(), index.Name)
		require.NoError(t, err)
		require.True(t, found)
	}
	require.Empty(t, d.Rows(`SELECT c.relname FROM pg_class c WHERE c.relname ~ '_field_[0-9a-f]{12}$' AND c.relnamespace = 'indexer'::regnamespace`))
}

// An index that could not be finished is shown as such, and the next command finishes it. Writing continues meanwhile.
func TestFieldIndexesThatWereCutOff(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	s := d.store()
	d.append(l, 0, owned(1, "alice", "5"), owned(2_000_000, "bob", "6"))

	reader := d.Connect() // has an open transaction, for which building waits
	for _, statement := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM ledger.created_events"} {
		_, err := reader.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, _, err := s.CreateFieldIndex(ctx, ownerIndex(), false)
		failed <- err
	}()
	d.WaitFor("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event = 'virtualxid')")
	_, _, err := s.CreateFieldIndex(t.Context(), ownerIndex(), false)
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, "another command is making or dropping an index", problem.What)
	d.append(l, 2_000_000, owned(2_000_001, "carol", "7"), owned(5_000_000, "alice", "8"))
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	d.WaitFor("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND state = 'active')")

	list, err := s.FieldIndexes(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, 1, list[0].Partitions) // that which came
	require.Equal(t, 2, list[0].Unfinished)
	require.Contains(t, d.Rows(partsOfIndexes), "created_p0_field_"+list[0].Name[strings.LastIndex(list[0].Name, "_")+1:]+" false")
	_, err = reader.Exec(t.Context(), "COMMIT")
	require.NoError(t, err)

	index, changed, err := s.CreateFieldIndex(t.Context(), ownerIndex(), false)
	require.NoError(t, err)
	require.True(t, changed)
	require.Zero(t, index.Unfinished)
	require.Equal(t, 3, index.Partitions)
	for _, part := range d.Rows(partsOfIndexes) {
		require.Contains(t, part, " true")
	}
	d.requireServed(fmt.Sprintf(byOwner, "'alice'"), 3)
	require.Equal(t, []string{"1", "5000000"}, d.Rows(fmt.Sprintf(byOwner, "'alice'")+" ORDER BY 1"))
}

// A build ends with the command, also if that was killed and can't say so: the next one has the lock at once.
func TestAFieldIndexOfACommandThatIsKilled(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.append(d.started(), 0, owned(1, "alice", "5"))
	wire := d.wire()
	s := d.open(wire.URL(), nil)
	writer := d.Begin("LOCK TABLE created_p0 IN ROW EXCLUSIVE MODE") // for whose end building waits
	failed := make(chan error)
	go func() {
		_, _, err := s.CreateFieldIndex(context.WithoutCancel(t.Context()), ownerIndex(), false)
		failed <- err
	}()
	building := "SELECT %s EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%%' AND state = 'active')"
	d.WaitFor(fmt.Sprintf(building, ""))
	wire.Close()
	require.Error(t, <-failed)
	d.WaitFor(fmt.Sprintf(building, "NOT"))
	require.NoError(t, writer.Commit(t.Context()))
}

// A writer commits while an index is built, and a build waits no longer than it needs to.
func TestFieldIndexesWhileALeaderWrites(t *testing.T) {
	t.Parallel()
	brief.Long(t, "builds indexes beside a writer")
	d := newDatabase(t)
	l := d.started()
	s := d.store()
	d.append(l, 0, owned(1, "alice", "5"))
	stop, wrote := make(chan struct{}), make(chan int64)
	go func() {
		at := ledger.Offset(1)
		defer func() { wrote <- int64(at) }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			u := owned(at+100_000, "alice", "5")
			if l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: at, To: u.Offset, Updates: []ledger.Update{u}}}) != nil {
				return
			}
			at = u.Offset
		}
	}()
	for range 3 {
		index, changed, err := s.CreateFieldIndex(t.Context(), ownerIndex(), false)
		require.NoError(t, err)
		require.True(t, changed)
		before := d.Watermark()
		d.WaitFor("SELECT ledger.latest_offset()::text <> $1", before)
		dropped, err := s.DropFieldIndex(t.Context(), index.Name)
		require.NoError(t, err)
		require.True(t, dropped)
	}
	_, _, err := s.CreateFieldIndex(t.Context(), ownerIndex(), false)
	require.NoError(t, err)
	close(stop)
	last := <-wrote
	require.Greater(t, last, int64(1))
	require.Equal(t, fmt.Sprint(last/100_000+1), d.Row("SELECT count(*) FROM ("+fmt.Sprintf(byOwner, "'alice'")+") x"))
	require.Equal(t, d.Row("SELECT count(*) FROM pg_inherits WHERE inhparent = 'indexer.created'::regclass"), fmt.Sprint(len(d.Rows(partsOfIndexes))))
}

// A hash index goes through all equal values with each new one: one of a field that has few is refused, or made anyway.
func TestFieldIndexesOfFewValues(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	s := d.store()
	u := storetest.NewUpdate(1, "sync::1")
	for i := range int32(2_000) {
		c := storetest.Creation(i, fmt.Sprint("contract-", i))
		c.Argument = ledger.JSON(fmt.Sprintf(`{"wallet": {"owner": "owner %d"}, "amount": "1"}`, i%8))
		u.Created = append(u.Created, c)
	}
	d.append(l, 0, u)
	wanted := ownerIndex()
	_, _, err := s.CreateFieldIndex(t.Context(), wanted, false)
	require.ErrorIs(t, err, ErrSameValues)
	require.ErrorContains(t, err, "of its last 2000 values 250 are the same")
	list, err := s.FieldIndexes(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	_, _, err = s.CreateFieldIndex(t.Context(), amountIndex("ledger"), false) // equal values lie together there
	require.NoError(t, err)
	_, changed, err := s.CreateFieldIndex(t.Context(), wanted, true)
	require.NoError(t, err)
	require.True(t, changed)
}

// Indexes belong to a pair of schemas, and to the role that owns its tables.
func TestFieldIndexesOfAnotherPair(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "migrates a second pair of schemas")
	d := newDatabase(t)
	other := d.open(d.URL, func(c *Config) { c.Schemas = Schemas{Tables: "indexer_b", Views: "ledger_b"} })
	_, err := other.Migrate(t.Context())
	require.NoError(t, err)
	index, _, err := other.CreateFieldIndex(t.Context(), amountIndex("ledger_b"), false)
	require.NoError(t, err)
	require.Zero(t, index.Partitions)
	require.Zero(t, index.Unfinished)
	_, _, err = other.CreateFieldIndex(t.Context(), FieldIndex{Table: IndexViews, Path: "owner", Type: "text", Expression: "view_value ->> 'owner'"}, false)
	require.NoError(t, err)
	list, err := other.FieldIndexes(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	list, err = d.store().FieldIndexes(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)

	role, as := throwaway.Login(t, d.URL, "")
	d.Exec("GRANT USAGE ON SCHEMA indexer, ledger TO " + role + "; GRANT SELECT ON ALL TABLES IN SCHEMA indexer TO " + role)
	_, _, err = d.open(as, nil).CreateFieldIndex(t.Context(), ownerIndex(), false)
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, "use the role that owns them: the one that runs the indexer", problem.Do)
}

// What is set for the database changes nothing.
func TestFieldIndexesWithStrangeSettings(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "migrates a database from nothing, which takes a second or more")
	strange, usual := throwaway.Strange(t)
	d := &testDB{&storetest.DB{T: t, URL: strange, Conn: usual}}
	s := d.store()
	_, err := s.Migrate(t.Context())
	require.NoError(t, err)
	l := d.started()
	d.append(l, 0, owned(1, "alice", "5"))
	for _, wanted := range []FieldIndex{ownerIndex(), amountIndex("ledger")} {
		index, _, err := s.CreateFieldIndex(t.Context(), wanted, false)
		require.NoError(t, err)
		require.Equal(t, 1, index.Partitions)
	}
	d.append(l, 1, owned(2, "bob", "6"))
	d.requireServed(byAmount, 1)
}

func TestFieldIndexNames(t *testing.T) {
	t.Parallel()
	name := fieldIndexName("interface_views", strings.Repeat(`ä"; DROP `, 20), fieldHash("interface_views", "x"))
	require.Len(t, name, 63)
	require.Regexp(t, "^interface_views_field_[a-z_]+_[0-9a-f]{12}$", name)
	require.NotEqual(t, fieldHash("created", "a"), fieldHash("created", "b"))
	require.LessOrEqual(t, len(fieldPartName("interface_views_p9223372036854775807", fieldHash("", ""))), 63)
}
