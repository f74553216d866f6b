package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

const standardKey = "splice.lfdecentralizedtrust.org/"

// account is a V2 account.
func account(owner string) printed { return printed{"owner": owner, "provider": nil, "id": ""} }

// special is a V2 account that nobody owns.
func special(id string) printed { return printed{"owner": nil, "provider": nil, "id": "cip-112/" + id} }

// tagged are metadata with keys of the standard.
func tagged(keys ...string) printed {
	values := printed{}
	for i := 0; i < len(keys); i += 2 {
		values[standardKey+keys[i]] = keys[i+1]
	}
	return printed{"values": values}
}

// createdAs is the creation of a contract with a view.
func createdAs(node int, id, entity, view string, value printed, signatories ...string) printed {
	return printed{"CreatedEvent": printed{
		"nodeId": node, "contractId": id, "templateId": "pkg:Registry:" + entity, "packageName": "registry", "representativePackageId": "pkg",
		"createArgument": printed{}, "contractKey": nil, "contractKeyHash": "", "createdEventBlob": "", "createdAt": "2026-01-01T00:00:00Z", "acsDelta": true,
		"signatories": signatories, "observers": []string{}, "witnessParties": []string{"alice"},
		"interfaceViews": []any{printed{
			"interfaceId": "api:Splice.Api.Token." + view, "viewStatus": printed{"code": 0, "message": "", "details": []any{}}, "viewValue": value, "implementationPackageId": "pkg",
		}},
	}}
}

// coin is the creation of a holding with a view of V1, tokenV2 one of V2.
func coin(node int, id, owner, instrument, amount string) printed {
	return createdAs(node, id, "Coin", "HoldingV1:Holding", printed{"owner": owner, "instrumentId": printed{"admin": "bank", "id": instrument}, "amount": amount, "lock": nil}, "bank", owner)
}

func tokenV2(node int, id string, of printed, amount string) printed {
	signatories := []string{"bank"}
	if owner, ok := of["owner"].(string); ok {
		signatories = append(signatories, owner)
	}
	return createdAs(node, id, "Token", "HoldingV2:Holding", printed{"account": of, "instrumentId": printed{"admin": "bank", "id": "EUR"}, "amount": amount, "lock": nil}, signatories...)
}

// chosen is an exercise of alice's, with the nodes up to last below it.
func chosen(node, last int, id, choice string, argument, result any) printed {
	return printed{"ExercisedEvent": printed{
		"nodeId": node, "lastDescendantNodeId": last, "contractId": id, "templateId": "pkg:Registry:Rules", "interfaceId": nil, "choice": choice,
		"choiceArgument": argument, "exerciseResult": result, "consuming": false, "actingParties": []string{"alice"}, "witnessParties": []string{"alice"},
		"packageName": "registry", "implementedInterfaces": []string{}, "acsDelta": false,
	}}
}

// ended is the archival of a contract.
func ended(node int, id string) printed {
	event := chosen(node, node, id, "Archive", printed{}, printed{})
	event["ExercisedEvent"].(printed)["consuming"], event["ExercisedEvent"].(printed)["acsDelta"] = true, true
	return event
}

// logged is a log of changes, by whoever acts.
func logged(node int, actor, owner string, inputs, outputs []string, legs ...any) printed {
	if legs == nil {
		legs = []any{}
	}
	event := chosen(node, node, "rules", "EventLog_HoldingsChange", printed{
		"admin": "bank", "account": account(owner), "inputHoldingCids": inputs, "outputHoldingCids": outputs, "transferLegSides": legs,
		"observers": []any{}, "extraArgs": printed{"context": printed{"values": printed{}}, "meta": printed{"values": printed{}}},
	}, printed{})
	event["ExercisedEvent"].(printed)["interfaceId"], event["ExercisedEvent"].(printed)["actingParties"] = "api:Splice.Api.Token.TransferEventsV2:EventLog", []string{actor}
	return event
}

