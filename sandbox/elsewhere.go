package sandbox

import "slices"

// At regular intervals an update is one of parties that other participants host; see [Options.Elsewhere].
const (
	elsewhereEvery = 5
	elsewhereAt    = 2
)

// far is what parties that are hosted elsewhere have. Their contracts have no activations, which are of this
// participant.
type far struct {
	rng     rng
	scenes  int
	purses  [remoteParties][]int32 // amulets that are not locked
	coupons []int32                // of one party
	// contracts that a later movement settles or renews. What is locked for one was made before it
	waiting [allTemplates][]int32
	round   int64 // the newest that is open
	// the newest contract of a round that is to be summarized, issuing, or closed, and the next that is open
	states [4]int32
	open   []int32 // rounds, the oldest first
}

func newFar(seed uint64) far { return far{rng: derive(seed, domainElsewhere, 0), round: -1} }

// farScenes is the cycle of their movements, with the template of what is made to be settled later, or is settled. In
// each cycle movements have the form of another release.
var farScenes = [...]struct {
	kind     movementKind
	template int
}{
	{kind: moveTap},
	{moveAllocate, templateAllocation},
	{moveExecute, templateAllocation},
	{moveOffer, templateTransferInstruction},
	{moveAccept, templateTransferInstruction},
	{moveLock, templateInitialPayment},
	{moveName, templateInitialPayment},
	{kind: moveTransfer},
	{kind: moveTap},
	{moveApproval, templatePreapproval},
	{moveAllocate, templateAllocation},
	{moveCancel, templateAllocation},
	{moveOffer, templateTransferInstruction},
	{moveWithdraw, templateTransferInstruction},
	{moveLock, templatePayment},
	{moveName, templatePayment},
	{kind: moveTap},
	{moveAllocateV2, templateAllocationV2},
	{moveSettle, templateAllocationV2},
	{moveApproval, templateSetupProposal},
	{moveOffer, templateTransferInstruction},
	{moveReject, templateTransferInstruction},
	{moveOffer, templateTransferInstruction},
	{moveExpired, templateTransferInstruction},
	{kind: moveCoupons},
	{kind: moveCollect},
	{kind: moveCommand},
	{moveCommanded, templateTransferCommand},
	{kind: moveTraffic},
}

// elsewhere makes an update of parties that are hosted elsewhere: the next scene, or, when its time has come, the next
// mining round.
func (g *generator) elsewhere(u *update, index int32) {
	t := &tx{index: index, first: len(g.events)}
	if round := g.round(); round > g.far.round-2 {
		g.advanceRounds(t, round)
	} else {
		scene := farScenes[g.far.scenes%len(farScenes)]
		form := formSummed + form(g.far.scenes/len(farScenes)%3)
		if scene.kind == moveAllocateV2 {
			form = formV2
		}
		g.far.scenes++
		switch kind := scene.kind; {
		case kind.spends():
			g.spendElsewhere(t, kind, form, scene.template)
		case kind == moveCoupons:
			g.couponsElsewhere(t)
		case kind == moveCommand:
			g.commandElsewhere(t)
		case kind == moveTap || len(g.far.waiting[scene.template]) == 0:
			g.tapElsewhere(t, form)
		default:
			g.settleElsewhere(t, kind, form, scene.template)
		}
	}
	u.kind = kindTransaction
	u.first, u.count = int32(t.first), int32(len(g.events)-t.first)
}

// spends reports whether a movement of parties hosted elsewhere uses amulets that are not locked.
func (k movementKind) spends() bool {
	switch k {
	case moveTransfer, moveTraffic, moveApproval, moveCollect, moveCommanded:
		return true
	}
	return k.locks()
}

// advanceRounds opens a round. The oldest open one is to be summarized, and those before it are issued, closed and
// archived.
func (g *generator) advanceRounds(t *tx, now int64) {
	f := &g.far
	m := g.begin(t, moveRounds, -1)
	if len(f.open) == 0 {
		for round := now; round < now+3; round++ {
			f.open = append(f.open, g.makeElsewhere(t, templateOpenRound, round))
		}
		f.round = now + 2
		g.finish(m)
		return
	}
	ends := append([]int32{f.open[0]}, f.states[:3]...)
	for i, n := range ends {
		if n == 0 { // no contract of a round is the ledger's first one
			continue
		}
		if i > 0 {
			m = g.begin(t, moveRounds, -1)
		}
		g.endElsewhere(t, n, choiceArchive, g.dso)
		if f.states[i] = 0; i < len(ends)-1 {
			f.states[i] = g.makeElsewhere(t, templateSummarizingRound+i, g.contracts[n].amount)
		}
		if i == 0 {
			f.round++
			f.open = append(f.open[1:], g.makeElsewhere(t, templateOpenRound, f.round))
		}
		g.finish(m)
	}
}

