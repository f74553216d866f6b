package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const updateVettingPath = "/v2/package-vetting/update"

// vettingTest is a server and a way to change what is vetted on the first of its
// ledger's synchronizers.
type vettingTest struct {
	*client
	l      *Ledger
	global string
}

func newVettingTest(t *testing.T, opts ServerOptions) *vettingTest {
	t.Helper()
	l := NewLedger(Options{Seed: 3})
	return &vettingTest{client: serve(t, l, opts), l: l, global: l.Synchronizers()[0]}
}

// change sends changes, and other members of the request.
func (v *vettingTest) change(changes string, rest ...string) answer {
	v.t.Helper()
	return v.post(updateVettingPath, `{"changes":[%s],"synchronizerId":%q%s}`, changes, v.global, strings.Join(append([]string{""}, rest...), ","))
}

func (v *vettingTest) state() Vetting { return v.l.Vetting()[0] }

func vet(refs ...string) string {
	return `{"operation":{"Vet":{"value":{"packages":[` + strings.Join(refs, ",") + `]}}}}`
}

func vetWithin(from, until string, refs ...string) string {
	return fmt.Sprintf(`{"operation":{"Vet":{"value":{"packages":[%s],"newValidFromInclusive":%s,"newValidUntilExclusive":%s}}}}`,
		strings.Join(refs, ","), from, until)
}

func unvet(refs ...string) string {
	return `{"operation":{"Unvet":{"value":{"packages":[` + strings.Join(refs, ",") + `]}}}}`
}

func byID(name string) string { return fmt.Sprintf(`{"packageId":%q}`, packageID(name)) }

func byName(name, version string) string {
	return fmt.Sprintf(`{"packageName":%q,"packageVersion":%q}`, name, version)
}

const (
	dryRun            = `"dryRun":true`
	allowIncompatible = `"updateVettedPackagesForceFlags":["UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_VET_INCOMPATIBLE_UPGRADES"]`
	allowUnvetted     = `"updateVettedPackagesForceFlags":["UPDATE_VETTED_PACKAGES_FORCE_FLAG_UNSPECIFIED","UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_UNVETTED_DEPENDENCIES"]`
)

// vetted returns the packages of a served state by id.
func vetted(state any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, raw := range state.(map[string]any)["packages"].([]any) {
		p := raw.(map[string]any)
		out[p["packageId"].(string)] = p
	}
	return out
}

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

func TestVetAndUnvet(t *testing.T) {
	t.Parallel()
	v := newVettingTest(t, ServerOptions{})
	before := v.state()
	got := v.change(vet(byID("audit-1"), byName("audit-api", ""))).object()
	past, now := got["pastVettedPackages"].(map[string]any), got["newVettedPackages"].(map[string]any)
	require.Equal(t, v.global, now["synchronizerId"])
	require.Equal(t, v.l.ParticipantID(), now["participantId"])
	require.EqualValues(t, before.Serial, past["topologySerial"])
	require.EqualValues(t, before.Serial+1, now["topologySerial"])
	require.Len(t, vetted(past), len(before.Packages))
	require.Len(t, vetted(now), len(before.Packages)+2)
	require.Equal(t, map[string]any{
		"packageId": packageID("audit-1"), "packageName": "audit", "packageVersion": "1.0.0",
		"validFromInclusive": nil, "validUntilExclusive": nil,
	}, vetted(now)[packageID("audit-1")])
	require.Equal(t, map[string]any{
		"packageId": packageID("foreign-1"), "packageName": "", "packageVersion": "",
		"validFromInclusive": nil, "validUntilExclusive": nil,
	}, vetted(now)[packageID("foreign-1")], "a package that is not there has no name")
	require.Equal(t, "2026-01-01T00:00:00.000001Z", vetted(now)[packageID("trade-2")]["validFromInclusive"])
	require.Equal(t, "2031-01-01T00:00:00.500Z", vetted(now)[packageID("trade-2")]["validUntilExclusive"])
	require.Equal(t, before.Serial+1, v.state().Serial)

	// Unvetting takes all versions, and what is not there it passes over.
	now = v.change(unvet(byName("trade", ""), byName("nothing", ""), `{"packageId":"unheard-of"}`, byID("audit-1"))).object()["newVettedPackages"].(map[string]any)
	require.Len(t, vetted(now), len(before.Packages)-2+1)
	require.NotContains(t, vetted(now), packageID("trade-1"))
	require.NotContains(t, vetted(now), packageID("trade-2"))
	// All three parts of a reference.
	ref := fmt.Sprintf(`{"packageId":%q,"packageName":"trade","packageVersion":"1.0.0"}`, packageID("trade-1"))
	require.Contains(t, vetted(v.change(vet(ref)).object()["newVettedPackages"]), packageID("trade-1"))
	// Nothing of it happened on the other synchronizer.
	require.EqualValues(t, 2, v.l.Vetting()[2].Serial)
}

