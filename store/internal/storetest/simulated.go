package storetest

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/sandbox"
)

// WholeScope shows everything that the simulator has.
var WholeScope = ledger.Scope{
	Shape: ledger.ShapeLedgerEffects, Interfaces: sandbox.InterfaceNames(), Reassignments: true, Topology: true,
	Blobs: true,
}

// Reader reads a simulated participant.
func Reader(t *testing.T, l *sandbox.Ledger, scope ledger.Scope) *participant.Client {
	t.Helper()
	server := httptest.NewServer(sandbox.NewServer(l, sandbox.ServerOptions{Version: "3.6", ExtraEntries: true}))
	t.Cleanup(server.Close)
	client, err := participant.New(participant.Config{URL: server.URL}, scope)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// PagesOf cuts what a participant shows after an offset into pages of so many updates.
func PagesOf(t *testing.T, client *participant.Client, after, to ledger.Offset, updates int) (pages []ledger.Page) {
	t.Helper()
	for at := after; at < to; {
		page, err := client.ReadUpdates(t.Context(), at, to)
		require.NoError(t, err)
		for len(page.Updates) > updates {
			cut := page.Updates[updates-1].Offset
			pages = append(pages, ledger.Page{From: page.From, To: cut, Updates: page.Updates[:updates]})
			page = ledger.Page{From: cut, To: page.To, Updates: page.Updates[updates:]}
		}
		pages = append(pages, page)
		at = page.To
	}
	return pages
}
