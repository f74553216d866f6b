package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzDecodeContractPage(f *testing.F) {
	page := func(entries []byte, next string) []byte {
		return []byte(`{"activeContracts":` + string(entries) + `,"activeAtOffset":7,"nextPageToken":` + next + `}`)
	}
	addSeeds(f, "entries", page(everyEntry(), `"token"`), page(list(activeEntry()), `null`), page(list(), `"\ud800"`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeContractPage(body)
		if err != nil {
			requireDecodeError(t, err)
			require.Zero(t, got)
			return
		}
		require.NotNil(t, got.Entries, "a page without a list is not taken for the end")
		require.GreaterOrEqual(t, got.ActiveAt, Offset(0))
		requireText(t, got.Next)
		for _, e := range got.Entries {
			requireText(t, e.Token)
			if e.Active != nil {
				requireCreated(t, e.Active.Created, OriginSnapshot)
			}
		}
	})
}
