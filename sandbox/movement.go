package sandbox

// A movement is what an update did to amulets: a record of the transaction history. Its events are adjacent.
type movement struct {
	update       int32
	node         int32 // of the event that the record is named after: its own first one, or the one that wraps it
	first, count int32 // its events, in the ledger's table of events
	kind         movementKind
}

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
)

func (k movementKind) isTransfer() bool { return k <= moveAccept }

// unit is one amulet; amounts are counted in parts of ten digits after the point.
const unit int64 = 1e10

// roundMicros is how long a mining round lasts. Real ones last ten minutes.
const roundMicros = 30_000_000

// roundOf is the mining round in which an update is recorded.
func roundOf(u *update) int64 { return (u.record - genesis) / roundMicros }

// feeRate is what an amulet of a round loses with every round that follows.
func feeRate(round int64) int64 { return 38_051_800 + round%7*100 }

// holdingFee is what an amulet has lost when it is used in a round.
func holdingFee(amount, created, round int64) int64 {
	return min(amount, feeRate(created)*(round-created))
}

// maxReceivers is the most receivers of a transfer.
const maxReceivers = 3

// terms are what a transfer costs and how it is shared out. They are derived from the number of the movement.
type terms struct {
	receivers   int
	shares      [maxReceivers]int64 // in proportion
	permille    [maxReceivers]int64 // of a share, that the receiver pays as a fee
	locked      [maxReceivers]bool
	rewards     [4]int64 // of apps, validators, super validators and faucets; -1: none
	senderFee   int64
	changeFee   int64
	percent     int64 // of the input that is sent on
	description int   // of texts; -1: none
}

func (w *world) termsOf(number int, kind movementKind) terms {
	r := derive(w.seed, domainMovement, uint64(number))
	q := terms{receivers: 1, percent: int64(10 + r.intn(80)), description: -1}
	if kind == moveTransfer && r.chance(50) {
		q.receivers = 2 + r.intn(maxReceivers-1)
	}
	for i := range maxReceivers {
		q.shares[i] = int64(1 + r.intn(9))
		if r.chance(30) {
			q.permille[i] = int64(r.intn(20))
		}
		q.locked[i] = kind == moveTransfer && r.chance(20)
	}
	for i := range q.rewards {
		if q.rewards[i] = -1; r.chance(25) {
			q.rewards[i] = int64(r.intn(int(3 * unit)))
		}
	}
	if r.chance(60) {
		q.senderFee = int64(r.intn(int(unit / 3)))
	}
	if r.chance(60) {
		q.changeFee = 3 * unit / 100
	}
	if r.chance(15) || kind == moveAccept {
		q.percent, q.changeFee = 100, 0
	}
	if kind == moveAccept {
		q.rewards = [4]int64{-1, -1, -1, -1}
	}
	if kind == moveOffer {
		q.permille[0] = 0
	}
	if r.chance(40) {
		q.description = r.intn(len(texts))
	}
	return q
}

// leastTransfer is the smallest input of a transfer; it leaves enough for all fees.
const leastTransfer = 10 * unit

// deal is a transfer by its terms, settled to the last digit.
type deal struct {
	terms
	sent   [maxReceivers]int64 // before the receivers' fees
	fees   [maxReceivers]int64
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
		d.fees[i] = d.sent[i] / 1000 * q.permille[i]
	}
	return d
}

// rewarded is the sum of the rewards.
func (q terms) rewarded() (sum int64) {
	for _, n := range q.rewards {
		sum += max(n, 0)
	}
	return sum
}
