package participant

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

func TestVettingRequestsAsTheyAreSent(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 5, 1, 2, 0, 0, 5_000_000, time.FixedZone("east", 7200))
	until := from.Add(time.Hour + time.Microsecond)
	for _, row := range []struct {
		request VettingRequest
		want    string
	}{
		{VettingRequest{Changes: []VettingChange{{}}, DryRun: true}, `{"changes":[{"operation":{"Empty":{}}}],"dryRun":true}`},
		{VettingRequest{
			Changes: []VettingChange{
				{Unvet: &Unvet{[]PackageRef{{PackageName: "bank"}, {PackageID: "p", PackageName: "bank", PackageVersion: "1.0.0"}}}},
				{Vet: &Vet{[]PackageRef{{PackageID: "q\""}}, &from, &until}},
				{Vet: &Vet{Packages: []PackageRef{{PackageName: "bank", PackageVersion: "1.0.0"}}}},
				{Unvet: &Unvet{}},
			},
			SynchronizerID: "sync::1", ExpectedSerial: ExpectedSerial{Prior: new(int32(0))},
			ForceFlags: []ForceFlag{ForceAllowUnvettedDependencies, ForceAllowIncompatibleUpgrades},
		}, `{"changes":[
			{"operation":{"Unvet":{"value":{"packages":[{"packageName":"bank"},{"packageId":"p","packageName":"bank","packageVersion":"1.0.0"}]}}}},
			{"operation":{"Vet":{"value":{"packages":[{"packageId":"q\""}],"newValidFromInclusive":"2026-05-01T00:00:00.005Z",
				"newValidUntilExclusive":"2026-05-01T01:00:00.005001Z"}}}},
			{"operation":{"Vet":{"value":{"packages":[{"packageName":"bank","packageVersion":"1.0.0"}]}}}},
			{"operation":{"Unvet":{"value":{"packages":[]}}}}],
			"dryRun":false,"synchronizerId":"sync::1","expectedTopologySerial":{"serial":{"Prior":{"value":0}}},
			"updateVettedPackagesForceFlags":["UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_UNVETTED_DEPENDENCIES",
				"UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_VET_INCOMPATIBLE_UPGRADES"]}`},
		{VettingRequest{Changes: []VettingChange{{Unvet: &Unvet{}}}, ExpectedSerial: ExpectedSerial{NoPrior: true}},
			`{"changes":[{"operation":{"Unvet":{"value":{"packages":[]}}}}],"dryRun":false,"expectedTopologySerial":{"serial":{"NoPrior":{}}}}`},
	} {
		got, err := json.Marshal(row.request)
		require.NoError(t, err)
		require.JSONEq(t, row.want, string(got))
	}
	none, err := json.Marshal(ExpectedSerial{})
	require.NoError(t, err)
	require.JSONEq(t, `{"serial":{"Empty":{}}}`, string(none))
}

// vettingOf is what the simulated ledger says is vetted.
func vettingOf(l *sandbox.Ledger) (list []ledger.VettedPackages) {
	known := map[string]sandbox.Package{}
	for _, p := range l.Packages() {
		known[p.ID] = p
	}
	instant := func(t *time.Time) ledger.Time {
		if t == nil {
			return ledger.Time{}
		}
		return ledger.Time{Time: *t, Valid: true}
	}
	for _, v := range l.Vetting() {
		one := ledger.VettedPackages{ParticipantID: v.Participant, SynchronizerID: v.Synchronizer, TopologySerial: v.Serial,
			Packages: []ledger.VettedPackage{}}
		for _, p := range v.Packages {
			one.Packages = append(one.Packages, ledger.VettedPackage{PackageID: p.PackageID, PackageName: known[p.PackageID].Name,
				PackageVersion: known[p.PackageID].Version, ValidFrom: instant(p.ValidFrom), ValidUntil: instant(p.ValidUntil)})
		}
		list = append(list, one)
	}
	return list
}

