package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// transferUpdates makes of updates what a store reads of them.
func transferUpdates(t *testing.T, updates []Update) (list []TransferUpdate) {
	t.Helper()
	payloads := map[string]JSON{}
	for _, u := range updates {
		m := TransferUpdate{Offset: u.Offset, ID: u.ID, EffectiveAt: u.EffectiveAt.Time}
		for _, e := range u.Created {
			if payloads[e.ContractID] = e.Argument; strings.HasSuffix(e.TemplateID, ":Splice.Amulet:Amulet") || strings.HasSuffix(e.TemplateID, ":Splice.Amulet:LockedAmulet") {
				m.Amulets = append(m.Amulets, TransferAmulet{NodeID: e.NodeID, ContractID: e.ContractID, Created: true, Payload: e.Argument})
			}
		}
		for _, e := range u.Exercised {
			id, err := ParseTemplateID(e.TemplateID)
			require.NoError(t, err)
			x := TransferExercise{
				NodeID: e.NodeID, LastDescendant: e.LastDescendantNodeID, ContractID: e.ContractID, Module: id.Module, Entity: id.Entity, Choice: e.Choice,
				Argument: e.Argument, Result: e.Result,
			}
			if x.rule() != 0 {
				m.Exercises = append(m.Exercises, x)
			}
			if e.Consuming && id.Module == "Splice.Amulet" {
				m.Amulets = append(m.Amulets, TransferAmulet{NodeID: e.NodeID, ContractID: e.ContractID, Payload: payloads[e.ContractID]})
			}
		}
		list = append(list, m)
	}
	return list
}

func hint(party string) string { name, _, _ := strings.Cut(party, "::"); return name }

func orUnknown[V any](value *V) string {
	if value == nil {
		return "?"
	}
	return fmt.Sprint(*value)
}

// What a participant recorded of a real network (amulets of Splice 0.6) makes these records.
func TestRecordsOfRecordedUpdates(t *testing.T) {
	t.Parallel()
	got, err := DecodeUpdateList(recordedUpdates(t), 0)
	require.NoError(t, err)
	var list []string
	for _, u := range transferUpdates(t, got.Updates) {
		for _, r := range u.Records() {
			text := fmt.Sprint(u.Offset, " ", *r.Type)
			if x := r.Transfer; x != nil {
				text += fmt.Sprintf(" %s %s", hint(x.Sender.Party), orUnknown(x.Sender.InputAmount))
				for _, to := range x.Receivers {
					text += fmt.Sprintf(" > %s %s", hint(to.Party), to.Amount)
				}
				if x.Kind != nil {
					text += " " + *x.Kind
				}
				if x.InstructionReceiver != nil {
					text += " " + hint(*x.InstructionReceiver)
				}
				text += " " + orUnknown(r.Round)
			}
			if r.Tap != nil {
				text += fmt.Sprint(" ", hint(r.Tap.Owner), " ", r.Tap.Amount)
			}
			if r.Abort != nil {
				text += " " + *r.Abort.Kind
			}
			list = append(list, text+string(r.Raw))
		}
	}
	require.Equal(t, strings.TrimSpace(recordedRecords), strings.Join(list, "\n"))
}

const recordedRecords = `
5 transfer aliceValidator 199901.3600000000 > alice 200.0000000000 preapproval_send 0
6 transfer alice 200.0000000000 > aliceValidator 100.0000000000 preapproval_send 0
7 transfer alice 100.0000000000 > aliceValidator 10.0000000000 preapproval_send 1
8 devnet_tap alice 6000.0000000000
9 transfer alice 6090.0000000000 > alice 1000.0000000000 create_transfer_instruction bob 0
10 transfer alice 5090.0000000000 > alice 1000.0000000000 create_transfer_instruction bob 0
11 transfer alice 4090.0000000000 > alice 1000.0000000000 create_transfer_instruction bob 0
12 transfer alice 3090.0000000000 > alice 1000.0000000000 create_transfer_instruction bob 0
13 transfer alice 2090.0000000000 > alice 1000.0000000000 create_transfer_instruction bob 0
14 transfer alice 1000.0000000000 > bob 1000.0000000000 transfer_instruction_accept 0
15 abort_transfer_instruction reject
16 abort_transfer_instruction withdraw
22 transfer bob ? > alice 200.0000000000 transfer_instruction_accept 0
23 abort_transfer_instruction reject
24 abort_transfer_instruction withdraw
25 transfer alice 4290.0000000000 > alice 1.0000000000 0
26 abort_transfer_instruction reject
29 transfer charlie 500.0000000000 > alice 500.0000000000 preapproval_send 1
`

