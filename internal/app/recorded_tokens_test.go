package app

import (
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/recorded"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// tokenRow is a row of ledger.token_events with what the published answers print of its holdings and its instruction.
const tokenRows = `
	SELECT to_jsonb(e) || jsonb_build_object('ledger_offset', e.ledger_offset - 1,
		'created', (SELECT coalesce(jsonb_agg(h.one ORDER BY h.n), '[]') FROM (
			SELECT v.view_value || jsonb_build_object('contractId', v.contract_id) AS one, x.n FROM unnest(e.created_holdings) WITH ORDINALITY x (id, n)
			JOIN ledger.interface_views v ON v.contract_id = x.id AND v.module_name = 'Splice.Api.Token.HoldingV1') h),
		'archived', (SELECT coalesce(jsonb_agg(h.one ORDER BY h.n), '[]') FROM (
			SELECT v.view_value || jsonb_build_object('contractId', v.contract_id) AS one, x.n FROM unnest(e.archived_holdings) WITH ORDINALITY x (id, n)
			JOIN ledger.interface_views v ON v.contract_id = x.id AND v.module_name = 'Splice.Api.Token.HoldingV1') h),
		'before', (SELECT jsonb_build_object('status', i.waits_for, 'original', nullif(i.transfer_id, i.contract_id), 'meta', v.view_value -> 'meta')
			FROM ledger.pending_instructions i JOIN ledger.interface_views v ON (v.ledger_offset, v.node_id) = (i.created_offset, i.created_node_id)
			WHERE i.contract_id = e.instruction_id AND e.choice LIKE 'TransferInstruction\_%'),
		'of', (SELECT jsonb_build_object('templateId', c.template_id, 'packageName', c.package_name) FROM ledger.created_events c WHERE c.contract_id = e.created_holdings[1]),
		'record_time', to_char(e.record_time, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
		'synchronizer_id', (SELECT u.synchronizer_id FROM ledger.updates u WHERE u.ledger_offset = e.ledger_offset))
	FROM ledger.token_events e WHERE e.party = 'alice::normalized' ORDER BY e.ledger_offset, e.node_id`

type printed = map[string]any

// What moved in a live test network is what its own tools say, and so is what was held after it.
func TestPublishedAnswers(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	replay, err := sandbox.LoadReplay(recorded.Beside(t, "recorded/updates-ledger-effects-31.json"))
	require.NoError(t, err)
	database := throwaway.Migrated(t, migrate)
	scope := defaultScope()
	scope.Shape = "ledger-effects"
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, replay, sandbox.ServerOptions{}), scope), testLogger(t)))
	conn := open(t, database)
	requirePublishedTokenEvents(t, conn)
	requirePublishedHoldings(t, conn)
}

// What moved in the recorded updates is what the token standard's own command line says of them, whole and in its own
// form.
func requirePublishedTokenEvents(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	body, err := os.ReadFile(recorded.Beside(t, "recorded/expected/expected-txs-v1.json"))
	require.NoError(t, err)
	var published struct{ Transactions []printed }
	require.NoError(t, json.Unmarshal(body, &published))
	require.Len(t, published.Transactions, 17)
	rows, err := conn.Query(t.Context(), tokenRows)
	require.NoError(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[printed])
	require.NoError(t, err)
	require.Len(t, got, len(published.Transactions))
	for i, want := range published.Transactions {
		row := got[i]
		transaction := printed{
			"updateId": row["update_id"], "offset": row["ledger_offset"], "recordTime": row["record_time"], "synchronizerId": row["synchronizer_id"],
			"events": []any{publishedEvent(row)},
		}
		for _, event := range want["events"].([]any) {
			delete(event.(printed)["label"].(printed), "parentChoice") // not what it says: nearly always "none"
		}
		require.Equal(t, plainly(want), plainly(transaction), "update %v", want["updateId"])
	}
}