func TestVettingOfEveryServer(t *testing.T) {
	t.Parallel()
	for _, r := range releases {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			l := sandbox.NewLedger(sandbox.Options{Seed: 31})
			l.Grow(5)
			srv := httptest.NewServer(checked(t, openapi.Ledger(t, r.document), r, sandbox.NewServer(l, r.opts)))
			t.Cleanup(srv.Close)
			requireVetting(t, r, l, discovered(t, srv.URL, anyParty))
		})
	}
}

func requireVetting(t *testing.T, r release, l *sandbox.Ledger, c *Client) {
	synchronizer := l.Synchronizers()[1]
	state := func() ledger.VettedPackages {
		list := vettingOf(l)
		at := slices.IndexFunc(list, func(v ledger.VettedPackages) bool {
			return v.SynchronizerID == synchronizer && v.ParticipantID == l.ParticipantID()
		})
		return list[at]
	}
	list, err := c.ListVettedPackages(t.Context(), VettingFilter{})
	if r.strict() {
		require.ErrorIs(t, err, ledger.ErrNotOffered)
	} else {
		require.NoError(t, err)
		require.Equal(t, vettingOf(l), list)
	}

	// A dry run, the same for real, and once more with the serial that has moved.
	before := state()
	from, until := time.Date(2026, 5, 1, 0, 0, 0, 1000, time.UTC), time.Date(2027, 5, 1, 0, 0, 0, 0, time.UTC)
	req := VettingRequest{
		Changes: []VettingChange{
			{Vet: &Vet{Packages: []PackageRef{{PackageName: "audit-api", PackageVersion: "1.0.0"}}}},
			{Vet: &Vet{[]PackageRef{{PackageName: "audit"}}, &from, &until}},
			{Unvet: &Unvet{[]PackageRef{{PackageName: "trade"}}}},
		},
		DryRun: true, SynchronizerID: synchronizer, ExpectedSerial: ExpectedSerial{Prior: &before.TopologySerial},
	}
	past, preview, err := c.UpdateVettedPackages(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, before, *past)
	require.Equal(t, before, state(), "nothing has changed")
	req.DryRun = false
	past, now, err := c.UpdateVettedPackages(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, before, *past)
	require.Equal(t, preview, now)
	require.Equal(t, state(), now)
	require.Equal(t, before.TopologySerial+1, now.TopologySerial)
	at := slices.IndexFunc(now.Packages, func(p ledger.VettedPackage) bool { return p.PackageName == "audit" })
	require.Equal(t, [2]ledger.Time{{Time: from, Valid: true}, {Time: until, Valid: true}}, [2]ledger.Time{now.Packages[at].ValidFrom, now.Packages[at].ValidUntil})
	require.False(t, slices.ContainsFunc(now.Packages, func(p ledger.VettedPackage) bool { return p.PackageName == "trade" }))
	_, _, err = c.UpdateVettedPackages(t.Context(), req)
	require.Contains(t, problem(t, err), "another serial than was expected")

	// What reads without changing anything: interface.md's Empty is refused, an Unvet of nothing is not.
	req = VettingRequest{Changes: []VettingChange{{}}, DryRun: true, SynchronizerID: synchronizer}
	_, _, err = c.UpdateVettedPackages(t.Context(), req)
	require.Contains(t, problem(t, err), "refuses the request as invalid")
	req.Changes[0].Unvet = &Unvet{}
	past, now, err = c.UpdateVettedPackages(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, state(), now)
	require.Equal(t, now, *past)

	// Where nothing was ever vetted there is no past.
	l.SetVetting(sandbox.Vetting{Synchronizer: synchronizer, Participant: l.ParticipantID()})
	req = VettingRequest{Changes: []VettingChange{{Vet: &Vet{Packages: []PackageRef{{PackageID: l.Packages()[0].ID}}}}}, SynchronizerID: synchronizer,
		ExpectedSerial: ExpectedSerial{NoPrior: true}}
	past, now, err = c.UpdateVettedPackages(t.Context(), req)
	require.NoError(t, err)
	require.Nil(t, past)
	require.Equal(t, int32(1), now.TopologySerial)

	vet := func(refs ...PackageRef) VettingRequest {
		return VettingRequest{Changes: []VettingChange{{Vet: &Vet{Packages: refs}}}, SynchronizerID: synchronizer, DryRun: true}
	}
	for want, req := range map[string]VettingRequest{
		"name it with --synchronizer":      {Changes: []VettingChange{{Unvet: &Unvet{}}}},
		"not connected":                    {Changes: []VettingChange{{Unvet: &Unvet{}}}, SynchronizerID: "none::1220"},
		"vet the dependencies too":         vet(PackageRef{PackageName: "audit"}),
		"no package of the participant":    vet(PackageRef{PackageName: "no-such-package"}),
		"several packages fit":             vet(PackageRef{PackageName: "trade"}),
		"upload the package with its":      vet(PackageRef{PackageName: "orphan"}),
		"refuses the request as invalid":   vet(PackageRef{PackageID: "quote\"\n\x00" + strings.Repeat("x", 70)}),
		"somebody else changed them, or t": {Changes: []VettingChange{{Unvet: &Unvet{}}}, SynchronizerID: synchronizer, ExpectedSerial: ExpectedSerial{NoPrior: true}},
	} {
		_, _, err := c.UpdateVettedPackages(t.Context(), req)
		require.Contains(t, problem(t, err), want)
	}
}

