package sandbox

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
)

// texts are JSON strings that the payloads of generated contracts carry: plain, empty, escaped and not Latin.
var texts = []string{
	`"settled against the morning position of the desk"`, `""`,
	`"\"quoted\" \\ back\u0009tab and\nnew line"`, `"Grüße aus Zürich – naïve façade"`,
	`"部分決済は翌営業日に行われます"`, "\"emoji 🙂 and a zero width\u200djoiner\"",
	`"reference 7741/ää/2026, see the annex for the schedule of payments and fees"`,
	`"x"`, `"null"`, `"standing instruction, renewed every quarter unless one side gives notice"`,
}

// ordinary are those of texts that people write.
var ordinary = [...]int{0, 3, 4, 6, 9}

func appendText(dst []byte, r *rng) []byte {
	if r.plain {
		return append(dst, texts[ordinary[r.intn(len(ordinary))]]...)
	}
	return append(dst, texts[r.intn(len(texts))]...)
}

// appendDecimal appends a decimal of scale 10 as java.math.BigDecimal writes it, which is how servers do. Some are
// tiny, and so have an exponent.
func appendDecimal(dst []byte, r *rng) []byte {
	if r.plain {
		dst = appendUnits(append(dst, '"'), int64(1+r.intn(1_000_000))*unit/100) // 0.01 to 10,000
		return append(dst, '"')
	}
	sign := ""
	if r.chance(5) {
		sign = "-"
	}
	whole := r.next() >> uint(20+r.intn(43))
	var fraction []byte
	for range 10 {
		fraction = append(fraction, byte('0'+r.intn(10)))
	}
	if whole%16 == 3 {
		whole = 0
		copy(fraction, "0000000000"[:6+int(fraction[9]-'0')/2])
	}
	dst = append(append(dst, '"'), javaDecimal(sign+strconv.FormatUint(whole, 10)+"."+string(fraction))...)
	return append(dst, '"')
}

// javaDecimal returns what java.math.BigDecimal's toString writes for a decimal with digits after the point: below
// 0.000001 an exponent.
func javaDecimal(plain string) string {
	number, negative := strings.CutPrefix(plain, "-")
	scale := len(number) - 1 - strings.IndexByte(number, '.')
	digits := strings.TrimLeft(strings.Replace(number, ".", "", 1), "0")
	if digits == "" {
		digits, negative = "0", false
	}
	exponent := len(digits) - 1 - scale
	if number = plain; exponent < -6 {
		number = digits[:1]
		if len(digits) > 1 {
			number += "." + digits[1:]
		}
		number += "E" + strconv.Itoa(exponent)
		if negative {
			number = "-" + number
		}
	}
	return number
}

func appendInt64(dst []byte, r *rng) []byte {
	dst = append(dst, '"')
	if r.plain {
		dst = appendInt(dst, int64(r.intn(1000)))
		return append(dst, '"')
	}
	dst = appendInt(dst, int64(r.next())>>uint(r.intn(60)))
	return append(dst, '"')
}

func appendTime(dst []byte, r *rng) []byte {
	dst = append(dst, '"')
	dst = appendInstant(dst, genesis+int64(r.intn(1<<40)))
	return append(dst, '"')
}

func appendDate(dst []byte, r *rng) []byte {
	dst = append(dst, `"20`...)
	dst = append(dst, byte('1'+r.intn(3)), byte('0'+r.intn(10)), '-', '0', byte('1'+r.intn(9)), '-', byte('1'+r.intn(2)),
		byte('0'+r.intn(9)))
	return append(dst, '"')
}

// closeRecord ends a record: Optionals without a value at its end are left out, those before are null.
func closeRecord(dst []byte) []byte {
	for bytes.HasSuffix(dst, []byte(":null")) {
		dst = dst[:bytes.LastIndexByte(dst, ',')]
	}
	return append(dst, '}')
}

// appendOptional appends null or the value.
func appendOptional(dst []byte, r *rng, value func([]byte, *rng) []byte) []byte {
	if r.chance(40) {
		return append(dst, "null"...)
	}
	return value(dst, r)
}

func appendMeta(dst []byte, r *rng, n int) []byte {
	dst = append(dst, `{"values":{`...)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `"demo.example/key-`...)
		dst = appendInt(dst, int64(i))
		dst = append(dst, `":`...)
		dst = appendText(dst, r)
	}
	return append(dst, `}}`...)
}

// instruments are the ids of those that are not amulets. The last one tries a reader.
var instruments = [...]string{"EUR", "USD", "CHF", "BOND-2031", ""}

func pickInstrument(r *rng) string {
	if r.plain {
		return instruments[r.intn(len(instruments)-1)]
	}
	return instruments[r.intn(len(instruments))]
}

