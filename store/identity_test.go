package store

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

func TestStart(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	status, err := l.store.Status(t.Context())
	require.NoError(t, err)
	require.False(t, status.Started)
	require.Equal(t, "<nil> <nil> <nil>", d.Row("SELECT ledger.latest_offset(), ledger.oldest_offset(), ledger.state_floor()"))

	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 50, false))
	require.ErrorIs(t, l.Start(t.Context(), "participant::1", storetest.Scope, 60, false), ErrWatermarkMoved)
	require.Equal(t, "50 50 <nil>", d.Row("SELECT ledger.latest_offset(), ledger.oldest_offset(), ledger.state_floor()"))
	status, err = l.store.Status(t.Context())
	require.NoError(t, err)
	require.True(t, status.Started)
	require.Nil(t, status.StateFloor, "where the active set is known nowhere")
	require.EqualValues(t, 50, status.Frontier)
	require.Equal(t, "participant::1", status.ParticipantID)

	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(50, 60)))
	n, err := l.store.UpdatesBetween(t.Context(), 50, 60)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// Rule: a database belongs to one ledger, and holds one scope.
func TestCheckIdentity(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.store()
	ctx := t.Context()
	other := ledger.Scope{Parties: []string{"alice"}, Shape: ledger.ShapeLedgerEffects}
	require.NoError(t, s.CheckIdentity(ctx, "participant::1", storetest.Scope), "of an empty database")
	l := d.leadUpdates(s)
	require.NoError(t, l.Start(ctx, "participant::1", storetest.Scope, 0, true))

	check := func() { // with and without coverage
		t.Helper()
		require.NoError(t, s.CheckIdentity(ctx, "participant::1", storetest.Scope))
		require.NoError(t, s.CheckIdentity(ctx, "", storetest.Scope), "a server that does not say who it is")
		storetest.RequireProblem(t, s.CheckIdentity(ctx, "participant::2", storetest.Scope),
			"belongs to participant participant::1", "leads to participant participant::2", "--ledger-url", "--database-url")
		storetest.RequireProblem(t, s.CheckIdentity(ctx, "participant::1", other),
			"holds the scope of --parties (any) --shape acs-delta --reassignments=true, complete",
			"configured with --parties alice --shape ledger-effects --reassignments=false", "new database")
	}
	check()
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(0, 10)))
	check()
}

// A snapshot's scope binds as soon as it is finished; one that was dropped does not.
func TestCheckIdentityAfterASnapshot(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	ctx := t.Context()
	other := ledger.Scope{Shape: ledger.ShapeLedgerEffects}
	_, err := l.BeginSnapshot(ctx, "participant::1", other, 10)
	require.NoError(t, err)
	require.NoError(t, l.DropSnapshot(ctx))
	progress, err := l.BeginSnapshot(ctx, "participant::1", storetest.Scope, 10)
	require.NoError(t, err)
	_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Last: true})
	require.NoError(t, err)
	require.NoError(t, l.store.CheckIdentity(ctx, "participant::1", storetest.Scope))
	storetest.RequireProblem(t, l.store.CheckIdentity(ctx, "participant::1", other), "holds the scope")
}

func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.store()
	ctx := t.Context()
	require.NoError(t, s.CheckSchema(ctx))
	applied, err := s.Migrate(ctx)
	require.NoError(t, err)
	require.Empty(t, applied)

	d.Exec("INSERT INTO indexer.schema_version (version_id, is_applied) VALUES (99999, true)")
	for _, check := range []func() error{
		func() error { return s.CheckSchema(ctx) },
		func() error { _, err := s.Migrate(ctx); return err },
	} {
		err := check()
		storetest.RequireProblem(t, err, "schema version 99999", "newer release")
		require.NotErrorIs(t, err, ErrSchemaOlder)
	}
	d.Exec("DELETE FROM indexer.schema_version WHERE version_id > 1")
	err = s.CheckSchema(ctx)
	require.ErrorIs(t, err, ErrSchemaOlder)
	storetest.RequireProblem(t, err, "schema version 1", "indexer migrate")
}