func TestBoundsOfVetting(t *testing.T) {
	t.Parallel()
	v := newVettingTest(t, ServerOptions{})
	bounds := func(a answer) []any {
		p := vetted(a.object()["newVettedPackages"])[packageID("audit-api-1")]
		return []any{p["validFromInclusive"], p["validUntilExclusive"]}
	}
	require.Equal(t, []any{"2027-01-01T00:00:00Z", nil}, bounds(v.change(vetWithin(`"2027-01-01T01:00:00+01:00"`, `null`, byID("audit-api-1")))))
	require.Equal(t, []any{nil, "2027-01-01T00:00:00.123456Z"}, bounds(v.change(vetWithin(`null`, `"2027-01-01T00:00:00.123456999Z"`, byID("audit-api-1")))))
	require.Equal(t, []any{nil, nil}, bounds(v.change(vet(byID("audit-api-1")))))
	serial := v.state().Serial
	require.Equal(t, "FieldNotSet(changes)", v.change(``).refused(400, "PROTO_DESERIALIZATION_FAILURE")["reason"])
	for _, rest := range []string{`"dryRun":false`, dryRun} {
		v.change(vetWithin(`"2027-01-01T00:00:00Z"`, `"2027-01-01T00:00:00Z"`, byID("audit-api-1")), rest).refused(400, "TOPOLOGY_INVALID_MAPPING")
	}
	v.change(vetWithin(`"0000-01-01T00:00:00Z"`, `null`, byID("audit-api-1"))).refused(400, "PROTO_DESERIALIZATION_FAILURE")
	require.Equal(t, serial, v.state().Serial)
	from := v.change(vetWithin(`"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999Z"`, byID("audit-api-1")))
	require.Equal(t, []any{"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"}, bounds(from))
}

func TestChangesOfVettingGoInOrder(t *testing.T) {
	t.Parallel()
	v := newVettingTest(t, ServerOptions{})
	now := vetted(v.change(unvet(byID("audit-api-1")) + "," + vet(byID("audit-api-1"))).object()["newVettedPackages"])
	require.Contains(t, now, packageID("audit-api-1"))
	now = vetted(v.change(vet(byID("registry-1"), byID("audit-1")) + "," + unvet(byID("audit-1"), byName("registry", ""))).object()["newVettedPackages"])
	require.NotContains(t, now, packageID("registry-1"))
	require.NotContains(t, now, packageID("audit-1"))
	now = vetted(v.change(vetWithin(`"2027-01-01T00:00:00Z"`, `null`, byID("registry-1")) + "," + vet(byID("registry-1"))).object()["newVettedPackages"])
	require.Nil(t, now[packageID("registry-1")]["validFromInclusive"])
}

