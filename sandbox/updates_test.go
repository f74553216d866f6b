package sandbox

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const anyParty = `{"filtersForAnyParty":{"cumulative":[]}}`

var allUpdates = Scope{Shape: LedgerEffects}.UpdateFormat()

func TestListLimits(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 60)
	c := serve(t, l, ServerOptions{ListLimit: 20})
	read := func(query string, end int64) answer {
		return c.post("/v2/updates"+query, `{"beginExclusive":0,"endInclusive":%d,"updateFormat":%s}`, end, allUpdates)
	}
	require.Len(t, read("", l.Offset(19)).list(), 20)
	require.Empty(t, read("", l.Offset(20)).refused(413, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED"))
	require.Len(t, read("?limit=21", l.Offset(19)).list(), 20)
	read("?limit=21", l.Offset(20)).refused(413, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED")
	require.Len(t, read("?limit=20", l.End()).list(), 20, "a limit that the server allows cuts silently")
	require.Len(t, read("?limit=3", l.End()).list(), 3)
	require.Empty(t, read("?limit=0", l.End()).list())
	bad := read("?limit=x", l.End())
	require.Equal(t, 400, bad.status)
	require.Contains(t, bad.kind, "text/plain")

	ignores := serve(t, l, ServerOptions{ListLimit: 20, IgnoreLargeLimit: true})
	for _, query := range []string{"", "?limit=1000"} {
		require.Len(t, ignores.post("/v2/updates"+query, `{"endInclusive":%d,"updateFormat":%s}`, l.End(), allUpdates).list(), 20)
	}
}

// A bounded read is complete if and only if fewer elements came than its limit.
func TestBoundedReadsAddUpToTheWhole(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 130)
	c := serve(t, l, ServerOptions{})
	begin, total := int64(0), 0
	for {
		list := c.post("/v2/updates/flats?limit=40", `{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, begin, l.End(), allUpdates).list()
		for _, u := range list {
			offset := offsetOf(t, u)
			require.Greater(t, offset, begin)
			begin = offset
		}
		total += len(list)
		if len(list) < 40 {
			break
		}
	}
	require.Equal(t, len(l.Truth(Scope{Shape: LedgerEffects}, l.End())["updates"]), total)
}

func TestIdleTimeoutCanCutABoundedRead(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 50)
	c := serve(t, l, ServerOptions{IdleCut: 7})
	body := fmt.Sprintf(`{"endInclusive":%d,"updateFormat":%s}`, l.End(), allUpdates)
	require.Len(t, c.post("/v2/updates?limit=30&stream_idle_timeout_ms=100", "%s", body).list(), 7)
	require.Len(t, c.post("/v2/updates?limit=30", "%s", body).list(), 30)
}

func TestDescendingOrder(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 50)
	c := serve(t, l, ServerOptions{})
	list := c.post("/v2/updates?limit=10", `{"endInclusive":%d,"descendingOrder":true,"updateFormat":%s}`, l.End(), allUpdates).list()
	require.Equal(t, l.Offset(49), offsetOf(t, list[0]))
	require.Greater(t, offsetOf(t, list[8]), offsetOf(t, list[9]))
	c.post("/v2/updates", `{"descendingOrder":true,"updateFormat":%s}`, allUpdates).refused(400, "DESCENDING_ORDER_MISSING_END")
}

func TestOffsetErrors(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 50)
	require.NoError(t, l.Prune(l.Offset(10)))
	c := serve(t, l, ServerOptions{})
	end := l.End()
	read := func(begin, end int64) answer {
		return c.post("/v2/updates", `{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, begin, end, allUpdates)
	}
	read(end+1, end+2).refused(400, "OFFSET_AFTER_LEDGER_END")
	read(end, end+1).refused(400, "OFFSET_AFTER_LEDGER_END")
	c.post("/v2/updates", `{"beginExclusive":%d,"updateFormat":%s}`, end+1, allUpdates).refused(400, "OFFSET_AFTER_LEDGER_END")
	read(30, 29).refused(400, "OFFSET_OUT_OF_RANGE")
	require.Empty(t, read(30, 30).list())
	read(-1, 29).refused(400, "NEGATIVE_OFFSET")
	read(0, 0).refused(400, "NON_POSITIVE_OFFSET")
	context := read(l.Offset(10)-1, end).refused(400, "PARTICIPANT_PRUNED_DATA_ACCESSED")
	require.Equal(t, fmt.Sprint(l.Offset(10)), context["earliest_offset"])
	require.Len(t, read(l.Offset(10), end).list(), 39)
	require.JSONEq(t, fmt.Sprintf(`{"participantPrunedUpToInclusive":%d,"allDivulgedContractsPrunedUpToInclusive":%[1]d}`, l.Offset(10)),
		string(c.do(http.MethodGet, "/v2/state/latest-pruned-offsets", "").body))
}

func TestOpenEndedReadEndsIdle(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 30)
	c := serve(t, l, ServerOptions{IdleTimeout: 20 * time.Millisecond, NoCheckpoints: true})
	list := c.post("/v2/updates", `{"beginExclusive":%d,"updateFormat":%s}`, l.Offset(9), allUpdates).list()
	require.Len(t, list, 20)
	require.Empty(t, c.post("/v2/updates", `{"beginExclusive":%d,"updateFormat":%s}`, l.End(), allUpdates).list())
}

func TestOpenEndedReadReturnsAtItsLimit(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 30)
	waiting := make(chan struct{})
	c := serve(t, l, ServerOptions{NoCheckpoints: true, Fault: func(*http.Request) *Fault { close(waiting); return nil }})
	begin := l.End()
	done := make(chan answer)
	go func() {
		done <- c.post("/v2/updates?limit=2&stream_idle_timeout_ms=15000", `{"beginExclusive":%d,"updateFormat":%s}`, begin, allUpdates)
	}()
	<-waiting
	l.Grow(1)
	l.Grow(5)
	require.Len(t, (<-done).list(), 2)
}