func leg(id, side string, other printed, amount string, meta printed) printed {
	return printed{"transferLegId": id, "side": side, "otherside": other, "amount": amount, "instrumentId": "EUR", "meta": meta}
}

// offerOf is the creation of a transfer instruction of alice's to bob.
func offerOf(node int, id string, original any) printed {
	return createdAs(node, id, "Offer", "TransferInstructionV1:TransferInstruction", printed{
		"originalInstructionCid": original, "status": printed{"tag": "TransferPendingReceiverAcceptance", "value": printed{}}, "meta": tagged(),
		"transfer": printed{"sender": "alice", "receiver": "bob", "amount": "5.0", "instrumentId": printed{"admin": "bank", "id": "EUR"}, "meta": tagged("reason", "rent"),
			"requestedAt": "2026-01-01T00:00:00Z", "executeBefore": "2026-01-02T00:00:00Z", "inputHoldingCids": []any{}},
	}, "bank", "alice")
}

// witnessed is a creation that none of its stakeholders is told of.
func witnessed(event printed) printed {
	event["CreatedEvent"].(printed)["acsDelta"] = false
	return event
}

// answered is the result of a choice of an instruction.
func answered(tag string, value printed) printed {
	return printed{"output": printed{"tag": "TransferInstructionResult_" + tag, "value": value}, "senderChangeCids": []any{}, "meta": tagged()}
}