func (w *world) appendInstrument(dst []byte, r *rng) []byte {
	dst = append(dst, `{"admin":`...)
	dst = append(dst, w.quoted[r.intn(w.hosted)]...)
	dst = append(dst, `,"id":"`...)
	dst = append(dst, pickInstrument(r)...)
	return append(dst, `"}`...)
}

// appendPayload appends the create argument of a contract: the same wherever the
// contract is served.
func (v *view) appendPayload(dst []byte, number int32) []byte {
	c := &v.contracts[number]
	r := v.values(domainPayload, uint64(number))
	owner := v.quoted[c.parties[0]]
	last := v.quoted[c.parties[c.signatories+c.observers-1]]
	switch c.kind / 2 {
	case templateAccount:
		return v.appendAccount(dst, &r, owner, number)
	case templateHolding:
		dst = append(dst, `{"holding":`...)
		dst = v.appendHolding(dst, &r, owner)
		dst = append(dst, `,"observer":`...)
		dst = append(dst, last...)
		return append(dst, '}')
	case templateLockedHolding:
		dst = append(dst, `{"holding":`...)
		dst = v.appendHolding(dst, &r, owner)
		dst = append(dst, `,"lock":{"holders":[`...)
		dst = append(dst, last...)
		dst = append(dst, `],"expiresAt":`...)
		dst = appendTime(dst, &r)
		dst = append(dst, `,"context":`...)
		dst = appendOptional(dst, &r, appendText)
		return append(closeRecord(dst), '}')
	case templateOffer:
		return v.appendOffer(dst, &r, owner, last)
	case templateAgreement:
		return v.appendAgreement(dst, &r, owner, last, number)
	case templateAmulet:
		return v.appendAmulet(dst, c)
	case templateLockedAmulet:
		return v.appendLockedAmulet(dst, number)
	case templateTransferInstruction:
		return v.appendInstruction(dst, number)
	case templateEntry:
		return v.appendEntry(dst, &r, owner, number)
	default:
		return append(dst, mustJSON(v.payloadElsewhere(number))...)
	}
}

func (v *view) appendAccount(dst []byte, r *rng, owner []byte, number int32) []byte {
	dst = append(dst, `{"owner":`...)
	dst = append(dst, owner...)
	dst = append(dst, `,"number":"`...)
	dst = appendInt(dst, int64(number))
	dst = append(dst, `","status":"`...)
	dst = append(dst, [...]string{"Open", "Frozen", "Closing"}[r.intn(3)]...)
	dst = append(dst, `","opened":`...)
	dst = appendDate(dst, r)
	dst = append(dst, `,"limit":`...)
	dst = appendOptional(dst, r, appendDecimal)
	dst = append(dst, `,"nickname":`...)
	dst = appendOptional(dst, r, appendText)
	dst = append(dst, `,"mandates":[`...)
	for i := range r.intn(4) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"holder":`...)
		dst = append(dst, v.quoted[r.intn(v.hosted)]...)
		dst = append(dst, `,"note":`...)
		dst = appendText(dst, r)
		dst = append(dst, '}')
	}
	dst = append(dst, `],"meta":`...)
	dst = appendMeta(dst, r, 6)
	return append(dst, '}')
}

func (v *view) appendHolding(dst []byte, r *rng, owner []byte) []byte {
	dst = append(dst, `{"owner":`...)
	dst = append(dst, owner...)
	dst = append(dst, `,"instrument":`...)
	dst = v.appendInstrument(dst, r)
	dst = append(dst, `,"amount":{"initialAmount":`...)
	dst = appendDecimal(dst, r)
	dst = append(dst, `,"createdAt":{"number":`...)
	dst = appendInt64(dst, r)
	dst = append(dst, `},"ratePerRound":{"rate":`...)
	if r.plain {
		dst = append(dst, `"0.0010000000"`...)
	} else {
		dst = appendDecimal(dst, r)
	}
	dst = append(dst, `}},"meta":`...)
	dst = appendMeta(dst, r, 6)
	dst = append(dst, `,"source":{"tag":"`...)
	if r.chance(50) {
		dst = append(dst, `Minted","value":{}}`...)
	} else {
		dst = append(dst, `Received","value":`...)
		dst = append(dst, v.quoted[r.intn(len(v.parties))]...)
		dst = append(dst, '}')
	}
	dst = append(dst, `,"memo":`...)
	return closeRecord(appendOptional(dst, r, appendText))
}

func (v *view) appendOffer(dst []byte, r *rng, owner, last []byte) []byte {
	dst = append(dst, `{"sender":`...)
	dst = append(dst, owner...)
	dst = append(dst, `,"receiver":`...)
	dst = append(dst, last...)
	dst = append(dst, `,"instrument":`...)
	dst = v.appendInstrument(dst, r)
	dst = append(dst, `,"amount":`...)
	dst = appendDecimal(dst, r)
	dst = append(dst, `,"requestedAt":`...)
	dst = appendTime(dst, r)
	dst = append(dst, `,"executeBefore":`...)
	dst = appendTime(dst, r)
	dst = append(dst, `,"inputs":[`...)
	for i := range r.intn(3) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = v.contractID(dst, int32(r.intn(1<<20)))
		dst = append(dst, '"')
	}
	dst = append(dst, `],"meta":`...)
	dst = appendMeta(dst, r, 6)
	return append(dst, '}')
}

