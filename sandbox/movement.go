package sandbox

import "math/bits"

// A movement is what an update did to amulets: a record of the transaction history. Its events are adjacent.
type movement struct {
	update       int32
	node         int32 // of the event that the record is named after: its own first one, or the one that wraps it
	first, count int32 // its events, in the ledger's table of events
	kind         movementKind
	form         form
}

// form is how Splice's models of a time make a movement. It is drawn from the movement's terms where nothing else is
// said.
type form uint8

const (
	formOfTerms form = iota
	formSummed       // before 0.5.16: with AmuletRules_Transfer below, and with fees
	formDirect       // since then: without it, where the token standard's choices are used, and without fees
	formV2           // since 0.6.11: by version 2 of the token standard
)

type movementKind uint8

const (
	moveTransfer    movementKind = iota
	movePreapproved              // to a receiver that agreed beforehand
	moveOffer                    // locks the amount until the receiver accepts
	moveAccept
	moveMint
	moveTap
	moveWithdraw // of an offer, by the sender
	moveReject   // of an offer, by the receiver
	moveUnlock   // not a kind of interface.md, nor is the next one; see ScanOptions.ExtraKinds
	moveExpire
	moveTraffic // a purchase, which no record tells

	// Made by parties that are hosted elsewhere only (see Options.Elsewhere).
	moveLock     // for a payment
	moveAllocate // locks the amount until the allocation is executed
	moveExecute
	moveName      // a payment of a subscription: to an app, or for a name, which the DSO burns
	moveCollect   // rewards, for coupons
	moveCommanded // to a receiver that agreed beforehand, by who was told to

	// No record tells these.
	moveAllocateV2
	moveSettle   // of an allocation of version 2
	moveCancel   // of an allocation
	moveExpired  // of an offer, by the DSO
	moveApproval // a purchase of a preapproval, or its renewal
	moveRounds
	moveCoupons
	moveCommand // to transfer
)

func (k movementKind) isTransfer() bool {
	return k <= moveAccept || k >= moveLock && k <= moveCommanded
}

// locks reports whether a movement locks what is sent.
func (k movementKind) locks() bool {
	return k == moveOffer || k == moveLock || k == moveAllocate || k == moveAllocateV2
}

// settles reports whether a movement sends all of what was locked before.
func (k movementKind) settles() bool { return k == moveAccept || k == moveExecute || k == moveName }

// unit is one amulet; amounts are counted in parts of ten digits after the point.
const unit int64 = 1e10

// roundMicros is how long a mining round lasts. Real ones last ten minutes.
const roundMicros = 30_000_000

// roundOf returns the mining round in which an update is recorded.
func roundOf(u *update) int64 { return (u.record - genesis) / roundMicros }

// feeRate returns what an amulet of a round loses with every round that follows.
func feeRate(round int64) int64 { return 38_051_800 + round%7*100 }

// holdingFee returns what an amulet has lost when it is used in a round.
func holdingFee(amount, created, round int64) int64 {
	return min(amount, feeRate(created)*(round-created))
}

// maxReceivers is the most receivers of a transfer.
const maxReceivers = 3

// terms are what a transfer costs and how it is shared out. They are derived from the number of the movement.
type terms struct {
	receivers  int
	shares     [maxReceivers]int64 // in proportion
	outputFees [maxReceivers]int64 // what it costs to create what each receives ...
	ratios     [maxReceivers]int64 // ... and the part of it that the receiver pays, in units of one
	fees       [maxReceivers]int64 // which is this
	locked     [maxReceivers]bool
	// of apps, validators, super validators, and the part of validators' that is for faucets; -1: none
	rewards     [4]int64
	grants      [2]int64 // of unclaimed activity and the development fund, which records don't tell
	senderFee   int64
	changeFee   int64
	percent     int64 // of the input that is sent on
	exact       int64 // what is sent instead; 0: nothing else is
	description int   // of texts; -1: none
	direct      bool  // a choice of the token standard that does without AmuletRules_Transfer, and without fees
	free        bool  // without holding fees
	variant     int   // 0 or 1: which of two forms a network shows it in
}

