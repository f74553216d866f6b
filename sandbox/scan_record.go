package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// transfer is the content of a transfer's record. Amounts are in units.
type transfer struct {
	sender          uint16
	input           int64
	consumed        int64 // what was archived; input, but where the service has no figures
	holdingFees     int64
	deal            deal
	receivers       []receiver
	changes         []balanceChange
	kind            string // empty: a plain one
	instruction     int32  // contract; -1: none
	offeredTo       int    // party; -1: it offers nothing
	offered         int64
	descriptionJSON string // empty: none
}

type receiver struct {
	party       uint16
	amount, fee int64
}

type balanceChange struct {
	party         uint16
	initial, rate int64
}

// movementsNamed returns the movements whose records have an event id.
func (v *view) movementsNamed(id string) (list []int32) {
	update, node, found := strings.Cut(strings.TrimPrefix(id, "#"), ":")
	i, ok := v.updateNamed(update)
	if !found || !ok || !strings.HasPrefix(id, "#") {
		return nil
	}
	for n := v.firstMovement(i); n < len(v.movements) && int(v.movements[n].update) == i; n++ {
		if strconv.Itoa(int(v.movements[n].node)) == node {
			list = append(list, int32(n))
		}
	}
	return list
}

// moved returns the events of a movement that its record shows. A payment of a subscription is unlocked before, and one
// for a name is burned after.
func (v *view) moved(m *movement) []event {
	if m.kind == moveName {
		return v.events[m.first+nameTransfer : m.first+nameTransfer+2]
	}
	return v.events[m.first : m.first+m.count]
}

// transferOf adds up what a movement did.
func (v *view) transferOf(number int) transfer {
	m := &v.movements[number]
	round := roundOf(&v.updates[m.update])
	t := transfer{instruction: -1, offeredTo: -1}
	q := v.termsOf(number, m.kind, m.form)
	var created []*contract
	for _, e := range v.moved(m) {
		c := &v.contracts[e.contract]
		switch {
		case c.kind/2 == templateTransferInstruction:
			t.instruction = e.contract
		case !c.kind.holdsAmulet():
			if e.choice >= 0 {
				t.sender = c.parties[1]
				q.collect(c)
			}
		case e.choice >= 0:
			t.sender = c.parties[1]
			t.input += c.amount
			if !q.free {
				t.holdingFees += holdingFee(c.amount, v.round(c), round)
			}
			t.change(c, v.round(c), -1)
		default:
			created = append(created, c)
			t.change(c, round, 1)
		}
	}
	t.deal = q.settle(t.input - t.holdingFees + q.rewarded())
	for i, c := range created[:min(len(created), q.receivers)] {
		t.receive(c.parties[1], c.amount+t.deal.fees[i], t.deal.fees[i])
	}
	t.consumed = t.input
	if !q.summarized(m.kind) { // the service has no better figures
		t.input, t.deal.change = t.receivers[0].amount, 0
		if m.kind == moveOffer {
			t.input = 0
		}
	}
	switch m.kind {
	case movePreapproved, moveCommanded:
		t.kind = "preapproval_send"
	case moveAccept:
		t.kind = "transfer_instruction_accept"
	case moveOffer:
		t.kind = "create_transfer_instruction"
		i := &v.contracts[t.instruction]
		t.offeredTo, t.offered = int(i.parties[2]), i.amount
	}
	if q.description >= 0 {
		t.descriptionJSON = texts[q.description]
	}
	return t
}

// summarized reports whether a transfer is made by a choice whose result sums it up. The records of others have no
// round, and no inputs.
func (q *terms) summarized(kind movementKind) bool { return !q.direct || kind == movePreapproved }

// recordRound returns the round that the record of a movement has.
func (v *view) recordRound(number int) int64 {
	m := &v.movements[number]
	if q := v.termsOf(number, m.kind, m.form); m.kind.isTransfer() && !q.summarized(m.kind) {
		return 0
	}
	return roundOf(&v.updates[m.update])
}

