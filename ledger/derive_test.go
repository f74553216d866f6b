package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// movedUpdates makes of updates what a store reads of them.
func movedUpdates(t *testing.T, updates []Update) (list []MovedUpdate) {
	t.Helper()
	payloads := map[string]JSON{}
	for _, u := range updates {
		m := MovedUpdate{Offset: u.Offset, ID: u.ID, EffectiveAt: u.EffectiveAt.Time}
		for _, e := range u.Created {
			if payloads[e.ContractID] = e.Argument; strings.HasSuffix(e.TemplateID, ":Splice.Amulet:Amulet") || strings.HasSuffix(e.TemplateID, ":Splice.Amulet:LockedAmulet") {
				m.Amulets = append(m.Amulets, MovedAmulet{NodeID: e.NodeID, ContractID: e.ContractID, Created: true, Payload: e.Argument})
			}
		}
		for _, e := range u.Exercised {
			id, err := ParseTemplateID(e.TemplateID)
			require.NoError(t, err)
			x := MovingExercise{
				NodeID: e.NodeID, LastDescendant: e.LastDescendantNodeID, ContractID: e.ContractID, Module: id.Module, Entity: id.Entity, Choice: e.Choice,
				Argument: e.Argument, Result: e.Result,
			}
			if x.rule() != 0 {
				m.Exercises = append(m.Exercises, x)
			}
			if e.Consuming && id.Module == "Splice.Amulet" {
				m.Amulets = append(m.Amulets, MovedAmulet{NodeID: e.NodeID, ContractID: e.ContractID, Payload: payloads[e.ContractID]})
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
	for _, u := range movedUpdates(t, got.Updates) {
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
