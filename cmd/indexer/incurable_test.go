package main

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// followed is a ledger of some updates, and the environment of a command whose database has them.
func followed(t *testing.T, options sandbox.ServerOptions) (l *sandbox.Ledger, environ map[string]string) {
	t.Helper()
	l = grown(100)
	environ = map[string]string{
		"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_LEDGER_URL": participantOf(t, l, options), "INDEXER_LISTEN": "",
	}
	goesOn(t, environ)
	return l, environ
}

func goesOn(t *testing.T, environ map[string]string) {
	t.Helper()
	code, _, stderr := command(t, environ, "run", "--until-current")
	require.Equal(t, config.ExitDone, code, stderr)
}

// stops runs the indexer, which has to say in one line why it can't continue, and in one what to do.
func stops(t *testing.T, environ map[string]string, why, do string) {
	t.Helper()
	code, stdout, stderr := command(t, environ, "run")
	require.Equal(t, config.ExitProblem, code, stderr)
	require.Empty(t, stdout)
	var said []string
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "time=") {
			said = append(said, line)
		}
		require.NotContains(t, line, "level=ERROR", "said twice")
	}
	require.Len(t, said, 2, stderr)
	require.True(t, strings.HasPrefix(said[0], "indexer: "), said[0])
	require.Contains(t, said[0], why)
	require.True(t, strings.HasPrefix(said[1], "What to do: "), said[1])
	require.Contains(t, said[1], do)
}

var effects = sandbox.Scope{Shape: sandbox.LedgerEffects}

// lastShown tells the last update that a ledger shows, as an error does.
func lastShown(t *testing.T, l *sandbox.Ledger) (text string) {
	t.Helper()
	var latest int64
	for _, row := range l.Truth(effects, l.End())["updates"] {
		at, err := strconv.ParseInt(fmt.Sprint(row["ledger_offset"]), 10, 64)
		require.NoError(t, err)
		if at > latest {
			latest, text = at, fmt.Sprintf("update %v is stored at offset %d", row["update_id"], at)
		}
	}
	return text
}

// What is said to do about a participant that is pruned beyond the checkpoint works.
func TestPrunedBelowTheCheckpoint(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l, environ := followed(t, sandbox.ServerOptions{})
	watermark := l.End()
	l.Grow(100)
	pruned := l.Offset(150)
	require.NoError(t, l.Prune(pruned))
	stops(t, environ, fmt.Sprintf("the participant is pruned up to offset %d, and updates after offset %d are needed", pruned, watermark),
		"re-seed an empty database with `backfill`")

	environ["INDEXER_DATABASE_URL"] = throwaway.Migrated(t, migrate)
	_, err := app.RunBackfill(t.Context(), app.Backfill{
		Database: config.Database{DatabaseURL: environ["INDEXER_DATABASE_URL"]}, Ledger: config.Ledger{LedgerURL: environ["INDEXER_LEDGER_URL"]},
		Scope: config.Scope{Shape: "ledger-effects", Reassignments: true, Topology: true},
	}, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	seeded := l.End()
	l.Grow(50)
	goesOn(t, environ)
	require.Empty(t, sandbox.Diff(l.TruthFromSnapshot(effects, seeded, l.End()), storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))))
}

// A participant that was restored from a backup and has gone on with another history, and the way out of it.
func TestRestoredFromABackup(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs the daemon, and command after command beside it")
	for name, c := range map[string]struct{ backup, since int }{"and grown past the checkpoint": {60, 100}, "and not come so far": {50, 5}} {
		t.Run(name, func(t *testing.T) {
			l, environ := followed(t, sandbox.ServerOptions{})
			restored := grown(c.backup)
			common := restored.Offset(c.backup - 1)
			restored.Diverge(7)
			restored.Grow(c.since)
			why := "the ledger has another history than the database: " + lastShown(t, l)
			if restored.End() < l.Offset(99) {
				why = fmt.Sprintf("the ledger ends below the checkpoint, at offset %d", restored.End())
			}
			environ["INDEXER_LEDGER_URL"] = participantOf(t, restored, sandbox.ServerOptions{})
			stops(t, environ, why, "`indexer reanchor`")
			said, _ := printed(t, config.ExitDone, environ, "reanchor")
			require.Contains(t, said, fmt.Sprintf("what is after offset %d would be removed", common))
			said, _ = printed(t, config.ExitDone, environ, "reanchor", "--apply")
			require.Contains(t, said, fmt.Sprintf("to %d: start the indexer", common))
			goesOn(t, environ)
			require.Empty(t, sandbox.Diff(restored.Truth(effects, restored.End()), storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))))
		})
	}
}

