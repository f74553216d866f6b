package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/sandbox"
)

// Every version of the server, in every shape: what the database holds is what the ledger's own model says.
func TestIndexEveryServer(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]sandbox.ServerOptions{
		"3.4":                  {Version: "3.4"},
		"3.5":                  {Version: "3.5"},
		"3.6":                  {Version: "3.6"},
		"small lists":          {Version: "3.4", ListLimit: 7},
		"large limit ignored":  {Version: "3.4", ListLimit: 50, IgnoreLargeLimit: true},
		"the interface's only": {StrictInterface: true},
	} {
		for _, shape := range []string{"acs-delta", "ledger-effects"} {
			t.Run(name+" "+shape, func(t *testing.T) {
				t.Parallel()
				if (shape == "acs-delta") != (name == "3.5") || name == "3.4" || name == "large limit ignored" {
					brief.Skip(t)
				}
				brief.Sample(t)
				l := sandbox.NewLedger(sandbox.Options{Seed: 7})
				l.Grow(200)
				scope := defaultScope()
				scope.Shape = shape
				scope.Interfaces = sandbox.InterfaceNames()
				scope.Blobs = true
				database := throwaway.Migrated(t, migrate)
				require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, l, options), scope), testLogger(t)))

				truth := sandbox.Scope{Shape: sandbox.ACSDelta, Interfaces: scope.Interfaces, Blobs: true, Version: options.Version}
				if shape == "ledger-effects" {
					truth.Shape = sandbox.LedgerEffects
				}
				want := l.Truth(truth, l.End())
				require.Empty(t, sandbox.Diff(want, relations(t, database)))
			})
		}
	}
}
