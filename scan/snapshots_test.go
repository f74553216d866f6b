package scan

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/openapi"
	"ledgerindexer/ledger"
)

// snapshotService is a service with a snapshot, the updates of its contracts by their id, and those of an earlier
// migration in pages.
type snapshotService struct {
	mu       sync.Mutex
	snapshot string            // the answer to a request for a page of it
	updates  map[string]string // by id; empty: it fails once
	older    []string          // of an earlier migration, in order
}

func (s *snapshotService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, single := strings.CutPrefix(r.URL.Path, pathUpdates+"/")
	switch item, known := s.updates[id]; {
	case r.URL.Path == pathNetwork:
		answer(200, `{"dso_party_id":"dso"}`)(w, r)
	case r.URL.Path == pathSnapshot && s.snapshot != "":
		answer(200, s.snapshot)(w, r)
	case r.URL.Path == pathSnapshot:
		answer(404, `{"error":"Failed to find ACS snapshot"}`)(w, r)
	case single && known && item == "":
		s.updates[id] = creating(id, 2, "2026-01-01T02:00:00.000000Z", "c-"+id)
		answer(503, `{"error":"not now"}`)(w, r)
	case single && known:
		answer(200, item)(w, r)
	case single:
		answer(404, `{"error":"Transaction with id `+id+` not found"}`)(w, r)
	default:
		answer(200, `{"transactions":[`+strings.Join(s.older, ",")+`]}`)(w, r)
	}
}

// creating is an update that creates contracts.
func creating(id string, migrationID int, at string, contracts ...string) string {
	var roots, events []string
	for i, contract := range contracts {
		event := fmt.Sprintf("%s:%d", id, i)
		roots = append(roots, `"`+event+`"`)
		events = append(events, fmt.Sprintf(`%q:{"event_type":"created_event","event_id":%[1]q,"contract_id":%q,"template_id":"p:M:E","package_name":"n",
			"create_arguments":{},"created_at":%q,"signatories":["dso"],"observers":[]}`, event, contract, at))
	}
	return fmt.Sprintf(`{"update_id":%q,"migration_id":%d,"workflow_id":"w","record_time":%q,"synchronizer_id":"s","effective_at":%[3]q,
		"root_event_ids":[%[4]s],"events_by_id":{%[5]s}}`, id, migrationID, at, strings.Join(roots, ","), strings.Join(events, ","))
}

// listed is a contract as a snapshot lists it.
func listed(contract, at, party, rest string) string {
	return fmt.Sprintf(`{"contract_id":%q,"template_id":"p:M:E","package_name":"n","create_arguments":{},"created_at":%q,"signatories":[%q],"observers":[]%s}`,
		contract, at, party, rest)
}

func snapshotOf(next string, contracts ...string) string {
	return `{"record_time":"2026-01-01T03:00:00Z","migration_id":2,"created_events":[` + strings.Join(contracts, ",") + `]` + next + `}`
}

func readerOf(t *testing.T, handler http.Handler) (*Updates, *service) {
	t.Helper()
	s := serve(t, handler.ServeHTTP)
	return NewUpdates(client(t, Config{URL: s.URL})), s
}

const (
	takenAt   = "2026-01-01T03:00:00Z"
	createdAt = "2026-01-01T02:00:00.000000Z"
	olderAt   = "2025-06-01T02:00:00.000000Z"
)

// An entry has what the update says that created the contract, and contracts of others are left out.
func TestASnapshotOfANetworkIsRead(t *testing.T) {
	t.Parallel()
	u, s := readerOf(t, &snapshotService{
		snapshot: snapshotOf(`,"next_page_token":41`,
			listed("old", olderAt, "dso", ""), listed("a", createdAt, "dso", `,"created_in_update_id":"u1"`), listed("of others", createdAt, "bob", `,"created_in_update_id":"u9"`),
			listed("b", createdAt, "dso", `,"created_in_update_id":"u1"`)),
		updates: map[string]string{"u1": creating("u1", 2, createdAt, "x", "a", "b")},
		// The page goes on beyond the snapshot, where the contract comes again, as one does that is reassigned.
		older: []string{creating("u0", 1, "2025-06-01T02:00:01.000000Z", "other", "old"), creating("u3", 2, "2026-01-01T04:00:00.000000Z", "old")},
	})
	at := networkOffset(t, 2, takenAt)
	page, err := u.ReadSnapshot(t.Context(), at, ledger.Token{})
	require.NoError(t, err)
	require.Equal(t, ledger.Token{Kind: ledger.TokenPage, Value: "41"}, page.Next)
	require.False(t, page.Last)
	var got []string
	for _, e := range page.Entries {
		c := e.Active.Created
		got = append(got, fmt.Sprint(c.ContractID, " at ", int64(c.Offset), " node ", c.NodeID, " on ", e.Active.SynchronizerID, " by ", *e.WorkflowID))
	}
	require.Equal(t, []string{
		fmt.Sprintf("old at %d node 1 on s by w", networkOffset(t, 1, "2025-06-01T02:00:01Z")),
		fmt.Sprintf("a at %d node 1 on s by w", networkOffset(t, 2, createdAt)), fmt.Sprintf("b at %d node 2 on s by w", networkOffset(t, 2, createdAt)),
	}, got)
	var bodies []string
	for _, asked := range s.requests() {
		if body, ok := strings.CutPrefix(asked, "POST "+pathSnapshot+" "); ok {
			bodies = append(bodies, body)
		}
		require.NotContains(t, asked, "u9")
	}
	_, err = u.ReadSnapshot(t.Context(), at, page.Next)
	require.ErrorContains(t, err, "leads back to itself")
	for _, asked := range s.requests() {
		if body, ok := strings.CutPrefix(asked, "POST "+pathSnapshot+" "); ok {
			bodies = append(bodies, body)
		}
	}
	require.Equal(t, []string{
		`{"migration_id":2,"record_time":"2026-01-01T03:00:00.000000Z","record_time_match":"exact","page_size":1000}`,
		`{"migration_id":2,"record_time":"2026-01-01T03:00:00.000000Z","record_time_match":"exact","page_size":1000,"after":41}`,
	}, bodies)
	for _, release := range []string{"0.6", "0.7"} {
		for _, body := range bodies {
			require.NoError(t, openapi.Scan(t, release).CheckRequest("POST", pathSnapshot, nil, []byte(body)))
		}
	}
}

