package sandbox

import (
	"strconv"
	"strings"
)

// amuletName is the id of the amulet as an instrument, in the holding views of the amulets' payloads.
const amuletName = "Amulet"

// appendUnits appends an amount with ten digits after the point.
func appendUnits(dst []byte, amount int64) []byte {
	if amount < 0 {
		dst, amount = append(dst, '-'), -amount
	}
	dst = appendInt(dst, amount/unit)
	fraction := strconv.FormatInt(unit+amount%unit, 10)
	return append(append(dst, '.'), fraction[1:]...)
}

func units(amount int64) string { return string(appendUnits(nil, amount)) }

// figure returns an amount as servers write it.
func figure(amount int64) string { return javaDecimal(units(amount)) }

// round returns the mining round in which a contract was created.
func (v *view) round(c *contract) int64 { return roundOf(&v.updates[c.created]) }

// appendAmulet appends the payload of an amulet, which a locked one holds.
func (v *view) appendAmulet(dst []byte, c *contract) []byte {
	dst = append(dst, `{"dso":`...)
	dst = append(dst, v.quoted[c.parties[0]]...)
	dst = append(dst, `,"owner":`...)
	dst = append(dst, v.quoted[c.parties[1]]...)
	dst = append(dst, `,"amount":{"initialAmount":"`...)
	dst = append(dst, figure(c.amount)...)
	dst = append(dst, `","createdAt":{"number":"`...)
	dst = appendInt(dst, v.round(c))
	dst = append(dst, `"},"ratePerRound":{"rate":"`...)
	dst = appendUnits(dst, feeRate(v.round(c)))
	return append(dst, `"}}}`...)
}

func (v *view) appendLockedAmulet(dst []byte, number int32) []byte {
	dst = append(dst, `{"amulet":`...)
	dst = v.appendAmulet(dst, &v.contracts[number])
	dst = append(dst, `,"lock":`...)
	l := v.lockOf(number)
	dst = append(dst, `{"holders":[`...)
	dst = append(dst, v.quoted[l.holder]...)
	dst = append(dst, `],"expiresAt":"`...)
	dst = appendMicros(dst, l.expires)
	dst = append(dst, `","optContext":`...)
	dst = append(dst, l.context...)
	return append(closeRecord(dst), '}')
}

// lock is what keeps a locked amulet from being used.
type lock struct {
	holder  uint16
	expires int64  // microseconds
	context string // JSON: null or a text
}

func (v *view) lockOf(number int32) lock {
	c := &v.contracts[number]
	r := derive(v.seed, domainPayload, uint64(number))
	l := lock{holder: c.parties[0], context: "null", expires: v.updates[c.created].effective() + int64(
		1+r.intn(72))*3_600_000_000}
	if c.signatories > 2 {
		l.holder = c.parties[2]
	}
	if r.chance(60) {
		l.context = texts[r.intn(len(texts))]
	}
	return l
}

func appendMicros(dst []byte, micros int64) []byte { return append(dst, instant(micros)...) }

func (v *view) appendInstruction(dst []byte, number int32) []byte {
	c := &v.contracts[number]
	requested := v.updates[c.created].effective()
	dst = append(dst, `{"lockedAmulet":"`...)
	dst = v.contractID(dst, number-1) // made right before it
	dst = append(dst, `","transfer":{"sender":`...)
	dst = append(dst, v.quoted[c.parties[1]]...)
	dst = append(dst, `,"receiver":`...)
	dst = append(dst, v.quoted[c.parties[2]]...)
	dst = append(dst, `,"amount":"`...)
	dst = append(dst, figure(c.amount)...)
	dst = append(dst, `","instrumentId":`...)
	dst = v.appendAmuletInstrument(dst)
	dst = append(dst, `,"requestedAt":"`...)
	dst = appendMicros(dst, requested)
	dst = append(dst, `","executeBefore":"`...)
	dst = appendMicros(dst, requested+86_400_000_000)
	return append(dst, `","inputHoldingCids":[],"meta":{"values":{}}}}`...)
}

func (v *view) appendAmuletInstrument(dst []byte) []byte {
	dst = append(dst, `{"admin":`...)
	dst = append(dst, v.quoted[v.dso]...)
	return append(dst, `,"id":"`+amuletName+`"}`...)
}

// holdingView is what a view of the token standard's Holding interface says.
type holdingView struct {
	owner, admin uint16
	instrument   string
	amount       string
	holder       int   // of the lock: a party, or -1
	expires      int64 // microseconds; 0: never
	context      string
	meta         []byte
}

// tokenHolding returns the holding view of a contract; amulets' are as their payload has it.
func (v *view) tokenHolding(number int32) holdingView {
	c := &v.contracts[number]
	r := v.values(domainView, uint64(number)<<3|ifaceTokenHolding)
	if !c.kind.isAmulet() {
		h := holdingView{owner: c.parties[0], admin: c.stakeholders()[r.intn(len(c.stakeholders()))], holder: -1}
		if r.plain { // as the contract says
			r = v.values(domainPayload, uint64(number))
			h.admin = uint16(r.intn(v.hosted))
		}
		h.instrument = pickInstrument(&r)
		h.amount = strings.Trim(string(appendDecimal(nil, &r)), `"`)
		if c.kind/2 == templateLockedHolding {
			h.holder, h.context = int(c.stakeholders()[len(c.stakeholders())-1]), string(appendOptional(nil, &r, appendText))
			if r.chance(70) {
				h.expires = genesis + int64(r.intn(1<<40))
			}
		}
		h.meta = appendMeta(nil, &r, 1)
		return h
	}
	h := holdingView{owner: c.parties[1], admin: v.dso, instrument: amuletName, amount: figure(c.amount), holder: -1}
	if c.kind/2 == templateLockedAmulet {
		l := v.lockOf(number)
		h.holder, h.expires, h.context = int(l.holder), l.expires, l.context
	}
	const key = `"amulet.splice.lfdecentralizedtrust.org/`
	h.meta = append(h.meta, `{"values":{`+key+`created-in-round":"`...)
	h.meta = appendInt(h.meta, v.round(c))
	h.meta = append(h.meta, `",`+key+`rate-per-round":"`...)
	h.meta = append(h.meta, trimmedRate(v.round(c))...)
	h.meta = append(h.meta, `"}}`...)
	return h
}

// trimmedRate returns the holding fee of a round as views have it.
func trimmedRate(round int64) string { return strings.TrimRight(units(feeRate(round)), "0") }

func (v *view) appendTokenHolding(dst []byte, number int32) []byte {
	h := v.tokenHolding(number)
	dst = append(dst, `{"owner":`...)
	dst = append(dst, v.quoted[h.owner]...)
	dst = append(dst, `,"instrumentId":{"admin":`...)
	dst = append(dst, v.quoted[h.admin]...)
	dst = append(dst, `,"id":"`...)
	dst = append(dst, h.instrument...)
	dst = append(dst, `"},"amount":"`...)
	dst = append(dst, h.amount...)
	dst = append(dst, `","lock":`...)
	if h.holder < 0 {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, `{"holders":[`...)
		dst = append(dst, v.quoted[h.holder]...)
		dst = append(dst, `],"expiresAt":`...)
		if h.expires == 0 {
			dst = append(dst, "null"...)
		} else {
			dst = append(dst, '"')
			dst = appendMicros(dst, h.expires)
			dst = append(dst, '"')
		}
		dst = append(dst, `,"expiresAfter":null,"context":`...)
		dst = closeRecord(append(dst, h.context...))
	}
	dst = append(dst, `,"meta":`...)
	dst = append(dst, h.meta...)
	return append(dst, '}')
}