// makeElsewhere adds the creation of a contract of the DSO and others. amount is what its template has: amulets, or a
// round.
func (g *generator) makeElsewhere(t *tx, template int, amount int64, parties ...uint16) int32 {
	c := contract{amount: amount, created: t.index, kind: kindOf(template, 0), flags: flagDivulged,
		signatories: uint8(1 + min(1, len(parties)))}
	c.observers = uint8(max(0, len(parties)-1))
	c.parties[0] = g.dso
	copy(c.parties[1:], parties)
	number := int32(len(g.contracts))
	g.contracts = append(g.contracts, c)
	g.push(t, event{contract: number, choice: -1, served: c.kind}, witnesses{})
	return number
}

// endElsewhere adds the exercise that archives a contract.
func (g *generator) endElsewhere(t *tx, contract int32, choice int8, actor uint16) {
	g.push(t, event{contract: contract, served: g.contracts[contract].kind, choice: choice, actor: actor}, witnesses{})
}

// amuletElsewhere adds the creation of an amulet that its owner may use.
func (g *generator) amuletElsewhere(t *tx, amount int64, owner uint16) {
	n := g.makeElsewhere(t, templateAmulet, amount, owner)
	purse := &g.far.purses[int(owner)-g.hosted]
	*purse = append(*purse, n)
}

// anyElsewhere draws one of the parties.
func (g *generator) anyElsewhere() uint16 { return uint16(g.hosted + g.far.rng.intn(remoteParties)) }

func (g *generator) tapElsewhere(t *tx, form form) {
	m := g.begin(t, moveTap, -1)
	m.form = form
	g.amuletElsewhere(t, int64(100+g.far.rng.intn(100_000))*unit+int64(g.far.rng.intn(int(unit))), g.anyElsewhere())
	g.finish(m)
}

// couponsElsewhere makes a coupon of each kind for one party.
func (g *generator) couponsElsewhere(t *tx) {
	m := g.begin(t, moveCoupons, -1)
	owner := g.anyElsewhere()
	for template := range coupons {
		if coupons[template].input != "" {
			amount := int64(g.far.rng.intn(5))*unit + int64(1+g.far.rng.intn(int(unit)))
			g.far.coupons = append(g.far.coupons, g.makeElsewhere(t, template, amount, owner))
		}
	}
	g.finish(m)
}

// commandElsewhere makes a command to transfer.
func (g *generator) commandElsewhere(t *tx) {
	m := g.begin(t, moveCommand, -1)
	sender := g.anyElsewhere()
	command := g.makeElsewhere(t, templateTransferCommand, leastTransfer, sender, g.afterElsewhere(sender, 1))
	g.far.waiting[templateTransferCommand] = append(g.far.waiting[templateTransferCommand], command)
	g.finish(m)
}

// afterElsewhere returns the party some places after one of them.
func (g *generator) afterElsewhere(party uint16, places int) uint16 {
	return uint16(g.hosted + (int(party)-g.hosted+places)%remoteParties)
}

