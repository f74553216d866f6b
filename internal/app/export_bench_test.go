package app

import (
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// BenchmarkExport exports a ledger, in turns with COPY TO of the same rows to nowhere. Its metric of_copy is how fast
// it is in comparison: 1 is the speed of COPY.
func BenchmarkExport(b *testing.B) {
	l := sandbox.NewLedger(sandbox.Options{Seed: 66})
	l.Grow(30_000)
	server := httptest.NewServer(sandbox.NewServer(l, sandbox.ServerOptions{}))
	b.Cleanup(server.Close)
	quiet := slog.New(slog.DiscardHandler)
	database := throwaway.Database(b)
	require.NoError(b, RunIndexer(b.Context(), indexerFor(database, server.URL, everything("ledger-effects")), quiet))
	conn, err := pgx.Connect(b.Context(), database)
	require.NoError(b, err)
	defer conn.Close(b.Context())
	var copies []string
	db, err := store.Open(store.Config{URL: database})
	require.NoError(b, err)
	defer db.Close()
	require.NoError(b, db.Export(b.Context(), func(e *store.ExportSnapshot) error {
		relations, err := e.Relations(b.Context())
		for _, r := range relations {
			var columns []string
			for _, c := range r.Columns {
				columns = append(columns, c.Name)
			}
			copies = append(copies, fmt.Sprintf("COPY (SELECT %s FROM ledger.%s WHERE %[3]s > 0 AND %[3]s <= 1000000000 ORDER BY %[3]s) TO STDOUT", strings.Join(columns, ", "), r.Name, r.Place))
		}
		return err
	}))
	var exporting, copying time.Duration
	var rows, bytes int64
	b.ResetTimer()
	for range b.N {
		began := time.Now()
		for _, sql := range copies {
			_, err := conn.PgConn().CopyTo(b.Context(), io.Discard, sql)
			require.NoError(b, err)
		}
		copying += time.Since(began)
		began = time.Now()
		require.NoError(b, RunExport(b.Context(), Export{Database: config.Database{DatabaseURL: database}, To: b.TempDir(), Options: export.Options{
			Updates: 1_000_000, Wrote: func(m export.Manifest) {
				rows, bytes = m.Rows(), 0
				for _, f := range m.Files {
					bytes += f.Bytes
				}
			},
		}}, quiet))
		exporting += time.Since(began)
	}
	b.ReportMetric(copying.Seconds()/exporting.Seconds(), "of_copy")
	b.ReportMetric(float64(rows)*float64(b.N)/exporting.Seconds(), "rows/s")
	b.ReportMetric(float64(bytes)/float64(rows), "bytes/row")
}