func TestCheckpointsOnlyOnOpenEndedReads(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 30)
	c := serve(t, l, ServerOptions{CheckpointInterval: time.Millisecond})
	list := c.post("/v2/updates?limit=2", `{"beginExclusive":%d,"updateFormat":%s}`, l.End(), allUpdates).list()
	var times []string
	for _, u := range list {
		kind, value := updateOf(t, u)
		require.Equal(t, "OffsetCheckpoint", kind)
		require.EqualValues(t, l.End(), value["offset"])
		list := value["synchronizerTimes"].([]any)
		require.Len(t, list, 2)
		times = append(times, list[0].(map[string]any)["recordTime"].(string))
	}
	require.Greater(t, times[1], times[0], "an offset is repeated with newer times")
	bounded := c.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), allUpdates)
	require.NotContains(t, string(bounded.body), "OffsetCheckpoint")
}

// The last offset checkpoint comes before the first update of a read that begins there, however often it is read.
func TestTheLastCheckpointComesBeforeTheNextUpdate(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 30)
	c := serve(t, l, ServerOptions{CheckpointInterval: time.Hour})
	begin := l.End()
	read := func(limit int) (kinds []string) {
		for _, u := range c.post(fmt.Sprintf("/v2/updates?limit=%d", limit), `{"beginExclusive":%d,"updateFormat":%s}`, begin, allUpdates).list() {
			kind, value := updateOf(t, u)
			if kind == "OffsetCheckpoint" {
				require.EqualValues(t, begin, value["offset"])
			}
			kinds = append(kinds, kind)
		}
		return kinds
	}
	require.Equal(t, []string{"OffsetCheckpoint"}, read(1), "it is made, and all that comes")
	l.Grow(1)
	for range 3 {
		require.Equal(t, []string{"OffsetCheckpoint"}, read(1))
	}
	both := read(2)
	require.Len(t, both, 2)
	require.Equal(t, "OffsetCheckpoint", both[0])
	require.NotEqual(t, "OffsetCheckpoint", both[1])
	bounded := c.post("/v2/updates", `{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, begin, l.End(), allUpdates)
	require.Len(t, bounded.list(), 1)
	c = serve(t, l, ServerOptions{CheckpointInterval: time.Hour})
	c.post("/v2/updates?limit=1", `{"beginExclusive":%d,"updateFormat":%s}`, begin, allUpdates).list()
	require.NotEqual(t, []string{"OffsetCheckpoint"}, read(1), "the last one that was made stands elsewhere")
}

func TestSlowRequestIs503(t *testing.T) {
	t.Parallel()
	c := serve(t, grown(t, Options{}, 3), ServerOptions{RequestTimeout: 20 * time.Millisecond, NoCheckpoints: true})
	a := c.post("/v2/updates?stream_idle_timeout_ms=60000", `{"updateFormat":%s}`, allUpdates)
	require.Equal(t, 503, a.status)
	require.Contains(t, string(a.body), "not able to produce a timely response")
	require.Contains(t, a.kind, "text/plain")
}

func TestFormatsOfRequests(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 120)
	c := serve(t, l, ServerOptions{})
	read := func(rest string) answer {
		return c.post("/v2/updates", `{"endInclusive":%d,%s}`, l.Offset(119), rest)
	}
	read(`"updateFormat":{},"filter":`+anyParty).refused(400, "INVALID_ARGUMENT")
	read(`"updateFormat":{},"verbose":true`).refused(400, "INVALID_ARGUMENT")
	read(`"verbose":true`).refused(400, "INVALID_ARGUMENT")
	read(`"updateFormat":{"includeTransactions":{"eventFormat":{},"transactionShape":"TRANSACTION_SHAPE_ACS_DELTA"}}`).refused(400, "INVALID_ARGUMENT")
	read(`"updateFormat":{"includeTransactions":{"eventFormat":`+anyParty+`}}`).refused(400, "MISSING_FIELD")
	text := read(`"updateFormat":{"includeTransactions":{"eventFormat":` + anyParty + `,"transactionShape":"NONSENSE"}}`)
	require.Equal(t, 400, text.status)
	require.True(t, strings.HasPrefix(string(text.body), "Invalid value for: body ("))
	require.Empty(t, read(`"updateFormat":{}`).list())

	kinds := func(rest string) map[string]int {
		got := map[string]int{}
		for _, u := range read(rest).list() {
			kind, _ := updateOf(t, u)
			got[kind]++
		}
		return got
	}
	topology := kinds(`"updateFormat":{"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{}}}`)
	require.Equal(t, map[string]int{"TopologyTransaction": 2}, topology)
	moves := kinds(`"updateFormat":{"includeReassignments":` + anyParty + `}`)
	require.Len(t, moves, 1)
	require.Positive(t, moves["Reassignment"])
	legacy := kinds(`"filter":` + anyParty + `,"verbose":true`)
	require.Positive(t, legacy["Transaction"])
	require.Equal(t, moves["Reassignment"], legacy["Reassignment"])
	// So says interface.md, endpoint 2. Servers of releases 3.4 and 3.5 send no topology events for the deprecated form.
	require.Equal(t, topology["TopologyTransaction"], legacy["TopologyTransaction"])
	party := l.parties[0]
	ofParty := kinds(`"updateFormat":{"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{"parties":["` + party + `"]}}}`)
	require.Positive(t, ofParty["TopologyTransaction"])
	require.Less(t, ofParty["TopologyTransaction"], topology["TopologyTransaction"])
	named := kinds(`"filter":{"filtersByParty":{"` + party + `":{}}}`)
	require.Equal(t, ofParty["TopologyTransaction"], named["TopologyTransaction"], "of the parties that the filter names")
}

func TestFiltersOfRequests(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 100)
	request := func(filter string) string {
		return fmt.Sprintf(`{"endInclusive":%d,"updateFormat":{"includeTransactions":{"transactionShape":"TRANSACTION_SHAPE_ACS_DELTA","eventFormat":{"filtersForAnyParty":{"cumulative":[{"identifierFilter":%s}]}}}}}`, l.Offset(99), filter)
	}
	c := serve(t, l, ServerOptions{})
	for filter, code := range map[string]string{
		`{"TemplateFilter":{"value":{"templateId":"#none:Bank.Cash:Holding"}}}`:   "PACKAGE_NAMES_NOT_FOUND",
		`{"TemplateFilter":{"value":{"templateId":"#bank:Bank.Cash:None"}}}`:      "NO_TEMPLATES_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME",
		`{"InterfaceFilter":{"value":{"interfaceId":"#bank-api:Bank.Api:None"}}}`: "NO_INTERFACE_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME",
	} {
		c.post("/v2/updates", "%s", request(filter)).refused(404, code)
	}
	holding := kindOf(templateHolding, 1)
	byID := `{"TemplateFilter":{"value":{"templateId":"` + holding.id() + `"}}}`
	a := c.post("/v2/updates", "%s", request(byID))
	a.refused(400, "INVALID_FIELD")
	require.Contains(t, string(a.body), "Invalid field packageId: ")

	old := serve(t, l, ServerOptions{Version: "3.4"})
	for _, u := range old.post("/v2/updates", "%s", request(byID)).list() {
		_, value := updateOf(t, u)
		for _, event := range value["events"].([]any) {
			name, e := variant(t, event)
			require.Contains(t, e["templateId"], ":Bank.Cash:Holding")
			if name == "CreatedEvent" {
				require.Equal(t, holding.id(), e["templateId"])
				require.NotNil(t, e["createArgument"])
			}
		}
	}
	view := `{"InterfaceFilter":{"value":{"interfaceId":"` + InterfaceNames()[ifaceLockable] + `","includeInterfaceView":true}}}`
	created, implemented := 0, 0
	for _, u := range c.post("/v2/updates", "%s", request(view)).list() {
		_, value := updateOf(t, u)
		for _, event := range value["events"].([]any) {
			name, e := variant(t, event)
			require.Contains(t, e["templateId"], ":Bank.Cash:LockedHolding")
			if name == "ArchivedEvent" {
				require.Equal(t, []any{interfaces[ifaceLockable].id()}, e["implementedInterfaces"])
				implemented++
				continue
			}
			require.Nil(t, e["createArgument"], "an interface filter alone brings no argument")
			require.Len(t, e["interfaceViews"], 1)
			created++
		}
	}
	require.Positive(t, created)
	require.Positive(t, implemented)
}

