package sandbox

// At regular intervals an update is one of parties that other participants host; see [Options.Elsewhere].
const (
	elsewhereEvery = 5
	elsewhereAt    = 2
)

// far is what parties that are hosted elsewhere have. Their contracts have no activations, which are of this participant.
type far struct {
	rng     rng
	scenes  int
	purses  [remoteParties][]int32 // amulets that are not locked
	waiting [allTemplates][]int32  // contracts that a later movement settles or renews. What is locked for one was made before it
	round   int64                  // the newest that is open
	states  [4]int32               // the newest contract of a round that is to be summarized, issuing, or closed, and the next that is open
	open    []int32                // rounds, the oldest first
}

func newFar(seed uint64) far { return far{rng: derive(seed, domainElsewhere, 0), round: -1} }

// farScenes is the cycle of their movements, with the template of what is made to be settled later, or is settled. In each cycle
// movements have the form of another release.
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
}

// elsewhere makes an update of parties that are hosted elsewhere: the next scene, or, when its time has come, the next mining round.
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
		case kind.locks() || kind == moveTransfer || kind == moveApproval:
			g.spendElsewhere(t, kind, form, scene.template)
		case kind == moveTap || len(g.far.waiting[scene.template]) == 0:
			g.tapElsewhere(t)
		default:
			g.settleElsewhere(t, kind, form, scene.template)
		}
	}
	u.kind = kindTransaction
	u.first, u.count = int32(t.first), int32(len(g.events)-t.first)
}

// advanceRounds opens a round. The oldest open one is to be summarized, and those before it are issued, closed and archived.
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

// makeElsewhere adds the creation of a contract of the DSO and others. amount is what its template has: amulets, or a round.
func (g *generator) makeElsewhere(t *tx, template int, amount int64, parties ...uint16) int32 {
	c := contract{amount: amount, created: t.index, kind: kindOf(template, 0), flags: flagDivulged, signatories: uint8(1 + min(1, len(parties)))}
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

func (g *generator) tapElsewhere(t *tx) {
	m := g.begin(t, moveTap, -1)
	g.amuletElsewhere(t, int64(100+g.far.rng.intn(100_000))*unit+int64(g.far.rng.intn(int(unit))), g.anyElsewhere())
	g.finish(m)
}

// spendElsewhere makes a movement of amulets of one owner.
func (g *generator) spendElsewhere(t *tx, kind movementKind, form form, template int) {
	owner := g.anyElsewhere()
	var renewed []int32
	if kind == moveApproval && len(g.far.waiting[template]) > 0 {
		renewed = g.far.waiting[template][:1]
		owner = g.contracts[renewed[0]].parties[1]
	}
	receiver := uint16(g.hosted + (int(owner)-g.hosted+1)%remoteParties)
	q := g.termsOf(len(g.movements), kind, form)
	purse := &g.far.purses[int(owner)-g.hosted]
	inputs := append([]int32(nil), (*purse)[max(0, len(*purse)-2):]...)
	if kind == moveApproval && form == formV2 { // costs nothing since 0.6.9
		inputs = nil
	}
	var available int64
	for _, n := range inputs {
		available += g.usable(&q, &g.contracts[n])
	}
	if available < 10*leastTransfer && inputs != nil || len(*purse) == 0 {
		g.tapElsewhere(t)
		return
	}
	*purse = (*purse)[:len(*purse)-len(inputs)]
	d := q.settle(available + q.rewarded())
	m := g.begin(t, kind, -1)
	m.form = form
	for _, n := range append(renewed, inputs...) {
		g.endElsewhere(t, n, choiceArchive, owner)
	}
	switch {
	case kind.locks():
		g.makeElsewhere(t, templateLockedAmulet, d.sent[0], owner)
		g.far.waiting[template] = append(g.far.waiting[template], g.makeElsewhere(t, template, d.sent[0], owner, receiver))
	case kind == moveTransfer:
		for i := range d.receivers {
			g.amuletElsewhere(t, d.sent[i]-d.fees[i], uint16(g.hosted+(int(receiver)-g.hosted+i)%remoteParties))
		}
	}
	if d.change > 0 && inputs != nil {
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

// nameTransfer is the place of the transfer among the events of moveName: after the payment, and what is unlocked for it.
const nameTransfer = 3

// settleElsewhere makes a movement of what was locked before.
func (g *generator) settleElsewhere(t *tx, kind movementKind, form form, template int) {
	number := g.far.waiting[template][0]
	g.far.waiting[template] = g.far.waiting[template][1:]
	sender, receiver := g.contracts[number].parties[1], g.contracts[number].parties[2]
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
		paid := g.makeElsewhere(t, templateAmulet, d.sent[0]-d.fees[0], g.dso)
		g.makeElsewhere(t, templateIdleState, 0, sender)
		g.endElsewhere(t, paid, choiceArchive, g.dso)
		g.makeElsewhere(t, templateNameEntry, 0, sender)
	default:
		g.amuletElsewhere(t, locked.amount, sender)
	}
	g.finish(m)
}
