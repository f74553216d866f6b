package ledger

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// The memory of a body serves another one as soon as it is decoded: neither what was decoded nor an error holds on to
// it.
func TestNothingDecodedSharesMemoryWithItsBody(t *testing.T) {
	t.Parallel()
	step := 67 // a prime: all kinds of places
	if brief.Run() {
		step = 401
	}
	for _, updates := range [][]byte{everyUpdate(), plainUpdates()} { // with the library, and directly
		page := `{"lowestPageOffsetExclusive":0,"updates":` + string(updates) + `,"highestPageOffsetInclusive":99,"nextPageToken":"next"}`
		requireOwnMemory(t, step, updates, func(body []byte) (UpdateList, error) { return DecodeUpdateList(body, 0) })
		requireOwnMemory(t, step, []byte(page), func(body []byte) (UpdatePage, error) { return DecodeUpdatePage(body, 0) })
	}
	for _, entries := range [][]byte{everyEntry(), plainEntries()} {
		contracts := `{"activeContracts":` + string(entries) + `,"activeAtOffset":99,"nextPageToken":"next"}`
		requireOwnMemory(t, step, entries, DecodeContractEntries)
		requireOwnMemory(t, step, []byte(contracts), DecodeContractPage)
	}
	requireOwnMemory(t, step, everyRecord(), DecodeTransactions)
	requireOwnMemory(t, step, plainRecords(), DecodeTransactions)
	requireOwnMemory(t, step, []byte(lookedUp()), DecodeContract)
	requireOwnMemory(t, step, vettedPage(`"x"`, sampleVetted, noneVetted), DecodeVettedPackagesPage)
}

// requireOwnMemory decodes a body, and what is left of it when it is cut or damaged after each step, and then
// overwrites it.
func requireOwnMemory[T any](t *testing.T, step int, sample []byte, decode func([]byte) (T, error)) {
	t.Helper()
	compare := func(text []byte) error {
		body := bytes.Clone(text)
		got, err := decode(body) // first: what recurs is remembered from here
		copy(body, bytes.Repeat([]byte{'#'}, len(body)))
		want, wantErr := decode(text)
		require.Equal(t, want, got)
		require.Equal(t, wantErr, err)
		return err
	}
	require.NoError(t, compare(sample))
	for i := 0; i < len(sample); i += step {
		require.Error(t, compare(sample[:i]))
		damaged := bytes.Clone(sample)
		copy(damaged[i:], `\ud800`)
		_ = compare(damaged) // a payload may hold it
	}
}
