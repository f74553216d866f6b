package ledger

import (
	"bytes"
	"fmt"
	"strings"
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

// realisticHistory is a page of transfers with ids and parties as long as real ones, every member of both servers'
// releases, and two receivers and three balance changes each.
func realisticHistory(transfers int) []byte {
	suffix := "::1220" + strings.Repeat("ab", 32)
	var page bytes.Buffer
	page.WriteString(`{"transactions":[`)
	for i := 1; i <= transfers; i++ {
		if i > 1 {
			page.WriteByte(',')
		}
		sender, first, second := fmt.Sprintf("sender-%d%s", i%50, suffix), fmt.Sprintf("wallet-%d%s", i%70, suffix), fmt.Sprintf("wallet-%d%s", i%90, suffix)
		fmt.Fprintf(&page, `{"transaction_type":"transfer","event_id":"#1220%064x:%d","offset":"00%016x","date":"2025-10-14T11:29:20.015513Z",`+
			`"domain_id":"global-domain::1220%s","round":%d,"transfer":{"sender":{"party":%q,"input_amulet_amount":"%d.0123456789",`+
			`"input_app_reward_amount":"0.0000000000","input_validator_reward_amount":"0.0000000000","input_sv_reward_amount":"0.0000000000",`+
			`"input_validator_faucet_amount":"570.7762557078","sender_change_fee":"0.0300000000","sender_change_amount":"%d.0023456789",`+
			`"sender_fee":"0.0000000000","holding_fees":"0.0000000000"},"receivers":[{"party":%q,"amount":"%d.5000000000","receiver_fee":"0.0000000000"},`+
			`{"party":%q,"amount":"1.0000000000","receiver_fee":"0.0000000000"}],"balance_changes":[`+
			`{"party":%[6]q,"change_to_initial_amount_as_of_round_zero":"-%[7]d.5761643850","change_to_holding_fees_rate":"-0.0000190259"},`+
			`{"party":%[9]q,"change_to_initial_amount_as_of_round_zero":"%[7]d.5761643850","change_to_holding_fees_rate":"0.0000190259"},`+
			`{"party":%[11]q,"change_to_initial_amount_as_of_round_zero":"1.0761643850","change_to_holding_fees_rate":"0.0000190259"}],`+
			`"description":"invoice %[2]d, \"thanks\"","transfer_kind":"preapproval_send"}}`,
			i, i, i, strings.Repeat("be", 32), i/20, sender, i, i, first, i, second)
	}
	page.WriteString(`]}`)
	return page.Bytes()
}