// appendAgreement has every form of value that there is.
func (v *view) appendAgreement(dst []byte, r *rng, owner, last []byte, number int32) []byte {
	dst = append(dst, `{"parties":{"_1":`...)
	dst = append(dst, owner...)
	dst = append(dst, `,"_2":`...)
	dst = append(dst, last...)
	dst = append(dst, `},"serial":"`...)
	dst = appendInt(dst, int64(number))
	dst = append(dst, `","signed":`...)
	dst = appendBool(dst, r.chance(50))
	dst = append(dst, `,"tradeDate":`...)
	dst = appendDate(dst, r)
	dst = append(dst, `,"settlesAt":`...)
	dst = appendTime(dst, r)
	dst = append(dst, `,"notional":`...)
	dst = appendDecimal(dst, r)
	dst = append(dst, `,"rate":`...)
	dst = appendOptional(dst, r, appendDecimal)
	dst = append(dst, `,"dayCount":"`...)
	dst = append(dst, [...]string{"Act360", "Act365", "Thirty360"}[r.intn(3)]...)
	dst = append(dst, `","master":"`...)
	dst = v.contractID(dst, int32(r.intn(1<<20)))
	dst = append(dst, `","terms":{"tag":"Fixed","value":{"coupon":`...)
	dst = appendDecimal(dst, r)
	dst = append(dst, `,"unit":{}}},"schedule":[`...)
	due := int64(r.next()) >> 8
	for i := range 1 + r.intn(3) { // maps are sorted by their keys
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `["`...)
		dst = appendInt(dst, due)
		dst = append(dst, `",{"due":`...)
		dst = appendDate(dst, r)
		dst = append(dst, `,"amount":`...)
		dst = appendDecimal(dst, r)
		dst = append(dst, `}]`...)
		due += 1 + int64(r.intn(100))
	}
	dst = append(dst, `],"labels":{"":`...)
	dst = appendText(dst, r)
	dst = append(dst, `,"desk":`...)
	dst = appendText(dst, r)
	dst = append(dst, `},"nested":`...)
	dst = append(dst, [...]string{"[]", "[[]]", `[["7"]]`}[r.intn(3)]...) // an optional optional: a list at every level
	dst = append(dst, `,"lots":"`...)                                     // of scale 0
	lots := [...]string{"0.", "9999.", "-1.", "99999999999999999999999999999999999999."}[number%4]
	if r.plain {
		lots = "9999."
	}
	dst = append(dst, lots...)
	dst = append(dst, `","clauses":[`...)
	for i := range 2 + r.intn(2) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, r)
	}
	return append(dst, `]}`...)
}

func (v *view) appendEntry(dst []byte, r *rng, owner []byte, number int32) []byte {
	dst = append(dst, `{"registrar":`...)
	dst = append(dst, owner...)
	dst = append(dst, `,"name":"entry-`...)
	dst = appendInt(dst, int64(number))
	dst = append(dst, `","value":`...)
	dst = appendOptional(dst, r, appendText)
	dst = append(dst, `,"previous":null,"note":"","tags":[],"attributes":{},"meta":`...)
	dst = appendMeta(dst, r, 6)
	return append(dst, '}')
}

// appendKey appends the key of a contract of a keyed template.
func (v *view) appendKey(dst []byte, number int32) []byte {
	c := &v.contracts[number]
	dst = append(dst, `{"_1":`...)
	dst = append(dst, v.quoted[c.parties[0]]...)
	dst = append(dst, `,"_2":"`...)
	dst = appendInt(dst, int64(number))
	return append(dst, `"}`...)
}

// viewFails reports whether the interface view of a contract can not be computed.
func (v *view) viewFails(number int32, iface int) bool {
	return mix(v.seed^uint64(number)<<3^uint64(iface))%24 == 0
}

