package app

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/export"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// BenchmarkImport imports a ledger, after indexing it from a server that takes 20 ms for a request, and in turns with COPY of the rows that are left into
// the same tables, on one connection. Its metrics of_copy and of_indexing are how fast it is in comparison: 1 is as fast.
func BenchmarkImport(b *testing.B) {
	folder, rows, indexing := exportFor(b, 30_000)
	quiet := slog.New(slog.DiscardHandler)
	var importing, copying time.Duration
	var updates int64
	b.ResetTimer()
	for range b.N {
		other := throwaway.Database(b)
		began := time.Now()
		done, err := RunImport(b.Context(), Import{Database: config.Database{DatabaseURL: other}, From: folder}, quiet)
		importing += time.Since(began)
		require.NoError(b, err)
		updates = done.Updates
		copying += copiedIn(b, other)
	}
	b.ReportMetric(copying.Seconds()/importing.Seconds(), "of_copy")
	b.ReportMetric(indexing.Seconds()*float64(b.N)/importing.Seconds(), "of_indexing")
	b.ReportMetric(float64(rows)*float64(b.N)/importing.Seconds(), "rows/s")
	b.ReportMetric(float64(updates)*float64(b.N)/importing.Seconds(), "updates/s")
}

// BenchmarkReadExport reads the updates of an export as an import does, and stores nothing.
func BenchmarkReadExport(b *testing.B) {
	folder, _, _ := exportFor(b, 10_000)
	place, err := export.Open(folder, false)
	require.NoError(b, err)
	b.ReportAllocs()
	updates := 0
	for b.Loop() {
		source, err := export.BeginImport(b.Context(), place, false)
		require.NoError(b, err)
		for page, err := range source.Pages(b.Context(), ledger.Range{To: source.End()}) {
			require.NoError(b, err)
			updates += len(page.Updates)
		}
		source.Close()
	}
	b.ReportMetric(float64(updates)/b.Elapsed().Seconds(), "updates/s")
}

// exportFor exports a ledger that was indexed from a server that takes 20 ms for a request. It returns how many rows the files have, and how long indexing took.
func exportFor(b *testing.B, updates int) (folder string, rows int64, indexing time.Duration) {
	b.Helper()
	l := sandbox.NewLedger(sandbox.Options{Seed: 66})
	l.Grow(updates)
	server := httptest.NewServer(sandbox.NewServer(l, sandbox.ServerOptions{Latency: 20 * time.Millisecond}))
	b.Cleanup(server.Close)
	quiet := slog.New(slog.DiscardHandler)
	database, folder := throwaway.Database(b), b.TempDir()
	began := time.Now()
	require.NoError(b, RunIndexer(b.Context(), indexerFor(database, server.URL, everything("ledger-effects")), quiet))
	indexing = time.Since(began)
	require.NoError(b, RunExport(b.Context(), Export{Database: config.Database{DatabaseURL: database}, To: folder, Options: export.Options{
		Updates: 1_000_000, Wrote: func(m export.Manifest) { rows += m.Rows() },
	}}, quiet))
	return folder, rows, indexing
}

// copiedIn is how long COPY takes to put the rows of facts, and of what follows from them, back into their tables.
func copiedIn(b *testing.B, database string) (took time.Duration) {
	conn, err := pgx.Connect(b.Context(), database)
	require.NoError(b, err)
	defer conn.Close(b.Context())
	for _, table := range names("updates created archived exercised interface_views reassignments topology_events active_contracts lifetimes") {
		var content bytes.Buffer
		_, err := conn.PgConn().CopyTo(b.Context(), &content, "COPY (SELECT * FROM indexer."+table+") TO STDOUT (FORMAT binary)")
		require.NoError(b, err)
		_, err = conn.Exec(b.Context(), "TRUNCATE indexer."+table)
		require.NoError(b, err)
		began := time.Now()
		_, err = conn.PgConn().CopyFrom(b.Context(), &content, "COPY indexer."+table+" FROM STDIN (FORMAT binary)")
		took += time.Since(began)
		require.NoError(b, err)
	}
	return took
}