func TestAnotherParticipantBehindTheURL(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l, environ := followed(t, sandbox.ServerOptions{})
	other := sandbox.NewLedger(sandbox.Options{Seed: 6})
	other.Grow(300)
	environ["INDEXER_LEDGER_URL"] = participantOf(t, other, sandbox.ServerOptions{})
	stops(t, environ, fmt.Sprintf("belongs to participant %s, but the ledger URL leads to participant %s", l.ParticipantID(), other.ParticipantID()),
		"correct --ledger-url or --database-url")
}

// One that does not say who it is is told by its history.
func TestAnotherParticipantThatDoesNotSayWhoItIs(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l, environ := followed(t, sandbox.ServerOptions{StrictInterface: true})
	last := lastShown(t, l)
	other := sandbox.NewLedger(sandbox.Options{Seed: 6})
	other.Grow(300)
	environ["INDEXER_LEDGER_URL"] = participantOf(t, other, sandbox.ServerOptions{StrictInterface: true})
	stops(t, environ, last, "check --ledger-url")
}

func TestMissingRights(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l, environ := followed(t, sandbox.ServerOptions{})
	authority := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: l.ParticipantID()})
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAs(l.Parties()[0])}})
	environ["INDEXER_LEDGER_TOKEN_FILE"] = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(environ["INDEXER_LEDGER_TOKEN_FILE"], []byte(authority.Token("reader")), 0o600))
	environ["INDEXER_LEDGER_URL"] = participantOf(t, l, sandbox.ServerOptions{Authority: authority})
	stops(t, environ, "lacks CanReadAsAnyParty", "grant")
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
	goesOn(t, environ)
}

func TestSchemaNewerThanTheProgram(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	_, environ := followed(t, sandbox.ServerOptions{})
	_, err := connect(t, environ["INDEXER_DATABASE_URL"]).Exec(t.Context(), "INSERT INTO indexer.schema_version (version_id, is_applied) VALUES (99999, true)")
	require.NoError(t, err)
	stops(t, environ, "has schema version 99999, this program knows only ", "run the newer release of the indexer that migrated this database")
}

func TestScopeChangedSinceTheCheckpoint(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l, environ := followed(t, sandbox.ServerOptions{})
	environ["INDEXER_BLOBS"] = "true"
	stops(t, environ, fmt.Sprintf("complete up to offset %d, but this run is configured with", l.End()),
		fmt.Sprintf("with --change-scope: what was stored up to offset %d stays as it is", l.End()))
	environ["INDEXER_BLOBS"] = "false"
	goesOn(t, environ)
}

func TestHistoryOfAnotherNetwork(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	scanOf := func(l *sandbox.Ledger) string {
		server := httptest.NewServer(sandbox.NewScan(l, sandbox.ScanOptions{}))
		t.Cleanup(server.Close)
		return server.URL
	}
	l, other := grown(50), sandbox.NewLedger(sandbox.Options{Seed: 6})
	other.Grow(50)
	environ := map[string]string{"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_SCAN_URL": scanOf(l), "INDEXER_SCAN_HISTORY": "transactions", "INDEXER_LISTEN": ""}
	goesOn(t, environ)
	environ["INDEXER_SCAN_URL"] = scanOf(other)
	stops(t, environ, other.DSO(), "correct --scan-url or --database-url")
}