func (w *world) termsOf(number int, kind movementKind, form form) terms {
	r := derive(w.seed, domainMovement, uint64(number))
	q := terms{receivers: 1, percent: int64(10 + r.intn(80)), description: -1}
	if kind == moveTransfer && r.chance(50) {
		q.receivers = 2 + r.intn(maxReceivers-1)
	}
	for i := range maxReceivers {
		q.shares[i] = int64(1 + r.intn(9))
		if r.chance(40) {
			q.outputFees[i] = int64(r.intn(int(unit / 50)))
		}
		if q.ratios[i] = [...]int64{0, unit, unit / 3}[r.intn(3)]; kind.locks() || kind == moveApproval {
			q.ratios[i] = 0
		}
		q.locked[i] = kind == moveTransfer && r.chance(20)
	}
	for i := range q.rewards {
		if r.chance(25) {
			q.rewards[i] = int64(r.intn(int(3 * unit)))
		} else if i == 3 {
			q.rewards[i] = -1
		}
	}
	q.rewards[1] += max(q.rewards[3], 0)
	if r.chance(60) {
		q.changeFee = 3 * unit / 100
	}
	if r.chance(15) || kind.settles() {
		q.percent, q.changeFee = 100, 0
	}
	q.direct, q.variant = kind.isTransfer() && r.chance(40) && (kind != moveTransfer || r.chance(30) && !w.believable),
		r.intn(2)
	if form != formOfTerms {
		q.elsewhere(kind, form)
	}
	q.free = q.direct || form > formSummed
	if kind.settles() || kind == moveTraffic || q.direct || kind == moveAllocateV2 {
		q.rewards, q.grants = [4]int64{0, 0, 0, -1}, [2]int64{}
	}
	switch direct := q.direct && kind != movePreapproved; {
	case direct && kind == moveTransfer: // to oneself
		q.receivers, q.locked[0], q.percent = 1, false, 100
	case direct:
		q.percent = 100
	case kind == moveTransfer && q.receivers == 1 && r.chance(20): // it only merges
		q.receivers = 0
	}
	if kind == moveTraffic || q.free {
		q.outputFees, q.changeFee = [maxReceivers]int64{}, 0
	}
	for i := range q.receivers {
		q.fees[i] = portion(q.outputFees[i], q.ratios[i])
		q.senderFee += portion(q.outputFees[i], unit-q.ratios[i])
	}
	if described := kind == moveOffer || kind == movePreapproved || kind == moveCommanded || kind == moveTransfer &&
		q.direct; described && r.chance(40) {
		q.description = r.intn(len(texts))
	}
	return q
}

// elsewhere returns the terms of a movement of parties that are hosted elsewhere.
func (q *terms) elsewhere(kind movementKind, form form) {
	q.locked = [maxReceivers]bool{}
	q.direct = false
	q.rewards, q.grants = [4]int64{0, 0, 0, -1}, [2]int64{} // without coupons
	switch kind {
	case moveOffer, moveAccept, moveAllocate, moveExecute:
		q.direct = form > formSummed
	case moveTransfer:
		q.direct = form == formV2
	case moveCollect:
		q.receivers = 0
	case moveCommanded:
		q.exact = leastTransfer
	}
}

// collect adds the reward that a coupon is worth.
func (q *terms) collect(c *contract) {
	switch c.kind / 2 {
	case templateAppReward, templateRewardV2:
		q.rewards[0] += c.amount
	case templateValidatorReward:
		q.rewards[1] += c.amount
	case templateLiveness:
		q.rewards[1] += c.amount
		q.rewards[3] = c.amount
	case templateSVReward:
		q.rewards[2] += c.amount
	case templateUnclaimedActivity:
		q.grants[0] += c.amount
	case templateDevelopmentFund:
		q.grants[1] += c.amount
	}
}

// portion returns a part of an amount, with the tenth digit rounded half to even.
func portion(amount, ratio int64) int64 {
	high, low := bits.Mul64(uint64(amount), uint64(ratio))
	whole, rest := bits.Div64(high, low, uint64(unit))
	if rest > uint64(unit)/2 || rest == uint64(unit)/2 && whole%2 == 1 {
		whole++
	}
	return int64(whole)
}

// leastTransfer is the smallest input of a transfer; it leaves enough for all fees.
const leastTransfer = 10 * unit

// deal is a transfer by its terms, settled to the last digit.
type deal struct {
	terms
	sent   [maxReceivers]int64 // before the receivers' fees
	change int64
}

// settle shares out what a transfer has: its amulets without their holding fees, and rewards.
func (q terms) settle(available int64) deal {
	d := deal{terms: q}
	rest := available - q.senderFee - q.changeFee
	spend := rest / 100 * q.percent
	if q.percent == 100 {
		spend = rest
	}
	if q.receivers == 0 || q.exact > 0 {
		spend = q.exact
	}
	d.change = rest - spend
	var shares int64
	for i := range q.receivers {
		shares += q.shares[i]
	}
	left := spend
	for i := range q.receivers {
		d.sent[i] = spend / shares * q.shares[i]
		if i == q.receivers-1 {
			d.sent[i] = left
		}
		left -= d.sent[i]
	}
	return d
}

// rewarded returns the sum of the rewards.
func (q terms) rewarded() int64 {
	return q.rewards[0] + q.rewards[1] + q.rewards[2] + q.grants[0] + q.grants[1]
}
