package participant

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unreachable is a client whose server must not be asked.
func unreachable(t *testing.T) *Client {
	f := newFake(t, nil)
	t.Cleanup(func() { require.Empty(t, f.requests(), "nothing is sent") })
	return newClient(t, f, with35, anyParty)
}

// requireRefused requires that a request was refused before it was sent, with this sentence.
func requireRefused(t *testing.T, err error, want string) {
	t.Helper()
	var refused *RequestError
	require.ErrorAs(t, err, &refused)
	require.EqualError(t, err, want)
}

func TestLookUpsThatBreakARule(t *testing.T) {
	t.Parallel()
	c := unreachable(t)
	for _, row := range []struct {
		id      string
		parties []string
		want    string
	}{
		{"", nil, "contractId must not be empty (interface.md, endpoint 3)"},
		{"\xff", nil, `contractId must be UTF-8 text, and is "\xff" (interface.md, endpoint 3)`},
		{strings.Repeat("\xff", 1<<20), nil, `contractId must be UTF-8 text, and is ""… (interface.md, endpoint 3)`},
		{"00", []string{"a", ""}, "queryingParties[1] must not be empty (interface.md, endpoint 3)"},
		{"00", []string{"\xc3"}, `queryingParties[0] must be UTF-8 text, and is "\xc3" (interface.md, endpoint 3)`},
	} {
		contract, raw, err := c.ContractByID(t.Context(), row.id, row.parties)
		requireRefused(t, err, row.want)
		require.Zero(t, contract)
		require.Nil(t, raw)
	}
	for id, want := range map[string]string{
		"": "updateId must not be empty (interface.md, endpoint 5)", "\xff": `updateId must be UTF-8 text, and is "\xff" (interface.md, endpoint 5)`,
	} {
		update, raw, err := c.UpdateOfScope(t.Context(), id)
		requireRefused(t, err, want)
		require.Zero(t, update)
		require.Nil(t, raw)
	}
}

func TestVettingRequestsThatBreakARule(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	one := []PackageRef{{PackageID: "p"}}
	change := func(changes ...VettingChange) VettingRequest { return VettingRequest{Changes: changes} }
	with := func(r VettingRequest) VettingRequest {
		r.Changes = []VettingChange{{Unvet: &Unvet{one}}}
		return r
	}
	const at = " (interface.md, endpoint 4)"
	for _, row := range []struct {
		name    string
		request VettingRequest
		want    string
	}{
		{"no changes", VettingRequest{DryRun: true}, "changes must not be empty" + at},
		{"both", change(VettingChange{}, VettingChange{Vet: &Vet{Packages: one}, Unvet: &Unvet{one}}),
			"changes[1].operation must be Vet or Unvet, and is both" + at},
		{"vet nothing", change(VettingChange{Vet: &Vet{}}), "changes[0].operation.Vet.packages must not be empty" + at},
		{"vet a version", change(VettingChange{Vet: &Vet{Packages: []PackageRef{{PackageID: "p"}, {PackageVersion: "1.0.0"}}}}),
			"changes[0].operation.Vet.packages[1] must have a packageId or a packageName" + at},
		{"unvet all", change(VettingChange{Unvet: &Unvet{[]PackageRef{{}}}}),
			"changes[0].operation.Unvet.packages[0] must have a packageId or a packageName" + at},
		{"id not UTF-8", change(VettingChange{Unvet: &Unvet{[]PackageRef{{PackageID: "\xff"}}}}),
			`changes[0].operation.Unvet.packages[0].packageId must be UTF-8 text, and is "\xff"` + at},
		{"name not UTF-8", change(VettingChange{Unvet: &Unvet{[]PackageRef{{PackageName: "\xff"}}}}),
			`changes[0].operation.Unvet.packages[0].packageName must be UTF-8 text, and is "\xff"` + at},
		{"version not UTF-8", change(VettingChange{Unvet: &Unvet{[]PackageRef{{PackageID: "p", PackageVersion: "\xff"}}}}),
			`changes[0].operation.Unvet.packages[0].packageVersion must be UTF-8 text, and is "\xff"` + at},
		{"from after until", change(VettingChange{Vet: &Vet{one, new(day.Add(time.Microsecond)), &day}}),
			"changes[0].operation.Vet.newValidFromInclusive must be before newValidUntilExclusive" + at},
		{"from at until", change(VettingChange{Vet: &Vet{one, &day, new(day.In(time.FixedZone("east", 3600)))}}),
			"changes[0].operation.Vet.newValidFromInclusive must be before newValidUntilExclusive" + at},
		{"nanoseconds", change(VettingChange{Vet: &Vet{one, new(day.Add(1)), nil}}),
			"changes[0].operation.Vet.newValidFromInclusive must be in whole microseconds, and is 2026-05-01T00:00:00.000000001Z" + at},
		{"year 10000", change(VettingChange{Vet: &Vet{one, nil, new(day.AddDate(9000, 0, 0))}}),
			"changes[0].operation.Vet.newValidUntilExclusive must lie in the years 1 to 9999" + at},
		{"two serials", with(VettingRequest{ExpectedSerial: ExpectedSerial{Prior: new(int32(1)), NoPrior: true}}),
			"expectedTopologySerial.serial must be Prior or NoPrior, and is both" + at},
		{"serial negative", with(VettingRequest{ExpectedSerial: ExpectedSerial{Prior: new(int32(-1))}}),
			"expectedTopologySerial.serial must not be negative, and is -1" + at},
		{"force flag", with(VettingRequest{ForceFlags: []ForceFlag{ForceUnspecified, "FORCE"}}),
			`updateVettedPackagesForceFlags must be among ["UPDATE_VETTED_PACKAGES_FORCE_FLAG_UNSPECIFIED" ` +
				`"UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_VET_INCOMPATIBLE_UPGRADES" ` +
				`"UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_UNVETTED_DEPENDENCIES"], and one is "FORCE"` + at},
		{"synchronizer not UTF-8", with(VettingRequest{SynchronizerID: "\xff"}), `synchronizerId must be UTF-8 text, and is "\xff"` + at},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			past, now, err := unreachable(t).UpdateVettedPackages(t.Context(), row.request)
			requireRefused(t, err, row.want)
			require.Nil(t, past)
			require.Zero(t, now)
		})
	}
	_, err := unreachable(t).ListVettedPackages(t.Context(), VettingFilter{PackageNamePrefixes: []string{""}})
	requireRefused(t, err, `packageNamePrefixes[0] must not be empty (interface.md, "VettedPackages")`)
}
