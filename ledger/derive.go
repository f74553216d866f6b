package ledger

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RulesVersion is the version of the rules by which records follow from updates. Whoever changes what Records returns
// raises it: then stored records of an earlier version are derived again.
const RulesVersion = 1

// TransferUpdate is the part of an update of a network from which the records of the transaction history are derived:
// its exercises of certain choices, and its amulets.
type TransferUpdate struct {
	Offset         Offset
	ID             string
	EffectiveAt    time.Time
	SynchronizerID string
	Exercises      []TransferExercise // of TransferChoices, in the order of their nodes
	Amulets        []TransferAmulet   // that were created or archived, in the order of their nodes; see WantsAmulets

	// Noted are its records as they followed before anything of it was redacted; nil: they follow from what it says.
	Noted []Record
}

// TransferExercise is an exercise that a record follows from, or that decides which records follow from the exercises
// below it.
type TransferExercise struct {
	NodeID, LastDescendant int32
	ContractID             string
	Module, Entity, Choice string
	Argument, Result       JSON
	Contract               JSON // the payload of the contract, where it was asked for and is known
}

// TransferAmulet is an amulet, locked or not, that an update creates or archives.
type TransferAmulet struct {
	NodeID     int32
	ContractID string
	Created    bool
	Payload    JSON // nil: not known
}

// transferRule says which records follow from an exercise of a choice.
type transferRule int

const (
	ruleTransfer transferRule = iota + 1 // AmuletRules_Transfer, whose result sums it up
	ruleSend                             // a transfer to a receiver that agreed beforehand
	ruleFactory
	ruleAccept
	ruleAbort
	ruleAllocate
	ruleExecute
	ruleMint
	ruleTap
	ruleNothing // none: the service derives no records from it, nor from what is below it
	ruleEntry   // payment for a name: the first record of the first collection below it
	ruleCollect
)

var transferRules = map[string]transferRule{
	"AmuletRules AmuletRules_Transfer":                              ruleTransfer,
	"TransferPreapproval TransferPreapproval_Send":                  ruleSend,
	"TransferPreapproval TransferPreapproval_SendV2":                ruleSend,
	"ExternalPartyAmuletRules TransferFactory_Transfer":             ruleFactory,
	"AmuletTransferInstruction TransferInstruction_Accept":          ruleAccept,
	"AmuletTransferInstruction TransferInstruction_Withdraw":        ruleAbort,
	"AmuletTransferInstruction TransferInstruction_Reject":          ruleAbort,
	"ExternalPartyAmuletRules AllocationFactory_Allocate":           ruleAllocate,
	"AmuletAllocation Allocation_ExecuteTransfer":                   ruleExecute,
	"AmuletRules AmuletRules_Mint":                                  ruleMint,
	"AmuletRules AmuletRules_DevNet_Tap":                            ruleTap,
	"AmuletRules AmuletRules_BuyMemberTraffic":                      ruleNothing,
	"AmuletRules AmuletRules_CreateTransferPreapproval":             ruleNothing,
	"AmuletRules AmuletRules_CreateExternalPartySetupProposal":      ruleNothing,
	"TransferPreapproval TransferPreapproval_Renew":                 ruleNothing,
	"AmuletAllocation Allocation_Settle":                            ruleNothing,
	"AmuletAllocationV2 Allocation_Settle":                          ruleNothing,
	"AnsRules AnsRules_CollectInitialEntryPayment":                  ruleEntry,
	"AnsRules AnsRules_CollectEntryRenewalPayment":                  ruleEntry,
	"SubscriptionInitialPayment SubscriptionInitialPayment_Collect": ruleCollect,
	"SubscriptionPayment SubscriptionPayment_Collect":               ruleCollect,
}