// publishedEvent writes a row of ledger.token_events as the token standard's command line does.
func publishedEvent(row printed) printed {
	label := printed{"type": row["label"], "meta": printed{"values": row["meta"]}}
	event := printed{"label": label}
	if choice, _ := row["choice"].(string); choice != "" {
		label["reason"], label["burnAmount"], label["mintAmount"] = row["reason"], row["burned_amount"], row["minted_amount"]
		if strings.HasPrefix(choice, "TransferFactory_") || strings.HasPrefix(choice, "TransferInstruction_") {
			label["tokenStandardChoice"] = printed{"name": choice, "choiceArgument": row["choice_argument"], "exerciseResult": row["exercise_result"]}
		}
		// An instruction says more than the choice: what it was before.
		instruction := printed{"transfer": row["transfer"]}
		if before, ok := row["before"].(printed); ok {
			instruction["originalInstructionCid"], instruction["status"], instruction["meta"] = before["original"], printed{"before": before["status"]}, before["meta"]
		}
		event["transferInstruction"] = instruction
	}
	switch counterparties := row["counterparties"].([]any); row["label"] {
	case "TransferIn":
		label["sender"] = counterparties[0]
	case "TransferOut":
		amounts := row["counterparty_amounts"].([]any)
		var receivers []any
		for i := range counterparties {
			receivers = append(receivers, printed{"receiver": counterparties[i], "amount": amounts[i]})
		}
		label["receiverAmounts"] = receivers
	case "Create":
		of := row["of"].(printed)
		label["contractId"], label["offset"] = row["created_holdings"].([]any)[0], row["ledger_offset"]
		label["templateId"], label["packageName"] = of["templateId"], of["packageName"]
		payload := row["created"].([]any)[0].(printed)
		delete(payload, "contractId")
		label["payload"] = payload
	}
	for kind, locked := range map[string]bool{"unlockedHoldingsChange": false, "lockedHoldingsChange": true} {
		change, summary := printed{}, printed{}
		total := new(big.Rat)
		for from, to := range map[string]struct {
			list, number, amount string
			sign                 int64
		}{"created": {"creates", "numOutputs", "outputAmount", 1}, "archived": {"archives", "numInputs", "inputAmount", -1}} {
			var list []any
			sum := new(big.Rat)
			for _, holding := range row[from].([]any) {
				if h := holding.(printed); (h["lock"] != nil) == locked {
					list = append(list, h)
					amount, _ := new(big.Rat).SetString(h["amount"].(string))
					sum.Add(sum, amount)
				}
			}
			change[to.list], summary[to.number], summary[to.amount] = list, float64(len(list)), sum.FloatString(10)
			total.Add(total, new(big.Rat).Mul(sum, big.NewRat(to.sign, 1)))
		}
		summary["amountChange"] = total.FloatString(10)
		event[kind], event[kind+"Summary"] = change, summary
	}
	return event
}

// plainly is a value as two writers agree on it: decimals have no trailing zeros, and what is empty or zero is left
// out.
func plainly(value any) any {
	switch v := value.(type) {
	case printed:
		out := printed{}
		for name, member := range v {
			if m := plainly(member); m != nil {
				out[name] = m
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		var out []any
		for _, element := range v {
			out = append(out, plainly(element))
		}
		if len(out) > 0 {
			return out
		}
	case string:
		if number, ok := new(big.Rat).SetString(v); ok && strings.Contains(v, ".") {
			return plainly(number)
		} else if v != "" && v != "0" {
			return v
		}
	case float64:
		if v != 0 {
			return new(big.Rat).SetFloat64(v).RatString()
		}
	case *big.Rat:
		if v.Sign() != 0 {
			return v.RatString()
		}
	case bool:
		return v
	}
	return nil
}

// What is held after the recorded updates is what the token standard's command line lists.
func requirePublishedHoldings(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	body, err := os.ReadFile(recorded.Beside(t, "recorded/expected/expected-holdings.json"))
	require.NoError(t, err)
	var published []struct {
		ContractID string `json:"contractId"`
		Payload    struct {
			Amount       string
			InstrumentID struct{ ID, Admin string } `json:"instrumentId"`
			Lock         any
		}
	}
	require.NoError(t, json.Unmarshal(body, &published))
	require.Len(t, published, 6)
	sums := map[[2]string]*big.Rat{}
	for _, want := range published {
		var same bool
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT amount = $2::text::numeric AND instrument = $3 AND instrument_admin = $4 AND locked = $5
			FROM ledger.holdings WHERE contract_id = $1 AND owner = 'alice::normalized'`,
			want.ContractID, want.Payload.Amount, want.Payload.InstrumentID.ID, want.Payload.InstrumentID.Admin, want.Payload.Lock != nil).Scan(&same))
		require.True(t, same, want.ContractID)
		instrument := [2]string{want.Payload.InstrumentID.ID, want.Payload.InstrumentID.Admin}
		if sums[instrument] == nil {
			sums[instrument] = new(big.Rat)
		}
		amount, _ := new(big.Rat).SetString(want.Payload.Amount)
		sums[instrument].Add(sums[instrument], amount)
	}
	for instrument, sum := range sums {
		var balances []string
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT ARRAY[ledger.balance_at('alice::normalized', $1, now(), $2),
				(SELECT balance FROM ledger.party_statement('alice::normalized', 0, ledger.latest_offset())
				 WHERE instrument = $1 ORDER BY ledger_offset DESC, node_id DESC LIMIT 1)]::text[]`, instrument[0], instrument[1]).Scan(&balances))
		for _, balance := range balances {
			got, _ := new(big.Rat).SetString(balance)
			require.Zero(t, got.Cmp(sum), "%s: %s, not %s", instrument[0], balance, sum.FloatString(10))
		}
	}
}