// A database that holds a ledger in other schemas than those that are asked for says with which flags it is found.
func TestALedgerInOtherSchemasIsNamed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	pair := func(schemas Schemas) *Store { return d.open(d.URL, func(c *Config) { c.Schemas = schemas }) }
	network, own := pair(NetworkSchemas), d.store()
	err := network.CheckSchema(t.Context())
	require.ErrorIs(t, err, ErrSchemaOlder)
	require.NotContains(t, err.Error(), "to use", "the other one holds nothing")
	const begun = "INSERT INTO %s.checkpoints (stream, ledger_offset) VALUES ('updates', 1)"
	d.Exec(fmt.Sprintf(begun, "indexer"))
	storetest.RequireProblem(t, network.CheckSchema(t.Context()), "schema version 0",
		"to use the ledger in schema ledger leave out --network, --tables-schema and --views-schema; ", "`indexer migrate`")

	_, err = network.Migrate(t.Context())
	require.NoError(t, err)
	storetest.RequireProblem(t, network.NothingIndexed(t.Context(), "prune"), "into schema network", "nothing to prune", "leave out --network", "`indexer run`")
	d.Exec("DELETE FROM indexer.checkpoints")
	d.Exec(fmt.Sprintf(begun, "network_indexer"))
	other := pair(Schemas{Tables: "a", Views: "b"})
	for _, err := range []error{own.NothingIndexed(t.Context(), "reset"), other.CheckSchema(t.Context())} {
		storetest.RequireProblem(t, err, "to use the ledger in schema network give --network; to index another ledger")
	}
}

// Several processes migrate an empty database at once: one works, the others find it done.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	brief.Long(t, "migrates a database from nothing, which takes a second or more")
	d := &testDB{storetest.New(t, throwaway.Database(t))}
	stores := []*Store{d.store(), d.store(), d.store()}
	storetest.RequireProblem(t, stores[0].CheckSchema(t.Context()), "schema version 0", "indexer migrate")
	var group sync.WaitGroup
	applied, errs := make([][]string, len(stores)), make([]error, len(stores))
	for i, s := range stores {
		group.Go(func() { applied[i], errs[i] = s.Migrate(t.Context()) })
	}
	group.Wait()
	var all []string
	for i := range stores {
		require.NoError(t, errs[i])
		all = append(all, applied[i]...)
	}
	files, err := filepath.Glob("../migrations/*.sql")
	require.NoError(t, err)
	require.Len(t, all, len(files))
	require.NoError(t, stores[0].CheckSchema(t.Context()))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), "something outside of our schemas")
}

// Of two that make the schema at the same moment, PostgreSQL refuses one in spite of IF NOT EXISTS.
func TestMigrateWhileTheSchemaIsBeingMade(t *testing.T) {
	t.Parallel()
	brief.Long(t, "migrates a database from nothing, which takes a second or more")
	d := &testDB{storetest.New(t, throwaway.Database(t))}
	tx := d.Begin("CREATE SCHEMA indexer")
	s := d.store()
	migrated := make(chan error, 1)
	go func() {
		_, err := s.Migrate(t.Context())
		migrated <- err
	}()
	d.WaitForLock("CREATE SCHEMA%")
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-migrated)
}

func TestMigrateRefusesOtherEncodings(t *testing.T) {
	t.Parallel()
	d := &testDB{storetest.New(t, throwaway.Database(t))}
	name := d.Row("SELECT current_database()") + "_ascii"
	d.Exec("CREATE DATABASE " + name + " ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() {
		_, err := d.Conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		require.NoError(t, err)
	})
	there, err := url.Parse(d.URL)
	require.NoError(t, err)
	there.Path = "/" + name
	_, err = d.open(there.String(), nil).Migrate(t.Context())
	storetest.RequireProblem(t, err, "encoding SQL_ASCII", "ENCODING 'UTF8'")
}
