package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

func networkBackfillFor(databaseURL, scanURL string, at int64) NetworkBackfill {
	b := NetworkBackfill{Database: config.Database{DatabaseURL: databaseURL}, Scan: config.Scan{ScanURL: []string{scanURL}}}
	if at >= 0 {
		b.AtOffset = &at
	}
	return b
}

// networkOffsetAt is the offset of the update that comes after a part of a network's updates.
func networkOffsetAt(t *testing.T, scan *sandbox.Scan, part float64) int64 {
	t.Helper()
	updates := scan.NetworkTruth()["updates"]
	return int64Of(t, updates[int(part*float64(len(updates)-1))]["ledger_offset"])
}

// requireNetworkVerified verifies all of a network's updates, with the active set at a snapshot.
func requireNetworkVerified(t *testing.T, databaseURL, scanURL string) VerifyResult {
	t.Helper()
	cfg := VerifyConfig{Database: config.Database{DatabaseURL: databaseURL}, Sources: config.Sources{ScanURL: []string{scanURL}}, Verify: config.Verify{All: true}}
	cfg.Network = true
	result, err := RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { t.Error(d) })
	require.NoError(t, err)
	return result
}

// requireNetworkFloors requires from where events, and the active set, of a network are known.
func requireNetworkFloors(t *testing.T, databaseURL string, at int64) {
	t.Helper()
	require.Equal(t, 1, count(t, databaseURL, fmt.Sprint("network_indexer.floors WHERE history_floor = state_floor AND history_floor = ", at)))
}

// A snapshot and the updates after it, and below it down to the beginning, give what the network's model says, in
// whatever migration the snapshot is, and all of it is verified.
func TestANetworkIsSeededFromASnapshot(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]float64{"first migration": 0.3, "second migration": 0.8, "newest": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			_, scan := scanOf(81, 500, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second, PageLimit: 40})
			database, url := networkDatabase(t), serveScan(t, scan)
			at := int64(-1)
			if part > 0 {
				at = networkOffsetAt(t, scan, part)
			}
			progress, err := RunNetworkBackfill(t.Context(), networkBackfillFor(database, url, at), testLogger(t), nil)
			require.NoError(t, err)
			require.Positive(t, progress.Entries)
			migration, taken := progress.At.NetworkPosition()
			require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
			require.Empty(t, sandbox.Diff(scan.NetworkTruthFromSnapshot(migration, taken), networkRelations(t, database)))
			requireNetworkFloors(t, database, int64(progress.At))
			requireHoldingsSummary(t, database, url, progress.At)
			result := requireNetworkVerified(t, database, url)
			require.Empty(t, result.Notes)
			require.Positive(t, result.Updates.Carried)
			require.Positive(t, result.Updates.Active)
		})
	}
}

// requireHoldingsSummary holds what each owner held at a snapshot against the service's own sums.
func requireHoldingsSummary(t *testing.T, databaseURL, scanURL string, at ledger.Offset) {
	t.Helper()
	migration, taken := at.NetworkPosition()
	question, err := json.Marshal(map[string]any{"migration_id": migration, "record_time": taken, "owner_party_ids": texts(t, databaseURL,
		"SELECT DISTINCT coalesce(payload -> 'amulet', payload) ->> 'owner' FROM network.created_events WHERE entity_name IN ('Amulet', 'LockedAmulet')")})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, scanURL+"/v1/holdings/summary", bytes.NewReader(question))
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct {
		Summaries []struct {
			Party    string `json:"party_id"`
			Unlocked string `json:"total_unlocked_coin"`
			Locked   string `json:"total_locked_coin"`
		} `json:"summaries"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.NotEmpty(t, answer.Summaries)
	var want []string
	for _, s := range answer.Summaries {
		want = append(want, s.Party+" "+s.Unlocked+" "+s.Locked)
	}
	require.ElementsMatch(t, want, texts(t, databaseURL, `SELECT concat_ws(' ', owner, coalesce(sum(amount) FILTER (WHERE NOT locked), 0)::numeric(38, 10),
		coalesce(sum(amount) FILTER (WHERE locked), 0)::numeric(38, 10)) FROM network.holdings_at($1) WHERE instrument = 'Amulet' GROUP BY owner`, int64(at)))
}

// A repair that reads a part again takes no contract out of the active set, or of what was active, because its creation
// is lost: it reads that again first.
func TestARepairInPartKeepsWhatIsActive(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOf(82, 500, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second})
	database, url := networkDatabase(t), serveScan(t, scan)
	_, err := RunNetworkBackfill(t.Context(), networkBackfillFor(database, url, networkOffsetAt(t, scan, 0.3)), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	whole := networkRelations(t, database)
	for _, origin := range []string{"= 'snapshot'", "<> 'snapshot'"} {
		for _, of := range []string{"active_contracts", "lifetimes"} {
			execute(t, database, fmt.Sprintf(`DELETE FROM network_indexer.created WHERE (ledger_offset, node_id) = (
				SELECT c.ledger_offset, c.node_id FROM network_indexer.created c JOIN network_indexer.%s a ON a.contract_id = c.contract_id
				WHERE c.origin %s ORDER BY 1 LIMIT 1)`, of, origin))
		}
	}
	cfg := VerifyConfig{Database: config.Database{DatabaseURL: database}, Sources: config.Sources{ScanURL: []string{url}}, Verify: config.Verify{Sample: 1, Seed: 1, Repair: true}}
	cfg.Network = true
	found := 0
	result, err := RunVerify(t.Context(), cfg, testLogger(t), func(audit.Difference) { found++ })
	require.NoError(t, err)
	require.GreaterOrEqual(t, found, 4)
	require.Zero(t, result.Remaining(true))
	require.Empty(t, sandbox.Diff(whole, networkRelations(t, database)))
}