var movementRules = []struct {
	what   string
	events []printed
	want   []string // party, label, instrument, amount, counterparties, burned, minted, reason, standard, choice
	listed []string // sender, receiver, amount, reason
}{
	{
		what:   "what nothing explains stands for itself",
		events: []printed{coin(0, "a1", "alice", "EUR", "100.0"), coin(1, "a2", "alice", "USD", "50.0"), coin(2, "b1", "bob", "EUR", "7.0")},
		want:   []string{"alice Create EUR 100.0 {}", "alice Create USD 50.0 {}", "bob Create EUR 7.0 {}"},
	}, {
		what: "a factory's choice below another program's choice",
		events: []printed{chosen(0, 9, "app", "App_Settle", printed{"meta": tagged("reason", "not read")}, printed{}),
			chosen(1, 4, "rules", "TransferFactory_Transfer", printed{
				"transfer": printed{"sender": "alice", "receiver": "bob", "meta": tagged("reason", "first")}, "extraArgs": printed{"meta": tagged("reason", "", "burned", "1.0")},
			}, answered("Completed", printed{})),
			ended(2, "a1"), coin(3, "b2", "bob", "EUR", "30.0"), coin(4, "a3", "alice", "EUR", "69.0"), coin(6, "a4", "alice", "EUR", "1.5")},
		want:   []string{"alice TransferOut EUR -31.0 {bob} 1.0 0.0 V1 TransferFactory_Transfer", "bob TransferIn EUR 30.0 {alice} 0 0 V1 TransferFactory_Transfer", "alice Create EUR 1.5 {}"},
		listed: []string{"alice bob 30.0"},
	}, {
		what: "the outermost exercise takes all, and the later metadata count",
		events: []printed{chosen(0, 5, "rules", "Send", printed{"meta": tagged("tx-kind", "mint", "sender", "nobody")}, printed{"meta": tagged("tx-kind", "transfer", "sender", "alice", "reason", "later")}),
			chosen(1, 3, "rules", "TransferFactory_Transfer", printed{"transfer": printed{"sender": "bob"}}, printed{}),
			ended(2, "a3"), coin(3, "b3", "bob", "EUR", "69.0")},
		want:   []string{"alice TransferOut EUR -69.0 {bob} 0 0.0 later V1 Send", "bob TransferIn EUR 69.0 {alice} 0 0 later V1 Send"},
		listed: []string{"alice bob 69.0 later"},
	}, {
		what: "two instruments in one choice, and a contract that is made and ended in it",
		events: []printed{chosen(0, 7, "rules", "Swap", printed{}, printed{"meta": tagged("tx-kind", "transfer", "sender", "alice", "burned", "2.0")}),
			ended(1, "a2"), coin(2, "b4", "bob", "USD", "50.0"), ended(3, "b1"), coin(4, "a5", "alice", "EUR", "6.0"), coin(5, "x1", "bob", "EUR", "1.0"), ended(6, "x1")},
		want:   []string{"alice MergeSplit EUR 6.0 {} 0 -1.0 V1 Swap", "alice TransferOut USD -50.0 {bob} 0 0.0 V1 Swap", "bob MergeSplit EUR -7.0 {} 0 -1.0 V1 Swap", "bob TransferIn USD 50.0 {alice} 0 0 V1 Swap"},
		listed: []string{"alice bob 50.0"},
	}, {
		what: "kinds that nobody knows, metadata of other forms, and a transfer of nobody",
		events: []printed{chosen(0, 1, "rules", "Strange", printed{}, printed{"meta": tagged("tx-kind", "teleport")}), coin(1, "s1", "alice", "EUR", "1.0"),
			chosen(2, 3, "rules", "Strange", "a text", printed{"meta": printed{"values": []any{"tx-kind"}}}), coin(3, "s2", "alice", "EUR", "2.0"),
			chosen(4, 5, "rules", "Strange", printed{"meta": 7}, printed{"meta": printed{"values": printed{standardKey + "tx-kind": printed{}}}}), coin(5, "s3", "alice", "EUR", "3.0"),
			chosen(6, 7, "rules", "Strange", nil, printed{"meta": tagged("tx-kind", "transfer")}), coin(7, "s4", "alice", "EUR", "4.0"),
			chosen(8, 9, "rules", "Strange", printed{}, printed{"meta": tagged("tx-kind", "mint", "burned", "much")}), coin(9, "s5", "alice", "EUR", "5.0"), ended(10, "unseen")},
		want: []string{"alice Create EUR 1.0 {}", "alice Create EUR 2.0 {}", "alice Create EUR 3.0 {}", "alice Create EUR 4.0 {}", "alice Mint EUR 5.0 {} V1 Strange"},
	}, {
		what: "burns, mints and unlocks by their kind",
		events: []printed{chosen(0, 1, "rules", "BurnMintFactory_BurnMint", printed{"extraArgs": printed{"meta": tagged("tx-kind", "burn", "burned", "1.0", "reason", "fee")}}, printed{"outputCids": []any{}}), ended(1, "s1"),
			chosen(2, 4, "rules", "Release", printed{}, printed{"meta": tagged("tx-kind", "unlock")}), ended(3, "s2"), coin(4, "s6", "alice", "EUR", "2.0")},
		want: []string{"alice Burn EUR -1.0 {} 1.0 0.0 fee V1 BurnMintFactory_BurnMint", "alice Unlock EUR 0.0 {} V1 Release"},
	}, {
		what:   "an offer is no transfer yet",
		events: []printed{offerOf(0, "i1", nil), offerOf(1, "i2", nil), offerOf(2, "i3", nil)},
	}, {
		what: "an offer that is continued by another one",
		events: []printed{chosen(0, 2, "i1", "TransferInstruction_Update", printed{}, answered("Pending", printed{"transferInstructionCid": "i4"})), ended(1, "i1"), offerOf(2, "i4", "i1"),
			chosen(3, 4, "i3", "Offer_Expire", printed{}, printed{}), ended(4, "i3")},
	}, {
		what: "accepted in the way of V2: the archival lies below",
		events: []printed{chosen(0, 5, "i4", "TransferInstruction_Accept", printed{"actors": []any{"bob"}}, answered("Completed", printed{})), ended(1, "i4"), ended(2, "s5"), coin(3, "b5", "bob", "EUR", "5.0"),
			chosen(6, 7, "i2", "TransferInstruction_Withdraw", printed{}, answered("Failed", printed{})), ended(7, "i2")},
		want:   []string{"alice TransferOut EUR -5.0 {bob} 0 0.0 V1 TransferInstruction_Accept", "bob TransferIn EUR 5.0 {alice} 0 0 V1 TransferInstruction_Accept"},
		listed: []string{"alice bob 5.0"},
	}, {
		what: "V2: minted and given to nobody",
		events: []printed{tokenV2(0, "t1", account("alice"), "10.0"), tokenV2(1, "t2", special("burn"), "3.0"),
			logged(2, "bank", "alice", nil, []string{"t1"}, leg("mint", "ReceiverSide", special("mint"), "10.0", tagged("reason", "wages")))},
		want: []string{"alice Mint EUR 10.0 {} 0 10.0 wages V2"},
	}, {
		what: "V2: a transfer that both sides tell, with a merge and a holding that is made and ended",
		events: []printed{ended(0, "t1"), tokenV2(1, "t3", account("alice"), "10.0"), ended(2, "t3"), tokenV2(3, "t4", account("alice"), "6.0"), tokenV2(4, "t5", account("bob"), "4.0"),
			logged(5, "bank", "alice", []string{"t1"}, []string{"t3"}),
			logged(6, "bank", "alice", []string{"t3"}, []string{"t4"}, leg("l1", "SenderSide", account("bob"), "4.0", tagged("reason", "lunch"))),
			logged(7, "bank", "bob", []string{}, []string{"t5"}, leg("l1", "ReceiverSide", account("alice"), "4.0", tagged("reason", "lunch")))},
		want:   []string{"alice MergeSplit EUR 0.0 {} 0 0 V2", "alice TransferOut EUR -4.0 {bob} 0 0 lunch V2", "bob TransferIn EUR 4.0 {alice} 0 0 lunch V2"},
		listed: []string{"alice bob 4.0 lunch"},
	}, {
		what: "V2: a settlement both ways, with a burn",
		events: []printed{ended(0, "t4"), tokenV2(1, "t6", account("alice"), "3.0"),
			logged(2, "bank", "alice", []string{"t4"}, []string{"t6"}, leg("l1", "SenderSide", account("bob"), "4.0", tagged()), leg("l2", "ReceiverSide", account("carol"), "2.0", tagged()),
				leg("fee", "SenderSide", special("burn"), "1.0", tagged()))},
		want:   []string{"alice Settlement EUR -3.0 {bob,carol} 1.0 0 V2"},
		listed: []string{"alice bob 4.0", "carol alice 2.0"},
	}, {
		what: "V2: a log of somebody else, and one of another account, explain nothing",
		events: []printed{tokenV2(0, "t7", account("alice"), "8.0"), tokenV2(1, "t8", account("bob"), "9.0"),
			logged(2, "mallory", "alice", nil, []string{"t7"}, leg("l1", "ReceiverSide", account("bob"), "8.0", tagged())), logged(3, "bank", "alice", nil, []string{"t8"})},
		want: []string{"alice Create EUR 8.0 {}", "bob Create EUR 9.0 {}"},
	}, {
		what: "V1's exercise comes before V2's log",
		events: []printed{chosen(0, 4, "rules", "TransferFactory_Transfer", printed{"transfer": printed{"sender": account("alice")}}, answered("Completed", printed{})), ended(1, "t7"), tokenV2(2, "t9", account("bob"), "8.0"),
			logged(3, "bank", "alice", []string{"t7"}, nil, leg("l1", "SenderSide", account("bob"), "8.0", tagged())), logged(4, "bank", "bob", nil, []string{"t9"}, leg("l1", "ReceiverSide", account("alice"), "8.0", tagged()))},
		want:   []string{"alice TransferOut EUR -8.0 {bob} 0 0.0 V1 TransferFactory_Transfer", "bob TransferIn EUR 8.0 {alice} 0 0 V1 TransferFactory_Transfer"},
		listed: []string{"alice bob 8.0"},
	}, {
		what:   "what only ends, where no witness is its owner",
		events: []printed{ended(0, "b2")},
		want:   []string{"bob Archive EUR -30.0 {}"},
	}, {
		what: "V2: two settlements whose legs have the same id, of which two are alike but for the amount",
		events: []printed{ended(0, "t6"), tokenV2(1, "t10", account("bob"), "1.0"), tokenV2(2, "t11", account("carol"), "0.5"), tokenV2(3, "t12", account("bob"), "1.5"),
			logged(4, "bank", "alice", []string{"t6"}, nil, leg("leg0", "SenderSide", account("bob"), "1.0", tagged()), leg("leg0", "SenderSide", account("carol"), "0.5", tagged()),
				leg("leg0", "SenderSide", account("bob"), "1.5", tagged())),
			logged(5, "bank", "bob", nil, []string{"t10"}, leg("leg0", "ReceiverSide", account("alice"), "1.0", tagged())),
			logged(6, "bank", "carol", nil, []string{"t11"}, leg("leg0", "ReceiverSide", account("alice"), "0.5", tagged())),
			logged(7, "bank", "bob", nil, []string{"t12"}, leg("leg0", "ReceiverSide", account("alice"), "1.5", tagged()))},
		want: []string{"alice TransferOut EUR -3.0 {bob,bob,carol} 0 0 V2", "bob TransferIn EUR 1.0 {alice} 0 0 V2", "carol TransferIn EUR 0.5 {alice} 0 0 V2",
			"bob TransferIn EUR 1.5 {alice} 0 0 V2"},
		listed: []string{"alice bob 1.0", "alice bob 1.5", "alice carol 0.5"},
	}, {
		what:   "an offer that is seen only as a witness, and another one",
		events: []printed{witnessed(offerOf(0, "i5", nil)), offerOf(1, "i6", nil)},
	}, {
		what: "V2: a log of which V1's exercise explains a part explains nothing",
		events: []printed{ended(0, "t9"), tokenV2(1, "t13", account("bob"), "8.0"),
			chosen(2, 4, "rules", "Send", printed{}, printed{"meta": tagged("tx-kind", "transfer", "sender", "bob")}), ended(3, "t13"), tokenV2(4, "t14", account("alice"), "8.0"),
			logged(5, "bank", "bob", []string{"t9", "t13"}, []string{"t13"}, leg("l1", "SenderSide", account("alice"), "8.0", tagged())),
			logged(6, "bank", "alice", nil, []string{"t14"}, leg("l1", "ReceiverSide", account("bob"), "8.0", tagged()))},
		want:   []string{"bob Archive EUR -8.0 {}", "bob Create EUR 8.0 {}", "alice TransferIn EUR 8.0 {bob} 0 0 V1 Send", "bob TransferOut EUR -8.0 {alice} 0 0.0 V1 Send"},
		listed: []string{"bob alice 8.0"},
	}, {
		what: "what is allocated", events: []printed{coin(0, "a50", "alice", "USD", "50.0")}, want: []string{"alice Create USD 50.0 {}"},
	}, {
		what: "V1: an allocation of V2 is settled: what moves to whom is not said",
		events: []printed{chosen(0, 2, "rules", "Settle", printed{"meta": tagged("tx-kind", "settle-V2-allocation")}, printed{}),
			ended(1, "a50"), coin(2, "b50", "bob", "USD", "50.0")},
		want: []string{"alice SettleV2Allocation USD -50.0 {} V1 Settle", "bob SettleV2Allocation USD 50.0 {} V1 Settle"},
	},
}

