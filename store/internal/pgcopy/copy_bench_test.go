package pgcopy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/store/internal/pgcopy"
	"ledgerindexer/store/internal/rows"
)

// What rows cost on their way into a COPY, without the connection: updates of one creation and one archival each, with
// ids and payloads as long as real ones.
func BenchmarkEncodeRows(b *testing.B) {
	const n = 1000
	at := pgtype.Timestamptz{Time: time.Unix(1750000000, 123456000).UTC(), Valid: true}
	yes, cost, empty, ref := true, int64(3163), "", int32(7)
	payload := fmt.Appendf(nil, `{"amulet":{"owner":"wallet::1220%s","amount":{"initialAmount":"1000.0000000000"}},"reason":%q}`,
		strings.Repeat("ab", 32), strings.Repeat("monthly ", 80))
	var updates []rows.Update
	var created []rows.Created
	var archived []rows.Archived
	for i := range int64(n) {
		update, contract, trace := fmt.Sprintf("1220%064x", i), fmt.Sprintf("00%0134x02", i), fmt.Sprintf("00-%032x-01", i)
		updates = append(updates, rows.Update{
			LedgerOffset: i, Kind: "transaction", UpdateID: &update, SynchronizerRef: &ref, RecordTime: at, EffectiveAt: at,
			CommandID: &empty, WorkflowID: &empty, TraceParent: &trace, PaidTrafficCost: &cost,
		})
		created = append(created, rows.Created{
			LedgerOffset: i, Origin: "transaction", ContractID: contract, TemplateRef: &ref, SynchronizerRef: &ref, RecordTime: at, CreatedAt: at,
			ACSDelta: &yes, Payload: payload, SignatoriesRef: &ref, ObserversRef: &ref, WitnessPartiesRef: &ref,
		})
		archived = append(archived, rows.Archived{
			LedgerOffset: i, NodeID: 1, ContractID: contract, TemplateRef: &ref, SynchronizerRef: &ref, RecordTime: at, WitnessPartiesRef: &ref,
		})
	}
	plans, sent := pgtype.NewMap(), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		for _, list := range []pgcopy.Rows{pgcopy.Of(updates), pgcopy.Of(created), pgcopy.Of(archived)} {
			bytes, err := pgcopy.Encode(list, plans)
			if err != nil {
				b.Fatal(err)
			}
			sent += bytes
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/update")
	b.ReportMetric(float64(sent)/float64(b.N*n), "B/update")
}
