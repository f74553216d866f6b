package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// realisticPage is a page of updates of about 2.8 kB each, with ids, parties and payloads as long as real ones.
func realisticPage(updates int) []byte {
	const template = "0b3f41ae14e183232720d398dab66d2df2b073a3f3f107ec48fcb07ec407163b:Splice.Amulet:LockedAmulet"
	dso := "DSO::1220" + strings.Repeat("cd", 32)
	var page bytes.Buffer
	page.WriteByte('[')
	for i := 1; i <= updates; i++ {
		if i > 1 {
			page.WriteByte(',')
		}
		owner := fmt.Sprintf("wallet-%d::1220%s", i%20, strings.Repeat("ab", 32))
		contract := fmt.Sprintf("00%0134x02", i)
		payload := fmt.Sprintf(`{"amulet":{"dso":%q,"owner":%q,"amount":{"initialAmount":"1000.0000000000","createdAt":{"number":"%d"},`+
			`"ratePerRound":{"rate":"0.0038051800"}}},"lock":{"holders":[%q],"expiresAt":"2025-06-18T00:00:00.000000Z",`+
			`"optContext":"transfer to \"bob\""},"meta":{"values":{"splice.lfdecentralizedtrust.org/reason":%q}},`+
			`"history":[["1","1.0"],["2","2.0"]]}`, dso, owner, i, dso, strings.Repeat("monthly ", 30))
		fmt.Fprintf(&page, `{"update":{"Transaction":{"value":{"updateId":"1220%064x","commandId":"","workflowId":"","effectiveAt":"2025-10-14T11:29:20.015513Z",`+
			`"events":[{"CreatedEvent":{"offset":%[2]d,"nodeId":0,"contractId":%[3]q,"templateId":%[4]q,"contractKey":null,"contractKeyHash":"",`+
			`"createArgument":%[5]s,"createdEventBlob":"","interfaceViews":[],"witnessParties":[%[6]q,%[7]q],"signatories":[%[6]q,%[7]q],"observers":[],`+
			`"createdAt":"2025-10-14T11:29:20.015513Z","packageName":"splice-amulet",`+
			`"representativePackageId":"0b3f41ae14e183232720d398dab66d2df2b073a3f3f107ec48fcb07ec407163b","acsDelta":true}},`+
			`{"ArchivedEvent":{"offset":%[2]d,"nodeId":1,"contractId":%[3]q,"templateId":%[4]q,"witnessParties":[%[6]q],"packageName":"splice-amulet",`+
			`"implementedInterfaces":[]}}],"offset":%[2]d,"synchronizerId":"global-domain::1220%[8]s",`+
			`"traceContext":{"traceparent":"00-%032[1]x-0a0b0c0d0e0f0a0b-01","tracestate":null},"recordTime":"2025-10-14T11:29:21.015513Z",`+
			`"externalTransactionHash":null,"paidTrafficCost":3163}}}}`,
			i, i*3, contract, template, payload, owner, dso, strings.Repeat("be", 32))
	}
	page.WriteByte(']')
	return page.Bytes()
}

func BenchmarkDecodeUpdateList(b *testing.B) {
	page := realisticPage(200)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeUpdateList(page, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(page))/200, "B/update")
}

func BenchmarkDecodeContractEntries(b *testing.B) {
	page := list(slices.Repeat([]string{activeEntry()}, 200)...)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeContractEntries(page); err != nil {
			b.Fatal(err)
		}
	}
}
