package participant

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

var (
	anyEvent  = &EventFormat{FiltersForAnyParty: &Filters{}}
	anyUpdate = &UpdateFormat{IncludeTransactions: &TransactionFormat{EventFormat: *anyEvent, TransactionShape: ShapeACSDelta}}
	anyFilter = &TransactionFilter{FiltersForAnyParty: &Filters{}}
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

func TestUpdatesRequestsThatBreakARule(t *testing.T) {
	t.Parallel()
	with := func(filters ...CumulativeFilter) *Filters { return &Filters{Cumulative: filters} }
	inFormat := func(event *EventFormat) UpdatesRequest {
		return UpdatesRequest{UpdateFormat: &UpdateFormat{IncludeReassignments: event}}
	}
	const at, both = " (interface.md, endpoint 2)", "updateFormat.includeReassignments "
	for _, row := range []struct {
		name    string
		request UpdatesRequest
		want    string
	}{
		{"begin negative", UpdatesRequest{BeginExclusive: -1, UpdateFormat: anyUpdate}, "beginExclusive must not be negative, and is -1" + at},
		{"end negative", UpdatesRequest{EndInclusive: new(ledger.Offset(-2)), UpdateFormat: anyUpdate}, "endInclusive must not be negative, and is -2" + at},
		{"end below begin", UpdatesRequest{BeginExclusive: 9, EndInclusive: new(ledger.Offset(8)), UpdateFormat: anyUpdate},
			"endInclusive must not lie below beginExclusive, which is 9, and is 8" + at},
		{"end zero below begin", UpdatesRequest{BeginExclusive: 9, EndInclusive: new(ledger.Offset), UpdateFormat: anyUpdate},
			"endInclusive must not lie below beginExclusive, which is 9, and is 0" + at},
		{"descending without end", UpdatesRequest{DescendingOrder: true, UpdateFormat: anyUpdate}, "descendingOrder must not be selected without endInclusive" + at},
		{"format and filter", UpdatesRequest{UpdateFormat: anyUpdate, Filter: anyFilter}, "updateFormat must be unset where filter is set" + at},
		{"format and verbose", UpdatesRequest{UpdateFormat: anyUpdate, Verbose: new(true)}, "updateFormat must be unset where verbose is set" + at},
		{"format and not verbose", UpdatesRequest{UpdateFormat: anyUpdate, Verbose: new(false)}, "updateFormat must be unset where verbose is set" + at},
		{"neither format nor filter", UpdatesRequest{}, "updateFormat must be set where filter is not" + at},
		{"verbose alone", UpdatesRequest{Verbose: new(true)}, "updateFormat must be set where filter is not" + at},
		{"trees with a format", UpdatesRequest{Trees: true, UpdateFormat: anyUpdate}, "updateFormat must be unset for the update-tree variant" + at},
		{"trees without a filter", UpdatesRequest{Trees: true}, "filter must be set for the update-tree variant" + at},
		{"trees of a template for any party", UpdatesRequest{Trees: true, Filter: &TransactionFilter{
			FiltersForAnyParty: with(CumulativeFilter{}, CumulativeFilter{Template: &TemplateFilter{TemplateID: "#a:B:C"}})}},
			"filter must have no template filters for the update-tree variant" + at},
		{"trees of a template for a party", UpdatesRequest{Trees: true, Filter: &TransactionFilter{
			FiltersByParty: map[string]Filters{"a": *with(CumulativeFilter{Template: &TemplateFilter{TemplateID: "#a:B:C"}})}}},
			"filter must have no template filters for the update-tree variant" + at},
		{"filter of nobody", UpdatesRequest{Filter: &TransactionFilter{}}, "filter must have filtersByParty or filtersForAnyParty, and both are empty" + at},
		{"format of nobody", inFormat(&EventFormat{FiltersByParty: map[string]Filters{}}),
			both + "must have filtersByParty or filtersForAnyParty, and both are empty" + at},
		{"transactions of nobody", UpdatesRequest{UpdateFormat: &UpdateFormat{IncludeTransactions: &TransactionFormat{TransactionShape: ShapeACSDelta}}},
			"updateFormat.includeTransactions.eventFormat must have filtersByParty or filtersForAnyParty, and both are empty" + at},
		{"no shape", UpdatesRequest{UpdateFormat: &UpdateFormat{IncludeTransactions: &TransactionFormat{EventFormat: *anyEvent}}},
			`updateFormat.includeTransactions.transactionShape must be TRANSACTION_SHAPE_ACS_DELTA or TRANSACTION_SHAPE_LEDGER_EFFECTS, and is ""` + at},
		{"another shape", UpdatesRequest{UpdateFormat: &UpdateFormat{IncludeTransactions: &TransactionFormat{EventFormat: *anyEvent, TransactionShape: "acs-delta"}}},
			`updateFormat.includeTransactions.transactionShape must be TRANSACTION_SHAPE_ACS_DELTA or TRANSACTION_SHAPE_LEDGER_EFFECTS, and is "acs-delta"` + at},
		{"empty party", inFormat(&EventFormat{FiltersByParty: map[string]Filters{"": {}}}), both[:len(both)-1] + ".filtersByParty must not name an empty party" + at},
		{"party not UTF-8", inFormat(&EventFormat{FiltersByParty: map[string]Filters{"a\xff": {}}}),
			both[:len(both)-1] + `.filtersByParty must name parties in UTF-8 text, and one is "a\xff"` + at},
		{"two variants", inFormat(&EventFormat{FiltersForAnyParty: with(CumulativeFilter{}, CumulativeFilter{Wildcard: &WildcardFilter{}, Template: &TemplateFilter{TemplateID: "#a:B:C"}})}),
			both[:len(both)-1] + ".filtersForAnyParty.cumulative[1] must hold one variant, and holds 2" + at},
		{"template id empty", inFormat(&EventFormat{FiltersByParty: map[string]Filters{"a\nb": *with(CumulativeFilter{Template: &TemplateFilter{}})}}),
			both[:len(both)-1] + `.filtersByParty["a\nb"].cumulative[0] must be of the form package:Module:Entity, and is ""` + at},
		{"interface id of two parts", inFormat(&EventFormat{FiltersForAnyParty: with(CumulativeFilter{Interface: &InterfaceFilter{InterfaceID: "#a:B"}})}),
			both[:len(both)-1] + `.filtersForAnyParty.cumulative[0] must be of the form package:Module:Entity, and is "#a:B"` + at},
		{"interface id not UTF-8", inFormat(&EventFormat{FiltersForAnyParty: with(CumulativeFilter{Interface: &InterfaceFilter{InterfaceID: "#a:B:\xff"}})}),
			both[:len(both)-1] + `.filtersForAnyParty.cumulative[0] must be UTF-8 text, and is "#a:B:\xff"` + at},
		{"topology party empty", UpdatesRequest{UpdateFormat: &UpdateFormat{IncludeTopologyEvents: &TopologyFormat{
			IncludeParticipantAuthorizationEvents: &ParticipantAuthorizationFormat{Parties: []string{"a", ""}}}}},
			"updateFormat.includeTopologyEvents.includeParticipantAuthorizationEvents.parties[1] must not be empty" + at},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			list, err := updatesOf(t, unreachable(t), row.request, ListOptions{})
			requireRefused(t, err, row.want)
			require.Empty(t, list)
		})
	}
}