// receive adds what a party receives. Several amulets of one party make one receiver.
func (t *transfer) receive(party uint16, amount, fee int64) {
	i := slices.IndexFunc(t.receivers, func(r receiver) bool { return r.party == party })
	if i < 0 {
		i = len(t.receivers)
		t.receivers = append(t.receivers, receiver{party: party})
	}
	t.receivers[i].amount += amount
	t.receivers[i].fee += fee
}

// change adds an amulet of a round to the balance changes, or subtracts it, as if it had been created in round 0.
func (t *transfer) change(c *contract, round int64, sign int64) {
	i := slices.IndexFunc(t.changes, func(b balanceChange) bool { return b.party == c.parties[1] })
	if i < 0 {
		i = len(t.changes)
		t.changes = append(t.changes, balanceChange{party: c.parties[1]})
	}
	t.changes[i].initial += sign * (c.amount + feeRate(round)*round)
	t.changes[i].rate += sign * feeRate(round)
}

// typeOf returns the record's transaction_type.
func (k movementKind) typeOf() string {
	switch k {
	case moveMint:
		return "mint"
	case moveTap:
		return "devnet_tap"
	case moveWithdraw, moveReject:
		return "abort_transfer_instruction"
	case moveUnlock:
		return "unlock"
	case moveExpire:
		return "expire"
	}
	return "transfer"
}

// hasRound reports whether records of the kind contain their round.
func (k movementKind) hasRound() bool { return k != moveMint && k != moveWithdraw && k != moveReject }

// abortKind returns the record's abort_kind.
func (k movementKind) abortKind() string {
	if k == moveWithdraw {
		return "withdraw"
	}
	return "reject"
}

// firstOf returns the first contract of a movement: what a mint or tap created, and what was unlocked or expired. Of an
// offer that was settled it is the instruction.
func (v *view) firstOf(m *movement) int32 { return v.events[m.first].contract }

// recordForm is how a service writes its records.
type recordForm struct {
	word    string
	changes bool
	bare    bool // only what interface.md has
	odd     bool // some in shapes that no kind has
	order   uint64
}

// hasSecondPart reports whether the record of a movement has a part besides that of its kind.
func (v *view) hasSecondPart(number int, f recordForm) bool { return v.oddity(number, f)&1 != 0 }

func (v *view) hasDate(number int, f recordForm) bool { return v.oddity(number, f)&2 == 0 }

// oddity is not 0 where the record of a movement is in a shape that no kind has.
func (v *view) oddity(number int, f recordForm) int {
	if r := derive(v.seed, domainShape, uint64(number)); f.odd && v.movements[number].kind < moveUnlock && r.chance(20) {
		return 1 + r.intn(3)
	}
	return 0
}

// offset returns the offset of an update in the ledger of the service's own participant.
func (f *recordForm) offset(u *update) string {
	n := uint64(u.dealt)
	if f.order != 0 {
		n += mix(f.order) >> 40
	}
	return fmt.Sprintf("00%016x", n)
}

// appendRecord appends the record of a movement.
func (v *view) appendRecord(dst []byte, number int, f recordForm) []byte {
	m := &v.movements[number]
	u := &v.updates[m.update]
	dst = append(dst, '{')
	if !f.bare {
		dst = append(dst, `"transaction_type":"`...)
		dst = append(dst, m.kind.typeOf()...)
		dst = append(dst, `",`...)
	}
	dst = append(dst, `"event_id":"`...)
	dst = append(dst, v.eventID(m)...)
	dst = append(dst, `","offset":"`...)
	dst = append(dst, f.offset(u)...)
	if v.hasDate(number, f) {
		dst = append(dst, `","date":"`...)
		dst = appendInstant(dst, u.effective())
	}
	dst = append(dst, `","domain_id":"`...)
	dst = append(dst, v.synchronizers[u.synchronizer]...)
	dst = append(dst, '"')
	if m.kind.hasRound() {
		dst = append(dst, `,"round":`...)
		dst = appendInt(dst, v.recordRound(number))
	}
	if v.hasSecondPart(number, f) {
		part := "mint"
		if m.kind == moveMint {
			part = "tap"
		}
		dst = append(dst, `,"`+part+`":`...)
		dst = v.appendOwned(dst, m, &f)
	}
	return append(v.appendPart(dst, number, &f), '}')
}

