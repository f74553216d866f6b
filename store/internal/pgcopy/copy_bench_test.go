package pgcopy

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/store/internal/dbsqlc"
)

// What rows cost on their way into a COPY, without the connection: updates of one creation and one archival each, with ids and payloads
// as long as real ones.
func BenchmarkEncodeRows(b *testing.B) {
	const n = 1000
	at := pgtype.Timestamptz{Time: time.Unix(1750000000, 123456000).UTC(), Valid: true}
	yes, cost, empty, ref := true, int64(3163), "", int32(7)
	payload := fmt.Appendf(nil, `{"amulet":{"owner":"wallet::1220%s","amount":{"initialAmount":"1000.0000000000"}},"reason":%q}`,
		strings.Repeat("ab", 32), strings.Repeat("monthly ", 80))
	var updates []dbsqlc.Updates
	var created []dbsqlc.Created
	var archived []dbsqlc.Archived
	for i := range int64(n) {
		update, contract, trace := fmt.Sprintf("1220%064x", i), fmt.Sprintf("00%0134x02", i), fmt.Sprintf("00-%032x-01", i)
		updates = append(updates, dbsqlc.Updates{
			LedgerOffset: i, Kind: "transaction", UpdateID: &update, SynchronizerRef: &ref, RecordTime: at, EffectiveAt: at,
			CommandID: &empty, WorkflowID: &empty, TraceParent: &trace, PaidTrafficCost: &cost,
		})
		created = append(created, dbsqlc.Created{
			LedgerOffset: i, Origin: "transaction", ContractID: contract, TemplateRef: 1, SynchronizerRef: &ref, RecordTime: at, CreatedAt: at,
			ACSDelta: &yes, Payload: payload, SignatoriesRef: &ref, ObserversRef: &ref, WitnessPartiesRef: &ref,
		})
		archived = append(archived, dbsqlc.Archived{
			LedgerOffset: i, NodeID: 1, ContractID: contract, TemplateRef: 1, SynchronizerRef: &ref, RecordTime: at, WitnessPartiesRef: &ref,
		})
	}
	plans, sent := pgtype.NewMap(), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		for _, rows := range []Rows{Of(updates), Of(created), Of(archived)} {
			e := newEncoder(rows, typesOf(rows), plans)
			bytes, err := io.Copy(io.Discard, struct{ io.Reader }{e})
			if err != nil {
				b.Fatal(err)
			}
			e.release()
			sent += bytes
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/update")
	b.ReportMetric(float64(sent)/float64(b.N*n), "B/update")
}

// typesOf are the types that the columns have in the database, told by those of Go: bytes are all jsonb here.
func typesOf(rows Rows) (types []uint32) {
	for i := range rows.row.NumField() {
		for pair := range encodings {
			if pair.field == rows.row.Field(i).Type && pair.typ != pgtype.ByteaOID {
				types = append(types, pair.typ)
			}
		}
	}
	return types
}