// A change of nothing makes no topology transaction; but where nothing was ever
// vetted it makes the first one.
func TestSerialsOfVetting(t *testing.T) {
	t.Parallel()
	v := newVettingTest(t, ServerOptions{})
	before := v.state()
	serials := func(a answer) []any {
		o := a.object()
		return []any{o["pastVettedPackages"].(map[string]any)["topologySerial"], o["newVettedPackages"].(map[string]any)["topologySerial"]}
	}
	for _, nothing := range []string{unvet(), vet(), vet(byID("registry-1")), unvet(byID("audit-1")), vet(byID("audit-1")) + "," + unvet(byID("audit-1"))} {
		for _, rest := range []string{dryRun, `"dryRun":false`} {
			require.Equal(t, []any{7.0, 7.0}, serials(v.change(nothing, rest)), nothing)
		}
	}
	expect := func(serial string) answer {
		return v.change(vet(byID("audit-api-1")), dryRun, `"expectedTopologySerial":{"serial":`+serial+`}`)
	}
	for _, good := range []string{`{"Prior":{"value":7}}`, `{"Empty":{}}`, `{}`, `null`} {
		require.Equal(t, []any{7.0, 8.0}, serials(expect(good)), good)
	}
	require.Equal(t, "Some(7)", expect(`{"Prior":{"value":6}}`).refused(400, "TOPOLOGY_SERIAL_MISMATCH")["actual"])
	require.Equal(t, "None", expect(`{"NoPrior":{}}`).refused(400, "TOPOLOGY_SERIAL_MISMATCH")["expected"])
	for _, bad := range []string{`{"Prior":{"value":0}}`, `{"Prior":{"value":-1}}`, `{"Prior":{}}`} {
		expect(bad).refused(400, "PROTO_DESERIALIZATION_FAILURE")
	}
	require.Equal(t, before, v.l.Vetting()[0], "dry runs and refused ones leave everything as it was")
	// It moves between preview and apply.
	preview := serials(v.change(vet(byID("audit-api-1")), dryRun))
	require.Equal(t, []any{7.0, 8.0}, preview)
	moved := before
	moved.Serial++
	v.l.SetVetting(moved)
	v.change(vet(byID("audit-api-1")), `"expectedTopologySerial":{"serial":{"Prior":{"value":7}}}`).refused(400, "TOPOLOGY_SERIAL_MISMATCH")
	require.Equal(t, []any{8.0, 9.0}, serials(v.change(vet(byID("audit-api-1")), `"expectedTopologySerial":{"serial":{"Prior":{"value":8}}}`)))

	// Where nothing was ever vetted.
	v.l.SetVetting(Vetting{Synchronizer: v.global, Participant: v.l.ParticipantID()})
	require.Len(t, v.l.Vetting(), 3)
	require.Equal(t, "None", expect(`{"Prior":{"value":1}}`).refused(400, "TOPOLOGY_SERIAL_MISMATCH")["actual"])
	for _, rest := range []string{dryRun, `"expectedTopologySerial":{"serial":{"NoPrior":{}}}`} {
		got := v.change(unvet(), rest).object()
		require.Nil(t, got["pastVettedPackages"])
		require.EqualValues(t, 1, got["newVettedPackages"].(map[string]any)["topologySerial"])
		require.Equal(t, []any{}, got["newVettedPackages"].(map[string]any)["packages"])
	}
	require.Equal(t, []any{1.0, 1.0}, serials(v.change(unvet())))
}

func TestSynchronizerOfVetting(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 3})
	ids := l.Synchronizers()
	change := func(disconnected []string, synchronizer string) answer {
		c := serve(t, l, ServerOptions{Disconnected: disconnected})
		return c.post(updateVettingPath, `{"changes":[%s],"dryRun":true,"synchronizerId":%s}`, unvet(), synchronizer)
	}
	require.Equal(t, "List("+ids[0]+", "+ids[1]+")", change(nil, `""`).refused(400, "PACKAGE_SERVICE_CANNOT_AUTODETECT_SYNCHRONIZER")["synchronizers"])
	require.Contains(t, string(change(ids, `""`).body), "no synchronizers currently connected")
	change(ids, `""`).refused(400, "PACKAGE_SERVICE_CANNOT_AUTODETECT_SYNCHRONIZER")
	require.Equal(t, ids[1], change(ids[:1], `""`).object()["newVettedPackages"].(map[string]any)["synchronizerId"])
	require.Equal(t, ids[1], change(nil, `"`+ids[1]+`"`).object()["newVettedPackages"].(map[string]any)["synchronizerId"])
	for _, unknown := range []string{ids[0], "other::1220ab"} {
		require.Equal(t, unknown, change(ids[:1], `"`+unknown+`"`).refused(400, "PACKAGE_SERVICE_NOT_CONNECTED_TO_SYNCHRONIZER")["synchronizerId"])
	}
	change(nil, `"global"`).refused(400, "PROTO_DESERIALIZATION_FAILURE")
	connected := serve(t, l, ServerOptions{Disconnected: ids[:1]}).do(http.MethodGet, "/v2/state/connected-synchronizers", "").object()
	require.Len(t, connected["connectedSynchronizers"], 1)
}