// spendElsewhere makes a movement of amulets of one owner.
func (g *generator) spendElsewhere(t *tx, kind movementKind, form form, template int) {
	owner := g.anyElsewhere()
	var used []int32 // besides amulets: what is renewed, collected or done
	switch {
	case kind == moveCollect:
		used = g.far.coupons
	case len(g.far.waiting[template]) > 0 && (kind == moveApproval || kind == moveCommanded):
		used = g.far.waiting[template][:1]
	}
	if used != nil {
		owner = g.contracts[used[0]].parties[1]
	}
	receiver := g.afterElsewhere(owner, 1)
	q := g.termsOf(len(g.movements), kind, form)
	for _, n := range used {
		q.collect(&g.contracts[n])
	}
	purse := &g.far.purses[int(owner)-g.hosted]
	inputs := append([]int32(nil), (*purse)[max(0, len(*purse)-2):]...)
	if kind == moveApproval && form == formV2 { // costs nothing since 0.6.9
		inputs = nil
	}
	var available int64
	for _, n := range inputs {
		available += g.usable(&q, &g.contracts[n])
	}
	switch {
	case kind == moveCollect && used != nil: // also without amulets
		g.far.coupons = nil
	case available < 10*leastTransfer && inputs != nil, len(*purse) == 0, kind == moveCollect, kind == moveCommanded &&
		used == nil:
		g.tapElsewhere(t, form)
		return
	case kind == moveCommanded:
		g.far.waiting[template] = g.far.waiting[template][1:]
	}
	*purse = (*purse)[:len(*purse)-len(inputs)]
	d := q.settle(available + q.rewarded())
	m := g.begin(t, kind, -1)
	m.form = form
	for _, n := range slices.Concat(used, inputs) {
		g.endElsewhere(t, n, choiceArchive, owner)
	}
	switch {
	case kind.locks():
		g.makeElsewhere(t, templateLockedAmulet, d.sent[0], owner)
		parties := []uint16{owner, receiver}
		if kind == moveLock && form != formDirect { // for a name
			parties = parties[:1]
		}
		g.far.waiting[template] = append(g.far.waiting[template], g.makeElsewhere(t, template, d.sent[0], parties...))
	case kind == moveTransfer || kind == moveCommanded:
		for i := range d.receivers {
			g.amuletElsewhere(t, d.sent[i]-d.fees[i], g.afterElsewhere(receiver, i))
		}
	case kind == moveTraffic:
		g.makeElsewhere(t, templateMemberTraffic, d.sent[0], owner)
	}
	if d.change > 0 && (inputs != nil || kind == moveCollect) {
		g.amuletElsewhere(t, d.change, owner)
	}
	if kind == moveApproval {
		approval := g.makeElsewhere(t, template, 0, owner)
		if template == templatePreapproval {
			g.far.waiting[template] = []int32{approval}
		}
	}
	g.finish(m)
}

// nameTransfer is the place of the transfer among the events of moveName: after the payment, and what is unlocked for
// it. The state of the subscription comes after it, and ends what the payment's own choice does.
const (
	nameTransfer = 3
	nameState    = 5
)

// settleElsewhere makes a movement of what was locked before.
func (g *generator) settleElsewhere(t *tx, kind movementKind, form form, template int) {
	number := g.far.waiting[template][0]
	g.far.waiting[template] = g.far.waiting[template][1:]
	parties := g.contracts[number].stakeholders()[1:]
	sender, receiver := parties[0], g.dso
	if len(parties) > 1 {
		receiver = parties[1]
	}
	locked := g.contracts[number-1]
	q := g.termsOf(len(g.movements), kind, form)
	m := g.begin(t, kind, -1)
	m.form = form
	actor := receiver
	if kind == moveWithdraw || kind == moveCancel {
		actor = sender
	}
	g.endElsewhere(t, number, choiceArchive, actor)
	g.endElsewhere(t, number-1, choiceArchive, g.dso)
	switch kind {
	case moveAccept, moveExecute:
		d := q.settle(g.usable(&q, &locked))
		g.amuletElsewhere(t, d.sent[0]-d.fees[0], receiver)
	case moveSettle:
		g.amuletElsewhere(t, locked.amount, receiver)
	case moveName:
		d := q.settle(locked.amount)
		unlocked := g.makeElsewhere(t, templateAmulet, locked.amount, sender)
		g.endElsewhere(t, unlocked, choiceArchive, sender)
		if receiver != g.dso {
			g.amuletElsewhere(t, d.sent[0]-d.fees[0], receiver)
			g.makeElsewhere(t, templateIdleState, 0, parties...)
			break
		}
		paid := g.makeElsewhere(t, templateAmulet, d.sent[0]-d.fees[0], g.dso)
		g.makeElsewhere(t, templateIdleState, 0, parties...)
		g.endElsewhere(t, paid, choiceArchive, g.dso)
		g.makeElsewhere(t, templateNameEntry, 0, sender)
	default:
		g.amuletElsewhere(t, locked.amount, sender)
	}
	g.finish(m)
}