func TestEveryPageOfVettedPackagesIsRead(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 32})
	want := vettingOf(l)
	for i := range 25 {
		l.SetVetting(sandbox.Vetting{Synchronizer: l.Synchronizers()[0], Participant: fmt.Sprintf("another-%d::1220", i), Serial: 1,
			Packages: []sandbox.Vetted{{PackageID: "foreign"}}})
	}
	for _, size := range []int{1, 2, 100} {
		c := discovered(t, simulated(t, l, sandbox.ServerOptions{VettingPage: size}).URL, anyParty)
		got, err := c.ListVettedPackages(t.Context(), VettingFilter{})
		require.NoError(t, err)
		require.Equal(t, vettingOf(l), got)

		got, err = c.ListVettedPackages(t.Context(), VettingFilter{ParticipantIDs: []string{l.ParticipantID()}, SynchronizerIDs: l.Synchronizers()[1:]})
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Contains(t, want, got[0])

		// On most pages of one participant nothing of this name remains; the server would have ended there.
		got, err = c.ListVettedPackages(t.Context(), VettingFilter{PackageNamePrefixes: []string{"tra", "ba"}})
		require.NoError(t, err)
		require.Equal(t, filtered(vettingOf(l), func(p ledger.VettedPackage) bool {
			return strings.HasPrefix(p.PackageName, "tra") || strings.HasPrefix(p.PackageName, "ba")
		}), got)
		require.Greater(t, len(got), 1)

		none, err := c.ListVettedPackages(t.Context(), VettingFilter{PackageNamePrefixes: []string{"no such package"}})
		require.NoError(t, err)
		require.Empty(t, none)
	}
}

func filtered(list []ledger.VettedPackages, wanted func(ledger.VettedPackage) bool) (out []ledger.VettedPackages) {
	for _, v := range list {
		var left []ledger.VettedPackage
		for _, p := range v.Packages {
			if wanted(p) {
				left = append(left, p)
			}
		}
		if v.Packages = left; len(left) > 0 {
			out = append(out, v)
		}
	}
	return out
}

func TestVettingThatAServerDoesNotHave(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 33})
	c := discovered(t, simulated(t, l, sandbox.ServerOptions{NoVetting: true}).URL, anyParty)
	_, err := c.ListVettedPackages(t.Context(), VettingFilter{})
	require.ErrorIs(t, err, ledger.ErrNotOffered)
	_, _, err = c.UpdateVettedPackages(t.Context(), VettingRequest{Changes: []VettingChange{{}}})
	require.ErrorIs(t, err, ledger.ErrNotOffered)
}

// The first servers of 3.4 have the update at a path that later ones call deprecated, and no list that is asked for by
// POST.
func TestVettingOfTheFirstServersOf34(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 34})
	server := sandbox.NewServer(l, sandbox.ServerOptions{Version: "3.4"})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathVettingList || r.URL.Path == pathVettingUpdate {
			unknownPath(w, r)
			return
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c := discovered(t, srv.URL, anyParty)
	_, err := c.ListVettedPackages(t.Context(), VettingFilter{})
	require.ErrorIs(t, err, ledger.ErrNotOffered)
	past, now, err := c.UpdateVettedPackages(t.Context(), VettingRequest{
		Changes: []VettingChange{{Unvet: &Unvet{}}}, DryRun: true, SynchronizerID: l.Synchronizers()[0]})
	require.NoError(t, err)
	require.Equal(t, now, *past)
	require.Contains(t, vettingOf(l), now)
}

