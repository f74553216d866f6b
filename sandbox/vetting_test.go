package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func vet(refs ...string) string {
	return `{"operation":{"Vet":{"value":{"packages":[` + strings.Join(refs, ",") + `]}}}}`
}

func vetWithin(from, until string, refs ...string) string {
	return fmt.Sprintf(`{"operation":{"Vet":{"value":{"packages":[%s],"newValidFromInclusive":%s,"newValidUntilExclusive":%s}}}}`,
		strings.Join(refs, ","), from, until)
}

func byID(name string) string { return fmt.Sprintf(`{"packageId":%q}`, packageID(name)) }

func TestPackagesOfTheTemplatesAreVettedFromTheBeginning(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 1})
	known := map[string]Package{}
	for _, p := range l.Packages() {
		known[p.ID] = p
		require.Equal(t, p.Uploaded, p.Name != "" && p.Version != "")
	}
	for i, state := range l.Vetting() {
		if i%2 == 1 {
			require.NotEqual(t, l.ParticipantID(), state.Participant)
			continue
		}
		require.Equal(t, l.Synchronizers()[i/2], state.Synchronizer)
		require.Equal(t, l.ParticipantID(), state.Participant)
		has := func(id, name string) {
			require.Equal(t, name, known[id].Name)
			require.True(t, slices.ContainsFunc(state.Packages, func(p Vetted) bool { return p.PackageID == id }), name)
		}
		for _, of := range templates[:templateCount] {
			for _, id := range of.packages {
				has(id, of.packageName)
			}
		}
		for _, of := range interfaces {
			has(of.packageID, of.packageName)
		}
		// By its own rules such a state could come about.
		require.Nil(t, knownPackages.check(nil, slices.DeleteFunc(slices.Clone(state.Packages), func(p Vetted) bool {
			return !known[p.PackageID].Uploaded
		}), &vettingRequest{}))
	}
	require.Equal(t, l.Vetting(), NewLedger(Options{Seed: 1}).Vetting())
	require.NotEqual(t, l.Vetting(), NewLedger(Options{Seed: 2}).Vetting())
}
