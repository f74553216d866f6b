package sandbox

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

// The truth comes from the generator, the responses from the encoder: they must say the same.
func TestScanTruthIsWhatIsServed(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 30}, 500)
	for name, opts := range map[string]ScanOptions{
		"plain": {}, "coin": {Word: "coin", BalanceChanges: true}, "strict": {StrictInterface: true, ExtraKinds: true, OddShapes: true},
		"odd": {OddShapes: true, BalanceChanges: true}, "order": {Order: 3, ExtraKinds: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := serveScan(t, l, opts)
			word := opts.Word
			if word == "" {
				word = "amulet"
			}
			served := map[string][]Row{}
			for _, relation := range HistoryRelations() {
				served[relation] = []Row{}
			}
			page := c.post(pathTransactions, `{"page_size":1000}`)
			if !opts.OddShapes && !opts.ExtraKinds && opts.Word == "" { // as the service is documented
				require.NoError(t, openapi.Scan(t, "0.6").CheckResponse("POST", pathTransactions, 200, page.body))
			}
			records := page.records()
			for i, r := range records {
				addServed(t, served, i+1, r, word)
			}
			undated := slices.ContainsFunc(records, func(r map[string]any) bool { return r["date"] == nil })
			twoParts := slices.ContainsFunc(records, func(r map[string]any) bool { return r["mint"] != nil && r["transfer"] != nil })
			require.Equal(t, []bool{opts.OddShapes, opts.OddShapes}, []bool{undated, twoParts})
			require.Equal(t, "", Diff(s.Truth(), served))
			require.Equal(t, "", Diff(served, s.Truth()))
		})
	}
}

func rat(t *testing.T, v any) *big.Rat {
	t.Helper()
	text, ok := v.(string)
	require.True(t, ok, "%v is no text", v)
	require.Regexp(t, `^-?[0-9]+(\.[0-9]{10}|(\.[0-9]+)?E-[0-9]+)$`, text)
	n, ok := new(big.Rat).SetString(text)
	require.True(t, ok)
	return n
}

// addServed makes rows of a served record.
func addServed(t *testing.T, rows map[string][]Row, seq int, r map[string]any, word string) {
	t.Helper()
	add := func(relation string, row Row) {
		if row["seq"], row["event_id"] = number(seq), r["event_id"]; relation != "balance_changes" {
			row["source"] = "transactions"
		}
		if relation == "transactions" {
			row["rules"], row["update_offset"] = nil, nil
		}
		rows[relation] = append(rows[relation], row)
	}
	text := func(v any) any {
		if v == nil {
			return nil
		}
		return json.Number(v.(string))
	}
	date := r["date"] // nil: left out
	if row, err := DecodeRow("mints", []byte(mustJSON(map[string]any{"seq": 1, "event_id": "", "round": nil, "owner": "", "amount": 0, "date": date}))); err == nil {
		date = row["date"]
	}
	var round any
	if n, ok := r["round"].(float64); ok {
		round = number(int64(n))
	}
	kind, parts := "unknown", 0
	for _, name := range []string{"transfer", "mint", "tap", "abort_transfer_instruction"} {
		if r[name] != nil {
			kind = name
			parts++
		}
	}
	if parts != 1 || date == nil {
		kind = "unknown"
	}
	updateID, _, _ := strings.Cut(strings.TrimPrefix(r["event_id"].(string), "#"), ":")
	add("transactions", Row{"update_id": updateID, "kind": kind, "date": date, "domain_id": r["domain_id"], "offset_text": r["offset"], "round": round})
	switch kind {
	case "unknown":
		add("unknown_transactions", Row{"raw": r})
	case "mint", "tap":
		o := r[kind].(map[string]any)
		add(kind+"s", Row{"date": date, "round": round, "owner": o[word+"_owner"], "amount": text(o[word+"_amount"])})
	case "abort_transfer_instruction":
		o := r[kind].(map[string]any)
		add("aborted_transfer_instructions", Row{"date": date, "instruction_cid": o["transfer_instruction_cid"], "abort_kind": o["abort_kind"]})
	default:
		o := r[kind].(map[string]any)
		from := o["sender"].(map[string]any)
		row := Row{"update_id": updateID, "date": date, "round": round, "sender": from["party"], "input_amount": text(from["input_"+word+"_amount"]),
			"description": o["description"], "transfer_kind": o["transfer_kind"], "instruction_receiver": o["transferInstructionReceiver"],
			"instruction_amount": text(o["transferInstructionAmount"]), "instruction_cid": o["transferInstructionCid"]}
		for _, name := range append(rewardFields[:], "sender_change_fee", "sender_change_amount", "sender_fee", "holding_fees") {
			row[name] = text(from[name])
		}
		add("transfers", row)
		for i, raw := range o["receivers"].([]any) {
			to := raw.(map[string]any)
			amount, fee := rat(t, to["amount"]), rat(t, to["receiver_fee"])
			add("transfer_receivers", Row{"ordinal": number(i), "party": to["party"], "amount": text(to["amount"]), "receiver_fee": text(to["receiver_fee"]),
				"net_amount": json.Number(amount.Sub(amount, fee).FloatString(10))})
		}
		for i, raw := range o["balance_changes"].([]any) {
			b := raw.(map[string]any)
			row := Row{"ordinal": number(i), "date": date, "round": round, "party": b["party"]}
			for _, name := range []string{"change_to_initial_amount_as_of_round_zero", "change_to_holding_fees_rate"} {
				row[name] = text(b[name])
			}
			add("balance_changes", row)
		}
	}
}