// Every way to be refused by the rules about packages, as dry run and in earnest, and
// the force flag that lets it pass.
func TestRulesOfVetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, changes, code, key string
		status                   int
		names                    []string // packages that the context names
		force                    string
	}{
		{name: "no such id", changes: vet(`{"packageId":"00ff"}`), status: 404, code: "UNRESOLVED_VETTING_REFERENCE", key: "reason"},
		{name: "not uploaded", changes: vet(byID("foreign-2")), status: 404, code: "UNRESOLVED_VETTING_REFERENCE", key: "reason", names: []string{"foreign-2"}},
		{name: "no such name", changes: vet(byName("nothing", "")), status: 404, code: "UNRESOLVED_VETTING_REFERENCE", key: "reference"},
		{name: "no such version", changes: vet(byName("bank", "9.0.0")), status: 404, code: "UNRESOLVED_VETTING_REFERENCE", key: "reference"},
		{
			name: "another name", changes: vet(fmt.Sprintf(`{"packageId":%q,"packageName":"trade","packageVersion":"1.9.0"}`, packageID("bank-1"))),
			status: 404, code: "UNRESOLVED_VETTING_REFERENCE", key: "reference",
		},
		{
			name: "several versions", changes: vet(byName("bank", "")), status: 400, code: "AMBIGUOUS_VETTING_REFERENCE",
			key: "matchingPackages", names: []string{"bank-1", "bank-2", "bank-3"},
		},
		{
			name: "two of one version", changes: vet(byName("trade", "1.1.0")), status: 400, code: "AMBIGUOUS_VETTING_REFERENCE",
			key: "matchingPackages", names: []string{"trade-2", "trade-2-fork"},
		},
		{
			name: "dependency not there", changes: vet(byID("orphan-1")), status: 404, code: "TOPOLOGY_CANNOT_VET_DUE_TO_MISSING_PACKAGES",
			key: "packages", names: []string{"lost-1"},
		},
		{
			name: "dependency not vetted", changes: vet(byID("audit-1")), status: 400, code: "TOPOLOGY_DEPENDENCIES_NOT_VETTED",
			key: "unvetted", names: []string{"audit-api-1"}, force: allowUnvetted,
		},
		{
			name: "dependency unvetted", changes: unvet(byID("bank-api-1")), status: 400, code: "TOPOLOGY_DEPENDENCIES_NOT_VETTED",
			key: "unvetted", names: []string{"bank-api-1"}, force: allowUnvetted,
		},
		{
			name: "dependency unvetted at once", changes: vet(byID("audit-1"), byID("audit-api-1")) + "," + unvet(byID("audit-api-1")), status: 400,
			code: "TOPOLOGY_DEPENDENCIES_NOT_VETTED", key: "unvetted", names: []string{"audit-api-1"}, force: allowUnvetted,
		},
		{
			name: "no valid upgrade", changes: vet(byID("bank-3")), status: 400, code: "NOT_VALID_UPGRADE_PACKAGE",
			key: "oldPackage", names: []string{"bank-2"}, force: allowIncompatible,
		},
		{
			name: "known version", changes: vet(byID("trade-2-fork")), status: 400, code: "KNOWN_PACKAGE_VERSION",
			key: "secondPackage", force: allowIncompatible,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := newVettingTest(t, ServerOptions{})
			before := v.l.Vetting()
			for _, rest := range []string{dryRun, `"dryRun":false`} {
				context := v.change(c.changes, rest).refused(c.status, c.code)
				require.NotEmpty(t, context[c.key])
				for _, name := range c.names {
					require.Contains(t, context[c.key], packageID(name))
				}
			}
			for _, other := range []string{allowIncompatible, allowUnvetted} {
				if other != c.force {
					v.change(c.changes, other).refused(c.status, c.code)
				}
			}
			require.Equal(t, before, v.l.Vetting())
			if c.force != "" {
				require.EqualValues(t, 8, v.change(c.changes, c.force).object()["newVettedPackages"].(map[string]any)["topologySerial"])
			}
		})
	}
	// The rules of upgrades are not for utility packages, and look at what is vetted next, not at the way there.
	v := newVettingTest(t, ServerOptions{})
	require.Contains(t, vetted(v.change(unvet(byName("bank", "")) + "," + vet(byID("bank-3"))).object()["newVettedPackages"]), packageID("bank-3"))
	require.Contains(t, vetted(v.change(unvet(byID("trade-2")) + "," + vet(byID("trade-2-fork"))).object()["newVettedPackages"]), packageID("trade-2-fork"))
	require.Contains(t, vetted(v.change(vet(byID("daml-prim-2"))).object()["newVettedPackages"]), packageID("daml-prim-2"))
}