// The rules of the token standard, one update each.
func TestRulesOfMovements(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	var updates []any
	for i, rule := range movementRules {
		for _, event := range rule.events {
			for _, body := range event {
				body.(printed)["offset"] = i + 1
			}
		}
		updates = append(updates, printed{"update": printed{"Transaction": printed{"value": printed{
			"updateId": fmt.Sprint("update-", i), "offset": i + 1, "synchronizerId": "sync::1", "recordTime": fmt.Sprintf("2026-01-01T00:00:%02dZ", i), "events": rule.events,
			"effectiveAt": "2026-01-01T00:00:00Z", "commandId": "", "workflowId": "", "traceContext": nil, "externalTransactionHash": nil, "paidTrafficCost": nil,
		}}}})
	}
	body, err := json.Marshal(updates)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "updates.json")
	require.NoError(t, os.WriteFile(file, body, 0o600))
	replay, err := sandbox.LoadReplay(file)
	require.NoError(t, err)
	database := throwaway.Migrated(t, migrate)
	scope := defaultScope()
	scope.Shape = "ledger-effects"
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, replay, sandbox.ServerOptions{}), scope), testLogger(t)))

	for i, rule := range movementRules {
		require.Equal(t, append([]string{}, rule.want...), append([]string{}, texts(t, database, `
			SELECT concat_ws(' ', party, label, instrument, amount, counterparties, burned_amount, minted_amount, reason, standard, choice) FROM ledger.token_events
			WHERE ledger_offset = $1 ORDER BY node_id, party, instrument`, i+1)...), rule.what)
		require.Equal(t, append([]string{}, rule.listed...), append([]string{}, texts(t, database, `
			SELECT concat_ws(' ', sender, receiver, amount, reason) FROM ledger.token_transfers WHERE ledger_offset = $1 ORDER BY node_id, sender, receiver, amount`, i+1)...), rule.what)
	}
	// A party's rows are the same if it is asked for, and add up to what it holds.
	require.Equal(t, texts(t, database, "SELECT e::text FROM ledger.token_events e ORDER BY 1"), texts(t, database, `
		SELECT e::text FROM (SELECT DISTINCT party FROM ledger.token_events) p CROSS JOIN LATERAL ledger.token_events_of(p.party) e ORDER BY 1`))
	require.Empty(t, texts(t, database, `
		SELECT concat_ws(' ', x.party, x.instrument, x.balance, x.held)
		FROM (
			SELECT DISTINCT ON (p.party, s.instrument) p.party, s.instrument, s.balance, ledger.balance_at_offset(p.party, s.instrument, $1) AS held
			FROM (SELECT DISTINCT party FROM ledger.token_events) p CROSS JOIN LATERAL ledger.party_statement(p.party, 0, $1) s
			ORDER BY p.party, s.instrument, s.ledger_offset DESC, s.node_id DESC) x
		WHERE x.balance IS DISTINCT FROM x.held`, len(movementRules)))
	require.Equal(t, []string{
		"i1 i1 continued TransferInstruction_Update i4 7 8 rent", "i2 i2 withdrawn TransferInstruction_Withdraw 7 9 rent", "i3 i3 archived 7 8 rent",
		"i4 i1 completed TransferInstruction_Accept 8 9 rent", "i6 i6 pending 17 rent",
	}, texts(t, database, `
		SELECT concat_ws(' ', contract_id, transfer_id, status, choice, next_contract_id, created_offset, ended_offset, reason)
		FROM ledger.pending_instructions ORDER BY contract_id`))

	// Who is limited to a party sees what its events say, and nothing of others'.
	const movements = "SELECT concat_ws(' ', ledger_offset, party, label, amount) FROM ledger.token_events ORDER BY ledger_offset, node_id, party, instrument"
	all := texts(t, database, movements)
	for party, sees := range map[string][]string{
		"alice": all, // she is a witness of all
		"bob": {"1 bob Create 7.0", "2 bob Create 30.0", "3 bob Create 69.0", "4 bob Create 50.0", "4 bob Create 1.0", "9 bob Create 5.0", "11 bob Create 4.0", "13 bob Create 9.0", "14 bob Create 8.0",
			"16 bob Create 1.0", "16 bob Create 1.5", "18 bob Create 8.0", "20 bob Create 50.0"},
		"carol": {"16 carol Create 0.5"},
	} {
		_, as := limitedRole(t, database, "_"+party, store.Reader{Parties: []string{party}})
		require.ElementsMatch(t, sees, texts(t, as, movements), party)
		require.Equal(t, texts(t, as, "SELECT e::text FROM ledger.token_events e WHERE party = $1 ORDER BY 1", party),
			texts(t, as, "SELECT e::text FROM ledger.token_events_of($1) e ORDER BY 1", party), party)
		require.Len(t, texts(t, as, "SELECT contract_id FROM ledger.pending_instructions"), map[string]int{"alice": 5}[party], party)
	}

	// What nobody says was burned or minted is not explained.
	const statement = `SELECT concat_ws(' ', s.label, s.amount, s.transferred, s.minted, s.burned, s.unexplained) FROM ledger.party_statement($1, $2::bigint, $2::bigint + 1) s ORDER BY s.node_id`
	require.Equal(t, []string{"SettleV2Allocation -50.0 0 0 0 -50.0"}, texts(t, database, statement, "alice", len(movementRules)-1))
	require.Equal(t, []string{"TransferOut -31.0 -30.0 0 1.0 0.0", "Create 1.5 0 0 0 1.5"}, texts(t, database, statement, "alice", 1))

	// One that has left the scope is not on its way.
	_, err = open(t, database).Exec(t.Context(), "DELETE FROM indexer.active_contracts WHERE contract_id = 'i6'")
	require.NoError(t, err)
	require.Equal(t, []string{"unknown false"}, texts(t, database, "SELECT concat_ws(' ', status, pending::text, ended_offset) FROM ledger.pending_instructions WHERE contract_id = 'i6'"))

	// It is on its way from its last reassignment on, also where the one before is shown behind that, until it is seen
	// to arrive, also where that is shown before its unassignment.
	_, err = open(t, database).Exec(t.Context(), "CREATE TABLE indexer.reassignments_all PARTITION OF indexer.reassignments DEFAULT")
	require.NoError(t, err)
	for _, moved := range []struct{ rows, status string }{
		{"(16, 1, 'unassigned')", "reassigning"},
		{"(15, 1, 'assigned')", "unknown"},
		{"(14, 2, 'unassigned')", "reassigning"},
		{"(13, 2, 'assigned')", "unknown"},
	} {
		_, err = open(t, database).Exec(t.Context(), `
			INSERT INTO indexer.reassignments (ledger_offset, reassignment_counter, node_id, template_ref, source_ref, target_ref, kind, contract_id, reassignment_id)
			SELECT v.at, v.n, 99, c.template_ref, 1, 2, v.kind, 'i6', 'r' FROM (VALUES `+moved.rows+`) v (at, n, kind), indexer.created c WHERE c.contract_id = 'i6'`)
		require.NoError(t, err)
		require.Equal(t, []string{moved.status}, texts(t, database, "SELECT status FROM ledger.pending_instructions WHERE contract_id = 'i6'"), moved.rows)
	}

	// Nothing above the watermark is shown.
	_, err = open(t, database).Exec(t.Context(), "UPDATE indexer.checkpoints SET ledger_offset = 6")
	require.NoError(t, err)
	require.Equal(t, []string{"1 6", "1 4", ""}, []string{
		texts(t, database, "SELECT min(ledger_offset) || ' ' || max(ledger_offset) FROM ledger.token_events")[0],
		texts(t, database, "SELECT (min(ledger_offset) = 2)::int || ' ' || max(ledger_offset) FROM ledger.token_transfers")[0],
		strings.Join(texts(t, database, "SELECT contract_id FROM ledger.pending_instructions WHERE NOT pending OR created_offset > 6"), " "),
	})
}