func vettedAnswer(participant string, serial int) string {
	return fmt.Sprintf(`{"packages":[],"participantId":%q,"synchronizerId":"sync::1","topologySerial":%d}`, participant, serial)
}

func TestListsOfVettedPackagesThatLie(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	endless := func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if n > 20 {
			answer(`{"vettedPackages":[]}`)(w, r) // who does not notice must not continue for ever
			return
		}
		answer(fmt.Sprintf(`{"vettedPackages":[%s],"nextPageToken":"t%d"}`, vettedAnswer(fmt.Sprint("p", n), 1), n%3))(w, r)
	}
	for name, test := range map[string]struct {
		list http.HandlerFunc
		want string
	}{
		"a token that leads back": {endless, "the list leads back to a page that came before"},
		"an entry that comes again": {answer(`{"vettedPackages":[` + vettedAnswer("p", 1) + `],"nextPageToken":"x"}`),
			`participant "p" on synchronizer "sync::1" came twice`},
		"an entry twice in a page": {answer(`{"vettedPackages":[` + vettedAnswer("p", 1) + `,` + vettedAnswer("p", 2) + `]}`),
			`participant "p" on synchronizer "sync::1" came twice`},
		"cut off": {answer(`{"vettedPackages":[` + vettedAnswer("p", 1)), "the answer was cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathVettingList: test.list})
			list, err := newClient(t, f, with35, anyParty).ListVettedPackages(t.Context(), VettingFilter{})
			require.ErrorContains(t, retryable(t, err), test.want)
			require.Nil(t, list)
			require.Less(t, len(f.requests()), 9)
		})
	}

	// A page without entries is the end, whatever token it has.
	f := newFake(t, map[string]http.HandlerFunc{pathVettingList: answer(`{"vettedPackages":[],"nextPageToken":"x"}`)})
	list, err := newClient(t, f, with35, anyParty).ListVettedPackages(t.Context(), VettingFilter{})
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestVettingUpdatesThatGoWrong(t *testing.T) {
	t.Parallel()
	good := `{"newVettedPackages":` + vettedAnswer("p", 1) + `}`
	for name, test := range map[string]struct {
		update http.HandlerFunc
		check  func(t *testing.T, err error)
	}{
		"another synchronizer": {answer(strings.Replace(good, "sync::1", "sync::2", 1)), func(t *testing.T, err error) {
			require.ErrorContains(t, retryable(t, err), `the answer is of another synchronizer, "sync::2"`)
		}},
		"cut off": {answer(good[:40]), func(t *testing.T, err error) {
			require.ErrorContains(t, retryable(t, err), "was cut off after 40 bytes")
		}},
		"wrong types": {answer(strings.Replace(good, "[]", "[{}]", 1)), func(t *testing.T, err error) {
			var wrong *ledger.DecodeError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "newVettedPackages.packages[0].packageId", wrong.Field)
		}},
		"not an administrator": {cantonError(403, "NA", "no", ``), func(t *testing.T, err error) {
			require.Contains(t, problem(t, err), "participant admin")
		}},
		"away": {plain(503, "away"), func(t *testing.T, err error) { require.Equal(t, 503, retryable(t, err).Status) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathVettingUpdate: test.update})
			past, now, err := newClient(t, f, with35, anyParty).UpdateVettedPackages(t.Context(),
				VettingRequest{Changes: []VettingChange{{}}, SynchronizerID: "sync::1"})
			require.Error(t, err)
			test.check(t, err)
			require.Nil(t, past)
			require.Zero(t, now)
			for _, sent := range f.requests() {
				require.NotEqual(t, pathVettingOld, sent.path, "the change is not sent a second time")
			}
		})
	}
}