func TestSnapshotRequestsThatBreakARule(t *testing.T) {
	t.Parallel()
	const at = " (interface.md, endpoint 1)"
	for _, row := range []struct {
		name    string
		request SnapshotRequest
		want    string
	}{
		{"offset negative", SnapshotRequest{ActiveAtOffset: math.MinInt64, EventFormat: anyEvent},
			"activeAtOffset must not be negative, and is -9223372036854775808" + at},
		{"format and filter", SnapshotRequest{EventFormat: anyEvent, Filter: anyFilter}, "eventFormat must be unset where filter is set" + at},
		{"format and verbose", SnapshotRequest{EventFormat: anyEvent, Verbose: new(false)}, "eventFormat must be unset where verbose is set" + at},
		{"neither", SnapshotRequest{ActiveAtOffset: 3}, "eventFormat must be set where filter is not" + at},
		{"nobody", SnapshotRequest{EventFormat: &EventFormat{Verbose: true}},
			"eventFormat must have filtersByParty or filtersForAnyParty, and both are empty" + at},
		{"filter of nobody", SnapshotRequest{Filter: &TransactionFilter{}, Verbose: new(true)},
			"filter must have filtersByParty or filtersForAnyParty, and both are empty" + at},
		{"token not UTF-8", SnapshotRequest{EventFormat: anyEvent, StreamContinuationToken: "\xff"},
			`streamContinuationToken must be UTF-8 text, and is "\xff"` + at},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			entries, err := contractsOf(t, unreachable(t), row.request, ListOptions{})
			requireRefused(t, err, row.want)
			require.Empty(t, entries)
		})
	}
}

func TestListOptionsThatBreakARule(t *testing.T) {
	t.Parallel()
	c := unreachable(t)
	for _, row := range []struct {
		opts ListOptions
		want string
	}{
		{ListOptions{Limit: -1}, `limit must not be negative, and is -1 (interface.md, "Limits")`},
		{ListOptions{StreamIdleTimeout: -time.Second}, `stream_idle_timeout_ms must not be negative, and is -1s (interface.md, "Limits")`},
	} {
		_, err := updatesOf(t, c, UpdatesRequest{UpdateFormat: anyUpdate}, row.opts)
		requireRefused(t, err, row.want)
		_, err = contractsOf(t, c, SnapshotRequest{EventFormat: anyEvent}, row.opts)
		requireRefused(t, err, row.want)
	}
}

func TestListOptionsAsTheyAreSent(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		opts ListOptions
		want string
	}{
		{ListOptions{}, ""},
		{ListOptions{Limit: math.MaxInt64, StreamIdleTimeout: math.MaxInt64}, "limit=9223372036854775807&stream_idle_timeout_ms=9223372036855"},
		{ListOptions{Limit: 1, StreamIdleTimeout: 1}, "limit=1&stream_idle_timeout_ms=1"},
		{ListOptions{StreamIdleTimeout: 1500 * time.Millisecond}, "stream_idle_timeout_ms=1500"},
	} {
		require.NoError(t, row.opts.check())
		require.Equal(t, row.want, row.opts.query().Encode())
	}
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
	for _, row := range []struct {
		id     string
		format UpdateFormat
		want   string
	}{
		{"", *anyUpdate, "updateId must not be empty (interface.md, endpoint 5)"},
		{"\xff", *anyUpdate, `updateId must be UTF-8 text, and is "\xff" (interface.md, endpoint 5)`},
		{"u", UpdateFormat{IncludeReassignments: &EventFormat{}},
			"updateFormat.includeReassignments must have filtersByParty or filtersForAnyParty, and both are empty (interface.md, endpoint 5)"},
	} {
		update, raw, err := c.UpdateByID(t.Context(), row.id, row.format)
		requireRefused(t, err, row.want)
		require.Zero(t, update)
		require.Nil(t, raw)
	}
	_, _, err := c.UpdateOfScope(t.Context(), "")
	requireRefused(t, err, "updateId must not be empty (interface.md, endpoint 5)")
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
