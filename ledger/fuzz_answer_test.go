package ledger

import (
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func FuzzDecodeUpdate(f *testing.F) {
	addSeeds(f, "update", []byte(transaction(5, created(5, 0), archived(5, 1), exercised(5, 2))),
		[]byte(reassignment(5, assigned(5, 0), unassigned(5, 1))), []byte(checkpoint(0)), []byte(topology(5, authorization("Added"))))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeUpdate(body)
		if err != nil {
			requireDecodeError(t, err)
			require.Zero(t, got)
			return
		}
		requireUpdates(t, body, UpdateList{Updates: []Update{got}, Elements: 1, Last: got.Offset})
	})
}

func FuzzDecodeContract(f *testing.F) {
	addSeeds(f, "contract", []byte(lookedUp()))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeContract(body)
		if err != nil {
			requireDecodeError(t, err)
			require.Zero(t, got)
			return
		}
		require.True(t, utf8.Valid(body))
		require.NotEmpty(t, got.ContractID)
		requireText(t, got.ContractID, got.TemplateID, got.PackageName)
		requireText(t, got.Signatories...)
		requireText(t, got.Observers...)
		requireText(t, got.WitnessParties...)
		require.NotNil(t, got.Signatories)
		require.NotNil(t, got.WitnessParties)
		_, err = ParseTemplateID(got.TemplateID)
		require.NoError(t, err)
		require.True(t, got.CreatedAt.Valid)
		for _, payload := range []JSON{got.Argument, got.ContractKey} {
			require.True(t, payload == nil || payload.IsValid(jsontext.AllowInvalidUTF8(true)), "%s", payload)
		}
	})
}

func FuzzDecodeVettedPackagesPage(f *testing.F) {
	addSeeds(f, "vetted", vettedPage(`"x"`, sampleVetted, noneVetted), vettedPage(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeVettedPackagesPage(body)
		if err != nil {
			requireDecodeError(t, err)
			require.Zero(t, got)
			return
		}
		require.NotNil(t, got.List)
		requireText(t, got.Next)
		for _, vetted := range got.List {
			requireVetted(t, vetted)
		}
	})
}

func FuzzDecodeVettingUpdate(f *testing.F) {
	addSeeds(f, "vetting", []byte(`{"pastVettedPackages":`+noneVetted+`,"newVettedPackages":`+sampleVetted+`}`),
		[]byte(`{"pastVettedPackages":{},"newVettedPackages":`+noneVetted+`}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		past, now, err := DecodeVettingUpdate(body)
		if err != nil {
			requireDecodeError(t, err)
			require.Nil(t, past)
			require.Zero(t, now)
			return
		}
		requireVetted(t, now)
		if past != nil {
			requireVetted(t, *past)
		}
	})
}

func requireVetted(t *testing.T, v VettedPackages) {
	t.Helper()
	require.NotEmpty(t, v.ParticipantID)
	require.NotEmpty(t, v.SynchronizerID)
	requireText(t, v.ParticipantID, v.SynchronizerID)
	require.GreaterOrEqual(t, v.TopologySerial, int32(0))
	require.NotNil(t, v.Packages)
	seen := map[string]bool{}
	for _, p := range v.Packages {
		require.NotEmpty(t, p.PackageID)
		require.False(t, seen[p.PackageID])
		seen[p.PackageID] = true
		requireText(t, p.PackageID, p.PackageName, p.PackageVersion)
	}
}