// A request that fails does not make those anew that did not.
func TestWhatIsKnownOfASnapshotIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits a second")
	var contracts []string
	updates := map[string]string{}
	for i := range 20 {
		id := fmt.Sprint("u", i)
		contracts = append(contracts, listed("c-"+id, createdAt, "dso", `,"created_in_update_id":"`+id+`"`))
		if updates[id] = ""; i > 0 {
			updates[id] = creating(id, 2, createdAt, "c-"+id)
		}
	}
	u, s := readerOf(t, &snapshotService{snapshot: snapshotOf("", contracts...), updates: updates})
	page, err := u.ReadSnapshot(t.Context(), networkOffset(t, 2, takenAt), ledger.Token{})
	require.NoError(t, err)
	require.True(t, page.Last)
	require.Len(t, page.Entries, 20)
	looked := 0
	for _, asked := range s.requests() {
		if strings.HasPrefix(asked, "GET "+pathUpdates+"/") {
			looked++
		}
	}
	require.Equal(t, 21, looked)
}

// What can't be seeded from says what to do; what may pass is tried again.
func TestSnapshotsOfANetworkThatCannotBeRead(t *testing.T) {
	t.Parallel()
	at := networkOffset(t, 2, takenAt)
	for name, c := range map[string]struct {
		snapshot string // that it has; empty: none
		token    ledger.Token
		want     string // empty: it passes
	}{
		"no snapshot there":       {"", ledger.Token{}, "the Scan service has no snapshot of migration 2 at 2026-01-01T03:00:00.000000Z"},
		"another one's token":     {"", ledger.Token{Kind: ledger.TokenList, Value: "x"}, "is no token of a Scan service's snapshot"},
		"a creation nobody shows": {snapshotOf("", listed("old", olderAt, "dso", "")), ledger.Token{}, "no update around that time creates it"},
		"what is no JSON":         {`{"created_events":[}`, ledger.Token{}, ""},
		"another snapshot":        {strings.Replace(snapshotOf(""), `"migration_id":2`, `"migration_id":1`, 1), ledger.Token{}, ""},
	} {
		u, _ := readerOf(t, &snapshotService{snapshot: c.snapshot})
		_, err := u.ReadSnapshot(t.Context(), at, c.token)
		require.Error(t, err, name)
		if c.want == "" {
			_ = retryable(t, err)
		} else {
			var p *ledger.Problem
			require.ErrorAs(t, err, &p, name)
			require.Contains(t, p.What, c.want, name)
			require.NotEmpty(t, p.Do)
		}
	}
}

// The newest snapshot up to an offset may be in an earlier migration.
func TestTheNewestSnapshotIsAskedFor(t *testing.T) {
	t.Parallel()
	taken := map[string]string{"1": "2025-12-31T21:00:00Z", "3": "2026-01-01T03:00:00Z"}
	updates := &network{party: "dso", at: []ledger.Offset{networkOffset(t, 1, taken["1"]), networkOffset(t, 2, taken["3"]), networkOffset(t, 3, taken["3"])}}
	u, s := readerOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathSnapshotBefore {
			updates.ServeHTTP(w, r)
			return
		}
		at, ok := taken[r.URL.Query().Get("migration_id")]
		if !ok || strings.Replace(r.URL.Query().Get("before"), ".000000Z", "Z", 1) < at {
			answer(404, `{"error":"No snapshots found before"}`)(w, r)
			return
		}
		answer(200, `{"record_time":"`+at+`"}`)(w, r)
	}))
	first := networkOffset(t, 1, taken["1"])
	for name, c := range map[string]struct{ upTo, want ledger.Offset }{
		"it":                  {networkOffset(t, 3, taken["3"]), networkOffset(t, 3, taken["3"])},
		"behind it":           {networkOffset(t, 3, "2026-01-01T04:00:00Z"), networkOffset(t, 3, taken["3"])},
		"before it":           {networkOffset(t, 3, "2026-01-01T02:00:00Z"), first},
		"a migration without": {networkOffset(t, 2, "2026-01-01T02:00:00Z"), first},
	} {
		at, err := u.SnapshotOffset(t.Context(), c.upTo)
		require.NoError(t, err, name)
		require.Equal(t, c.want, at, name)
	}
	for _, asked := range s.requests() {
		if strings.Contains(asked, pathSnapshotBefore) {
			require.Contains(t, asked, "GET "+pathSnapshotBefore+"?before=2")
		}
	}
	_, err := u.SnapshotOffset(t.Context(), first-ledger.Offset(time.Second.Microseconds()))
	require.Contains(t, problem(t, err), "has no snapshot up to offset")
	require.ErrorIs(t, err, ledger.ErrNotOffered)
}