// TransferChoices returns the choices whose exercises a TransferUpdate has.
func TransferChoices() []string {
	var list []string
	for name := range transferRules {
		_, choice, _ := strings.Cut(name, " ")
		list = append(list, choice)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (e *TransferExercise) rule() transferRule { return transferRules[e.Entity+" "+e.Choice] }

// WantsAmulets reports whether the records of the update can't be derived without its amulets.
func (u *TransferUpdate) WantsAmulets() bool {
	return slices.ContainsFunc(u.Exercises, func(e TransferExercise) bool {
		return e.rule() != ruleTransfer && e.rule() != ruleAbort && e.rule() != ruleNothing
	})
}

// WantsContract reports whether the payload of the exercise's contract is needed: its result does not say who sent.
func (e *TransferExercise) WantsContract() bool {
	if rule := e.rule(); rule != ruleAccept && rule != ruleExecute {
		return false
	}
	var r instructionResult
	return json.Unmarshal(e.Result, &r) == nil && r.Meta.Values[metaSender] == ""
}

// The token standard's metadata.
const (
	metaSender = "splice.lfdecentralizedtrust.org/sender"
	metaReason = "splice.lfdecentralizedtrust.org/reason"
)

// EventIDOf returns the event id of a derived record, in the form that Scan services use: update id and node id.
func EventIDOf(updateID string, node int32) string {
	return "#" + updateID + ":" + strconv.Itoa(int(node))
}

// Records derives the records of the transaction history, in order. Their Offset is nil: it belonged to the service's
// own participant. An exercise that can't be read gives a record of an unknown kind.
func (u *TransferUpdate) Records() []Record {
	if u.Noted == nil {
		return u.walk(0, 1<<31-1, nil)
	}
	list := slices.Clone(u.Noted)
	for i := range list {
		list[i].Rules, list[i].At = RulesVersion, u.Offset // by whichever they were noted, nothing else follows by these
	}
	return list
}

// walk appends the records of the exercises from index i on, up to node id last. It skips exercises below one that
// explains them.
func (u *TransferUpdate) walk(i int, last int32, list []Record) []Record {
	for i < len(u.Exercises) && u.Exercises[i].NodeID <= last {
		e := &u.Exercises[i]
		records, explained, err := u.explain(i)
		if err != nil {
			records, explained = []Record{u.unknown(e)}, true
		}
		list = append(list, records...)
		if i++; explained {
			for i < len(u.Exercises) && u.Exercises[i].NodeID <= e.LastDescendant {
				i++
			}
		}
	}
	return list
}

// explain returns the records of exercise i. explained says that they account for everything below it too.
func (u *TransferUpdate) explain(i int) (records []Record, explained bool, err error) {
	e := &u.Exercises[i]
	one := func(t Record, err error) ([]Record, bool, error) { return []Record{t}, true, err }
	switch e.rule() {
	case ruleTransfer:
		return one(u.transfer(e, e))
	case ruleSend:
		return one(u.send(i))
	case ruleFactory:
		return u.factory(i)
	case ruleAccept:
		return one(u.accepted(i, "transfer_instruction_accept"))
	case ruleExecute:
		return one(u.accepted(i, ""))
	case ruleAllocate:
		return u.allocated(i)
	case ruleAbort:
		kind := "reject"
		if e.Choice == "TransferInstruction_Withdraw" {
			kind = "withdraw"
		}
		t := u.record(e, RecordAbort, "abort_transfer_instruction")
		t.Abort = &AbortedInstruction{InstructionCID: e.ContractID, Kind: &kind}
		return one(t, nil)
	case ruleMint:
		return one(u.issued(e, RecordMint, "mint"))
	case ruleTap:
		return one(u.issued(e, RecordTap, "devnet_tap"))
	case ruleNothing:
		return nil, true, nil
	case ruleEntry:
		if c := u.below(i, ruleCollect); c >= 0 {
			if records = u.walk(c+1, u.Exercises[c].LastDescendant, nil); len(records) > 1 {
				records = records[:1]
			}
		}
		return records, true, nil
	}
	return nil, false, nil
}

// below returns the first exercise below another one that has one of the rules; -1: none.
func (u *TransferUpdate) below(i int, rules ...transferRule) int {
	for k := i + 1; k < len(u.Exercises) && u.Exercises[k].NodeID <= u.Exercises[i].LastDescendant; k++ {
		if slices.Contains(rules, u.Exercises[k].rule()) {
			return k
		}
	}
	return -1
}

// record returns a record of an exercise with the members that all kinds have.
func (u *TransferUpdate) record(e *TransferExercise, kind RecordKind, typ string) Record {
	t := Record{EventID: EventIDOf(u.ID, e.NodeID), Kind: kind, Type: &typ, Date: Time{Time: u.EffectiveAt,
		Valid: true}, Rules: RulesVersion, At: u.Offset}
	if u.SynchronizerID != "" {
		t.DomainID = &u.SynchronizerID
	}
	if kind != RecordAbort {
		t.Word = "amulet"
	}
	return t
}

func (u *TransferUpdate) unknown(e *TransferExercise) Record {
	t := u.record(e, RecordUnknown, e.Choice)
	raw := func(value JSON) json.RawMessage {
		if value == nil {
			return json.RawMessage("null")
		}
		return json.RawMessage(value)
	}
	t.Word = ""
	t.Raw, _ = json.Marshal(map[string]any{ // of values that a database holds as JSON
		"event_id": t.EventID, "choice": e.Choice, "contract_id": e.ContractID, "choice_argument": raw(e.Argument),
		"exercise_result": raw(e.Result),
	})
	return t
}

func (u *TransferUpdate) issued(e *TransferExercise, kind RecordKind, typ string) (Record, error) {
	t := u.record(e, kind, typ)
	var r struct {
		AmuletSum struct {
			Amulet string      `json:"amulet"`
			Round  roundNumber `json:"round"`
		} `json:"amuletSum"`
	}
	if err := json.Unmarshal(e.Result, &r); err != nil {
		return t, err
	}
	a, err := u.createdAmulet(r.AmuletSum.Amulet)
	if err != nil {
		return t, err
	}
	if t.Round, err = r.AmuletSum.Round.number(); err != nil {
		return t, err
	}
	owned := &OwnedAmount{Owner: a.Owner, Amount: a.Amount.InitialAmount.value()}
	if kind == RecordMint {
		t.Mint = owned
	} else {
		t.Tap = owned
	}
	return t, nil
}