// appendPart appends the part of a movement's record for its kind.
func (v *view) appendPart(dst []byte, number int, f *recordForm) []byte {
	m := &v.movements[number]
	switch m.kind {
	case moveMint, moveUnlock, moveExpire:
		dst = append(dst, `,"`+m.kind.typeOf()+`":`...)
		dst = v.appendOwned(dst, m, f)
	case moveTap:
		dst = append(dst, `,"tap":`...)
		dst = v.appendOwned(dst, m, f)
	case moveWithdraw, moveReject:
		dst = append(dst, `,"abort_transfer_instruction":{`...)
		if !f.bare {
			dst = append(dst, `"abort_kind":"`+m.kind.abortKind()+`",`...)
		}
		dst = append(dst, `"transfer_instruction_cid":"`...)
		dst = v.contractID(dst, v.firstOf(m))
		dst = append(dst, `"}`...)
	default:
		dst = append(dst, `,"transfer":`...)
		dst = v.appendTransfer(dst, number, f)
	}
	return dst
}

func (v *view) appendOwned(dst []byte, m *movement, f *recordForm) []byte {
	c := &v.contracts[v.firstOf(m)]
	dst = append(dst, `{"`+f.word+`_owner":`...)
	dst = append(dst, v.quoted[c.parties[1]]...)
	dst = append(dst, `,"`+f.word+`_amount":"`...)
	dst = appendUnits(dst, c.amount)
	return append(dst, `"}`...)
}

// rewardFields are in the order of terms.rewards.
var rewardFields = [...]string{"input_app_reward_amount", "input_validator_reward_amount", "input_sv_reward_amount",
	"input_validator_faucet_amount"}

func (v *view) appendTransfer(dst []byte, number int, f *recordForm) []byte {
	t := v.transferOf(number)
	amount := func(name string, n int64) {
		dst = append(dst, `,"`+name+`":"`...)
		dst = appendUnits(dst, n)
		dst = append(dst, '"')
	}
	dst = append(dst, `{"sender":{"party":`...)
	dst = append(dst, v.quoted[t.sender]...)
	amount("input_"+f.word+"_amount", t.input)
	for i, n := range t.deal.rewards {
		if n >= 0 {
			amount(rewardFields[i], n)
		}
	}
	amount("sender_change_fee", t.deal.changeFee)
	amount("sender_change_amount", t.deal.change)
	amount("sender_fee", t.deal.senderFee)
	amount("holding_fees", t.holdingFees)
	dst = append(dst, `},"receivers":[`...)
	for i, r := range t.receivers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"party":`...)
		dst = append(dst, v.quoted[r.party]...)
		amount("amount", r.amount)
		amount("receiver_fee", r.fee)
		dst = append(dst, '}')
	}
	dst = append(dst, `],"balance_changes":[`...)
	if f.changes {
		for i, b := range t.changes {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"party":`...)
			dst = append(dst, v.quoted[b.party]...)
			amount("change_to_initial_amount_as_of_round_zero", b.initial)
			amount("change_to_holding_fees_rate", b.rate)
			dst = append(dst, '}')
		}
	}
	dst = append(dst, ']')
	if t.descriptionJSON != "" {
		dst = append(dst, `,"description":`...)
		dst = append(dst, t.descriptionJSON...)
	}
	if t.offeredTo >= 0 {
		dst = append(dst, `,"transferInstructionReceiver":`...)
		dst = append(dst, v.quoted[t.offeredTo]...)
		amount("transferInstructionAmount", t.offered)
	}
	if t.instruction >= 0 {
		dst = append(dst, `,"transferInstructionCid":"`...)
		dst = v.contractID(dst, t.instruction)
		dst = append(dst, '"')
	}
	if t.kind != "" && !f.bare {
		dst = append(dst, `,"transfer_kind":"`+t.kind+`"`...)
	}
	return append(dst, '}')
}