func TestUpdatesPages(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 60)
	c := serve(t, l, ServerOptions{})
	page := func(rest string) map[string]any {
		return c.post("/v2/updates/get-updates-page", `{"updateFormat":%s%s}`, allUpdates, rest).object()
	}
	// Tailing: the token continues after the end.
	first := page(`,"maxPageSize":50`)
	require.Len(t, first["updates"], 50)
	require.EqualValues(t, 0, first["lowestPageOffsetExclusive"])
	require.EqualValues(t, l.Offset(49), first["highestPageOffsetInclusive"])
	second := page(`,"maxPageSize":50,"pageToken":"` + first["nextPageToken"].(string) + `"`)
	require.Len(t, second["updates"], 10)
	require.EqualValues(t, l.Offset(49), second["lowestPageOffsetExclusive"])
	require.EqualValues(t, l.End(), second["highestPageOffsetInclusive"])
	empty := page(`,"pageToken":"` + second["nextPageToken"].(string) + `"`)
	require.Empty(t, empty["updates"])
	l.Grow(2)
	require.Len(t, page(`,"pageToken":"` + empty["nextPageToken"].(string) + `"`)["updates"], 2)
	// Bounded: the last page has no token.
	bound := fmt.Sprintf(`,"beginOffsetExclusive":%d,"endOffsetInclusive":%d`, l.Offset(4), l.Offset(9))
	require.Nil(t, page(bound)["nextPageToken"])
	down := page(bound + `,"descendingOrder":true,"maxPageSize":3`)
	require.EqualValues(t, l.Offset(9), down["highestPageOffsetInclusive"])
	require.EqualValues(t, l.Offset(7)-1, down["lowestPageOffsetExclusive"])
	down = page(bound + `,"descendingOrder":true,"maxPageSize":3,"pageToken":"` + down["nextPageToken"].(string) + `"`)
	require.EqualValues(t, l.Offset(4), down["lowestPageOffsetExclusive"])
	require.Nil(t, down["nextPageToken"])
	// Tokens belong to their request, sizes have limits.
	token := first["nextPageToken"].(string)
	c.post("/v2/updates/get-updates-page", `{"updateFormat":%s,"beginOffsetExclusive":3,"pageToken":%q}`, allUpdates, token).refused(400, "INVALID_UPDATES_PAGE_TOKEN")
	c.post("/v2/updates/get-updates-page", `{"updateFormat":%s,"maxPageSize":2001}`, allUpdates).refused(400, "INVALID_ARGUMENT")
	// Without a begin a pruned ledger starts at the pruning offset.
	require.NoError(t, l.Prune(l.Offset(20)))
	require.EqualValues(t, l.Offset(20), page(``)["lowestPageOffsetExclusive"])
	c.post("/v2/updates/get-updates-page", `{"updateFormat":%s,"beginOffsetExclusive":3}`, allUpdates).refused(400, "PARTICIPANT_PRUNED_DATA_ACCESSED")
	// An empty ledger has an empty page.
	none := serve(t, NewLedger(Options{}), ServerOptions{}).post("/v2/updates/get-updates-page", `{"updateFormat":%s}`, allUpdates).object()
	require.Empty(t, none["updates"])
	require.EqualValues(t, 0, none["highestPageOffsetInclusive"])
}

// Each reading lists the parties of an event in an order of its own, and within one reading equal lists are equal.
func TestReadingsShuffleParties(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 60)
	c := serve(t, l, ServerOptions{})
	read := func() []byte {
		return c.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), allUpdates).body
	}
	first, second := read(), read()
	require.NotEqual(t, string(first), string(second))
	require.Len(t, second, len(first))
	require.Equal(t, withoutToken(t, string(first)), withoutToken(t, string(second)))
	again := serve(t, grown(t, Options{Seed: 1}, 60), ServerOptions{})
	require.Equal(t, string(first), string(again.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), allUpdates).body),
		"the same seed and the same number of readings give the same orders")
}