func TestBadVettingRequests(t *testing.T) {
	t.Parallel()
	v := newVettingTest(t, ServerOptions{})
	before := v.l.Vetting()
	for body, want := range map[string]string{
		`{}`:               "FieldNotSet(changes)",
		`{"changes":[]}`:   "FieldNotSet(changes)",
		`{"changes":[{}]}`: "FieldNotSet(operation)",
		`{"changes":[{"operation":{"Empty":{}}}]}`:                                              "FieldNotSet(operation)",
		`{"changes":[` + vet(`{}`) + `]}`:                                                       "package_id must be set",
		`{"changes":[` + vet(`{"packageVersion":"1.0.0"}`) + `]}`:                               "package_id must be set",
		`{"changes":[` + unvet(`{"packageId":"00","packageName":"bank"}`) + `]}`:                "package_id must be set",
		`{"changes":[` + unvet(`{"packageId":"it's \u0000\"\n"}`) + `]}`:                        "package_id",
		`{"changes":[` + vet(`{"packageId":"`+strings.Repeat("0", 65)+`"}`) + `]}`:              "package_id",
		`{"changes":[` + vet(`{"packageName":"bank api"}`) + `]}`:                               "package_name",
		`{"changes":[` + vet(`{"packageName":"bank","packageVersion":"01.0"}`) + `]}`:           "package_version",
		`{"changes":[` + vet(`{"packageName":"bank","packageVersion":"1..0"}`) + `]}`:           "package_version",
		`{"changes":[` + vet() + `],"synchronizerId":"'; drop table"}`:                          "synchronizer_id",
		`{"changes":[` + vet() + `],"expectedTopologySerial":{"serial":{"Prior":{"value":0}}}}`: "expected_topology_serial",
	} {
		require.Contains(t, v.do(http.MethodPost, updateVettingPath, body).refused(400, "PROTO_DESERIALIZATION_FAILURE")["reason"], want, body)
	}
	for _, body := range []string{
		``, `[]`, `{"changes":{}}`, `{"changes":[1]}`, `{"changes":[{"operation":{"Revoke":{}}}]}`, `{"changes":[{"operation":{"Vet":{},"Unvet":{}}}]}`,
		`{"changes":[` + vet(`{"packageId":7}`) + `]}`, `{"changes":[` + vetWithin(`"yesterday"`, `null`) + `]}`, `{"changes":[],"dryRun":"yes"}`,
		`{"changes":[],"expectedTopologySerial":{"serial":{"Prior":{"value":3000000000}}}}`, `{"changes":[],"expectedTopologySerial":{"serial":{"Later":{}}}}`,
		`{"changes":[],"updateVettedPackagesForceFlags":["FORCE"]}`, `{"changes":[],"synchronizerId":[]}`,
	} {
		a := v.do(http.MethodPost, updateVettingPath, body)
		require.Equal(t, 400, a.status, body)
		require.Contains(t, a.kind, "text/plain", body)
	}
	require.Equal(t, before, v.l.Vetting())
}

// What is vetted is the ledger's: all its servers show it, and no change is lost.
func TestConcurrentVetting(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{})
	global := l.Synchronizers()[0]
	var clients sync.WaitGroup
	statuses := make(chan int, 40)
	for _, version := range []string{"3.4", "3.6"} {
		c := serve(t, l, ServerOptions{Version: version})
		for range 4 {
			clients.Go(func() {
				for i := range 5 {
					changes := vetWithin(fmt.Sprintf(`"2027-01-01T00:00:00.%03dZ"`, i), "null", byID("audit-api-1"))
					statuses <- c.post(updateVettingPath, `{"changes":[%s,%s],"synchronizerId":%q}`, unvet(byID("audit-api-1")), changes, global).status
					l.Vetting()
				}
			})
		}
	}
	clients.Wait()
	close(statuses)
	for status := range statuses {
		require.Equal(t, http.StatusOK, status)
	}
	state := l.Vetting()[0]
	require.Greater(t, state.Serial, int32(7))
	require.LessOrEqual(t, state.Serial, int32(7+40))
	require.Equal(t, time.Date(2027, 1, 1, 0, 0, 0, 4_000_000, time.UTC), *state.Packages[len(state.Packages)-1].ValidFrom)
}

func TestReplayHasNoPackages(t *testing.T) {
	t.Parallel()
	r, err := LoadReplay(writeFile(t, "u.json", `[{"update":{"Transaction":{"value":{"offset":3,"synchronizerId":"one::1220","recordTime":"2026-01-01T00:00:00Z"}}}}]`))
	require.NoError(t, err)
	c := serve(t, r, ServerOptions{})
	require.Equal(t, map[string]any{"vettedPackages": []any{}, "nextPageToken": ""}, c.post("/v2/package-vetting/list", `{}`).object())
	c.post(updateVettingPath, `{"changes":[%s]}`, vet(byID("bank-1"))).refused(404, "UNRESOLVED_VETTING_REFERENCE")
	got := c.post(updateVettingPath, `{"changes":[%s],"dryRun":true}`, unvet(byID("bank-1"))).object()
	require.Nil(t, got["pastVettedPackages"])
	require.Equal(t, "one::1220", got["newVettedPackages"].(map[string]any)["synchronizerId"])
}