// What the simulated network has no case of.
func TestRecordsOfRareShapes(t *testing.T) {
	t.Parallel()
	const (
		account  = `{"owner":"alice::1","provider":null,"id":""}`
		nobody   = `{"owner":null,"provider":null,"id":"cip-112/burn"}`
		done     = `{"output":{"tag":"TransferInstructionResult_Completed","value":{"receiverHoldingCids":["a1"]}},"meta":{"values":{}}}`
		pending  = `{"output":{"tag":"TransferInstructionResult_Pending","value":{"transferInstructionCid":"x"}}}`
		transfer = `{"transfer":{"sender":"alice::1","outputs":[{"receiver":"bob::1","amount":"2.0","receiverFeeRatio":"0.5"}]}}`
		result   = `{"round":{"number":"7"},"createdAmulets":[{"value":"a1"}],"summary":{"inputAmuletAmount":"3.0","holdingFees":"0E-10","outputFees":["0.1"],
			"senderChangeFee":"0.0","senderChangeAmount":"0.95","balanceChanges":[]}}`
	)
	factory := func(sender, receiver, reason string) JSON {
		return JSON(`{"transfer":{"sender":` + sender + `,"receiver":` + receiver + `,"amount":"5.0","instrumentId":{"admin":"dso::1","id":"Amulet"},"meta":{"values":{"` + metaReason + `":"` + reason + `"}}}}`)
	}
	exercise := func(node, last int32, name, argument, result string) TransferExercise {
		entity, choice, _ := strings.Cut(name, " ")
		return TransferExercise{NodeID: node, LastDescendant: last, ContractID: "c", Entity: entity, Choice: choice, Argument: JSON(argument), Result: JSON(result)}
	}
	rules := func(node int32) TransferExercise {
		return exercise(node, node+2, "AmuletRules AmuletRules_Transfer", transfer, result)
	}
	for what, c := range map[string]struct {
		exercises []TransferExercise
		want      []string
	}{
		"an account of nobody is its administrator's": {
			[]TransferExercise{exercise(0, 3, "ExternalPartyAmuletRules TransferFactory_Transfer", string(factory(account, nobody, "gift")), done)}, []string{"#u:0 alice dso 5.0 gift"}},
		"from nobody": {
			[]TransferExercise{exercise(0, 3, "ExternalPartyAmuletRules TransferFactory_Transfer", string(factory(nobody, account, "mint")), done)}, []string{"#u:0 dso alice 5.0 mint"}},
		"the factory adds nothing to a transfer below it": {
			[]TransferExercise{exercise(0, 3, "ExternalPartyAmuletRules TransferFactory_Transfer", string(factory(account, account, "not read")), done), rules(1)}, []string{"#u:1 alice bob 2.0000000000 fee 0.0500000000"}},
		"a name's payment is told once": {
			[]TransferExercise{
				exercise(0, 9, "AnsRules AnsRules_CollectInitialEntryPayment", `{}`, `{}`), exercise(1, 5, "SubscriptionInitialPayment SubscriptionInitialPayment_Collect", `{}`, `{}`), rules(2),
				exercise(6, 9, "SubscriptionPayment SubscriptionPayment_Collect", `{}`, `{}`), rules(7)}, []string{"#u:2 alice bob 2.0000000000 fee 0.0500000000"}},
		"a name without a payment": {[]TransferExercise{exercise(0, 9, "AnsRules AnsRules_CollectEntryRenewalPayment", `{}`, `{}`), rules(1)}, nil},
		"what purchases do below is no transfer": {
			[]TransferExercise{exercise(0, 3, "TransferPreapproval TransferPreapproval_Renew", `{}`, `{}`), rules(1), rules(4)}, []string{"#u:4 alice bob 2.0000000000 fee 0.0500000000"}},
		"an offer without its amount is kept": {
			[]TransferExercise{exercise(0, 3, "ExternalPartyAmuletRules TransferFactory_Transfer", `{"transfer":{"sender":"alice::1","receiver":"bob::1"}}`, pending), rules(1)}, []string{"#u:0 unknown"}},
		"what can't be read is kept": {
			[]TransferExercise{exercise(0, 3, "AmuletAllocation Allocation_ExecuteTransfer", `{}`, `{"receiverHoldingCids":[]}`), rules(1)}, []string{"#u:0 unknown"}},
	} {
		u := TransferUpdate{ID: "u", Exercises: c.exercises, Amulets: []TransferAmulet{{NodeID: 2, ContractID: "a1", Created: true, Payload: JSON(
			`{"owner":"bob::1","amount":{"initialAmount":"1.9","createdAt":{"number":"7"},"ratePerRound":{"rate":"0.01"}}}`)}}}
		var got []string
		for _, r := range u.Records() {
			if r.Transfer == nil {
				got = append(got, r.EventID+" "+string(r.Kind))
				continue
			}
			to := r.Transfer.Receivers[0]
			text := fmt.Sprintf("%s %s %s %s", r.EventID, hint(r.Transfer.Sender.Party), hint(to.Party), to.Amount)
			if r.Transfer.Description != nil {
				text += " " + *r.Transfer.Description
			}
			if fee := orUnknown(r.Transfer.Sender.Fee); fee != "0.0000000000" {
				text += " fee " + fee
			}
			got = append(got, text)
		}
		require.Equal(t, c.want, got, what)
	}
}