func (v *view) appendView(dst []byte, number int32, iface int, feat *features) []byte {
	dst = append(dst, `{"interfaceId":"`...)
	dst = append(dst, interfaces[iface].id()...)
	dst = append(dst, `","viewStatus":`...)
	failed := v.viewFails(number, iface)
	if failed {
		dst = append(dst, `{"code":9,"message":`...)
		dst = append(dst, viewFailure...)
		dst = append(dst, `,"details":`...)
		dst = v.appendViewDetails(dst, number)
		dst = append(dst, `},"viewValue":null`...)
	} else {
		dst = append(dst, `{"code":0,"message":"","details":[]},"viewValue":`...)
		dst = v.appendViewValue(dst, number, iface)
	}
	if feat.contractKeyHash {
		dst = append(dst, `,"implementationPackageId":`...)
		if failed {
			dst = append(dst, "null"...)
		} else {
			dst = appendQuoted(dst, v.representative(number))
		}
	}
	return append(dst, '}')
}

const viewFailure = `"DAML_FAILURE(9,sandbox): the view of this contract can not be computed"`

// appendViewDetails appends a detail whose type the server knows (decoded to an
// object) and for some contracts one that it does not.
func (v *view) appendViewDetails(dst []byte, number int32) []byte {
	r := derive(v.seed, domainView, uint64(number)<<2|3)
	value := base64.StdEncoding.EncodeToString(r.bytes(nil, 48))
	dst = append(dst, `[{"typeUrl":"type.googleapis.com/google.rpc.ErrorInfo","value":"`...)
	dst = append(dst, value...)
	dst = append(dst, `","unknownFields":{"fields":{}},"valueDecoded":`+
		`{"reason":"DAML_FAILURE","domain":"","metadata":{"category":"9"}}}`...)
	if r.chance(50) {
		dst = append(dst, `,{"typeUrl":"type.googleapis.com/demo.Unknown","value":"","unknownFields":{"fields":{}},`+
			`"valueDecoded":"Unknown type for decoding"}`...)
	}
	return append(dst, ']')
}

func (v *view) appendViewValue(dst []byte, number int32, iface int) []byte {
	if iface == ifaceTokenHolding {
		return v.appendTokenHolding(dst, number)
	}
	c := &v.contracts[number]
	r := v.values(domainView, uint64(number)<<2|uint64(iface))
	if iface == ifaceHolding && r.plain { // as the contract says
		r = v.values(domainPayload, uint64(number))
	}
	dst = append(dst, `{"owner":`...)
	dst = append(dst, v.quoted[c.parties[0]]...)
	switch iface {
	case ifaceHolding:
		dst = append(dst, `,"instrument":`...)
		dst = v.appendInstrument(dst, &r)
		dst = append(dst, `,"amount":`...)
		dst = appendDecimal(dst, &r)
		dst = append(dst, `,"lock":null`...)
	case ifaceLockable:
		dst = append(dst, `,"expiresAt":`...)
		dst = appendOptional(dst, &r, appendTime)
	default:
		dst = append(dst, `,"status":{"tag":"Pending","value":{}},"reason":`...)
		dst = appendText(dst, &r)
	}
	dst = append(dst, `,"meta":`...)
	dst = appendMeta(dst, &r, 1)
	return append(dst, '}')
}

func (v *view) exerciseRNG(index int, e *event) rng {
	return v.values(domainExercise, uint64(index)<<24^uint64(e.node))
}

func (v *view) appendChoiceArgument(dst []byte, index int, e *event) []byte {
	if e.served.template().choices[e.choice].name == "Archive" {
		return append(dst, `{}`...)
	}
	r := v.exerciseRNG(index, e)
	dst = append(dst, `{"actor":`...)
	dst = append(dst, v.quoted[e.actor]...)
	dst = append(dst, `,"amount":`...)
	dst = appendOptional(dst, &r, appendDecimal)
	dst = append(dst, `,"at":`...)
	dst = appendTime(dst, &r)
	dst = append(dst, `,"context":`...)
	dst = appendMeta(dst, &r, 2)
	return append(dst, '}')
}

// appendExerciseResult appends unit, or what resultForm says of the choice.
func (v *view) appendExerciseResult(dst []byte, index int, e *event) []byte {
	name := e.served.template().choices[e.choice].name
	if name == "Archive" {
		return append(dst, `{}`...)
	}
	r := v.exerciseRNG(index, e)
	switch resultForm(name) {
	case resultNone:
		return append(dst, "null"...)
	case resultContract:
		dst = append(dst, '"')
		dst = v.contractID(dst, e.contract)
		return append(dst, '"')
	case resultDecimal:
		return appendDecimal(dst, &r)
	case resultMoved:
		return v.appendMoved(dst, index, e)
	}
	dst = append(dst, `{"summary":`...)
	dst = appendText(dst, &r)
	dst = append(dst, `,"rounds":[`...)
	dst = appendInt64(dst, &r)
	return append(dst, `]}`...) // and no change
}
