package sandbox

import "sort"

// metaPrefix begins the keys of the token standard's metadata, by which an exercise says what it moved.
const metaPrefix = "splice.lfdecentralizedtrust.org/"

// firstMovement returns the number of the first movement of an update, or of a later one.
func (v *view) firstMovement(index int) int {
	return sort.Search(len(v.movements), func(n int) bool { return int(v.movements[n].update) >= index })
}

// movementOf returns the number of the movement that begins with an event of an update, or -1.
func (v *view) movementOf(index int, e *event) int {
	n := v.firstMovement(index)
	for ; n < len(v.movements) && int(v.movements[n].update) == index; n++ {
		if v.events[v.movements[n].first].node == e.node {
			return n
		}
	}
	return -1
}

// txKind returns what metadata say of a movement. Mints and taps are creations, which say nothing.
func (k movementKind) txKind() string {
	switch k {
	case moveUnlock:
		return "unlock"
	case moveExpire:
		return "expire-dust"
	case moveWithdraw, moveReject:
		return "merge-split"
	case moveTraffic:
		return "burn"
	case moveMint, moveTap:
		return ""
	}
	return "transfer"
}

// senderOf is who sends with a movement that an exercise begins: the owner of what it uses.
func (v *view) senderOf(m *movement) uint16 { return v.contracts[v.firstOf(m)].parties[1] }

// burnedBy returns what a movement destroys of what it uses, and of rewards: fees.
func (v *view) burnedBy(number int) int64 {
	m := &v.movements[number]
	burned := int64(0)
	if m.kind.isTransfer() {
		burned = v.termsOf(number, m.kind, m.form).rewarded()
	}
	for _, e := range v.events[m.first : m.first+m.count] {
		switch c := &v.contracts[e.contract]; {
		case c.kind/2 == templateTransferInstruction:
		case e.choice >= 0:
			burned += c.amount
		default:
			burned -= c.amount
		}
	}
	return burned
}

// reasonOf returns the reason of a movement, as JSON; empty: none.
func (v *view) reasonOf(number int) string {
	if q := v.termsOf(number, v.movements[number].kind, v.movements[number].form); q.description >= 0 {
		return texts[q.description]
	}
	return ""
}

// appendMoved appends the result of a choice of an amulet: what it moved, if a movement begins with it.
func (v *view) appendMoved(dst []byte, index int, e *event) []byte {
	number := v.movementOf(index, e)
	if number < 0 {
		return append(dst, `{"output":{"tag":"TransferInstructionResult_Completed","value":{"receiverHoldingCids":[]}},`+
			`"meta":{"values":{}}}`...)
	}
	m := &v.movements[number]
	dst = append(dst, `{"output":{"tag":"TransferInstructionResult_`...)
	switch m.kind {
	case moveOffer:
		dst = append(dst, `Pending","value":{"transferInstructionCid":"`...)
		for _, made := range v.events[m.first : m.first+m.count] {
			if v.contracts[made.contract].kind/2 == templateTransferInstruction {
				dst = v.contractID(dst, made.contract)
			}
		}
		dst = append(dst, `"}`...)
	case moveWithdraw, moveReject:
		dst = append(dst, `Failed","value":{}`...)
	default:
		dst = append(dst, `Completed","value":{"receiverHoldingCids":[`...)
		some := false
		for _, made := range v.events[m.first : m.first+m.count] {
			if made.choice < 0 && v.contracts[made.contract].parties[1] != v.senderOf(m) {
				if some {
					dst = append(dst, ',')
				}
				some = true
				dst = append(dst, '"')
				dst = v.contractID(dst, made.contract)
				dst = append(dst, '"')
			}
		}
		dst = append(dst, `]}`...)
	}
	dst = append(dst, `},"meta":{"values":{"`+metaPrefix+`burned":"`...)
	dst = appendUnits(dst, v.burnedBy(number))
	dst = append(dst, '"')
	if reason := v.reasonOf(number); reason != "" {
		dst = append(dst, `,"`+metaPrefix+`reason":`...)
		dst = append(dst, reason...)
	}
	if m.kind.isTransfer() {
		dst = append(dst, `,"`+metaPrefix+`sender":`...)
		dst = append(dst, v.quoted[v.senderOf(m)]...)
	}
	dst = append(dst, `,"`+metaPrefix+`tx-kind":"`+m.kind.txKind()+`"`...)
	return append(dst, `}}}`...)
}
