package rows

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// The view holding_events defines what a contract holds. This file computes the same in a tenth of the time. Anybody
// can write the payloads that are read here, so a part that can't be read is nil, not an error.

// The interfaces of the token standard whose views describe holdings, from the version that counts most on.
var holdingInterfaces = [...]string{":Splice.Api.Token.HoldingV2:Holding", ":Splice.Api.Token.HoldingV1:Holding"}

// ownerIn is the member of such a view that is, or has, the owner.
var ownerIn = [...]string{"account", "owner"}

// creationOf collects the names of a creation event, and what it holds. plain is as in Update.
func creationOf(n *names.References, c *ledger.CreatedEvent, plain bool) names.Creation {
	var holding *names.Holding
	h := holdingReader{event: c, plain: plain}
	isAmulet, isLocked := amulet(c)
	if isAmulet && h.readAmulet(isLocked) || h.readViews() || isAmulet {
		admin := h.position.InstrumentAdmin
		h.position.AdminSigned = admin != nil && slices.ContainsFunc(c.Signatories,
			func(party string) bool { return party == string(admin) })
		holding = n.Holding(h.position, h.amount, h.locked, h.lockedUntil)
	}
	return n.Created(c, holding)
}

// amulet reports whether a contract is an amulet, by its template.
func amulet(c *ledger.CreatedEvent) (isAmulet, isLocked bool) {
	if c.PackageName != "splice-amulet" {
		return false, false
	}
	isLocked = strings.HasSuffix(c.TemplateID, ":Splice.Amulet:LockedAmulet")
	return isLocked || strings.HasSuffix(c.TemplateID, ":Splice.Amulet:Amulet"), isLocked
}

type holdingReader struct {
	event *ledger.CreatedEvent
	plain bool

	position    names.Position
	amount      ledger.Decimal
	locked      *bool
	lockedUntil pgtype.Timestamptz
}

// lockedOrNot has the booleans that rows point at.
var lockedOrNot = map[bool]*bool{true: new(true), false: new(false)}

// stored returns a value as its column has it. In place of a value that jsonb refuses, the column has an object with
// none of the members that are read here.
func (h *holdingReader) stored(value ledger.JSON) []byte {
	if !h.plain && jsonbRefuses(value) != "" {
		return nil
	}
	return value
}

// readAmulet reads the payload. It reports whether owner or amount can be read: else a view counts.
func (h *holdingReader) readAmulet(isLocked bool) bool {
	payload, lock := h.stored(h.event.Argument), []byte(nil)
	if isLocked {
		found := members(payload, [4]string{"amulet", "lock"})
		payload, lock = found[0], found[1]
	}
	found := members(payload, [4]string{"owner", "amount", "dso"})
	owner, amount := textOf(found[0]), decimalOf(member(found[1], "initialAmount"))
	if owner == nil && amount == "" {
		return false
	}
	h.position = names.Position{Owner: owner, Instrument: []byte("Amulet"), InstrumentAdmin: textOf(found[2])}
	h.amount, h.locked, h.lockedUntil = amount, lockedOrNot[isLocked], h.end(lock)
	return true
}

// readViews reads the view that counts: one that says who owns how much, before the others; the later version, before
// the earlier one; the first of these. It reports whether there is one.
func (h *holdingReader) readViews() (found bool) {
	for version, suffix := range holdingInterfaces {
		for i := range h.event.InterfaceViews {
			v := &h.event.InterfaceViews[i]
			if !strings.HasSuffix(v.InterfaceID, suffix) || v.StatusCode != nil && *v.StatusCode != 0 || v.Value == nil {
				continue
			}
			value := members(h.stored(v.Value), [4]string{ownerIn[version], "amount", "instrumentId", "lock"})
			if version == 0 {
				value[0] = member(value[0], "owner")
			}
			owner, amount := textOf(value[0]), decimalOf(value[1])
			readable := owner != nil || amount != ""
			if found && !readable {
				continue
			}
			found = true
			instrument := members(value[2], [4]string{"id", "admin"})
			h.position = names.Position{Owner: owner, Instrument: textOf(instrument[0]), InstrumentAdmin: textOf(instrument[1])}
			h.amount, h.locked, h.lockedUntil = amount, nil, h.end(value[3])
			switch kind := kindOf(value[3]); {
			case kind == '{':
				h.locked = lockedOrNot[true]
			case readable && (kind == 0 || kind == 'n'):
				h.locked = lockedOrNot[false]
			}
			if readable {
				return true
			}
		}
	}
	return found
}

// end returns when a lock expires: at a time, or some time after the creation, whichever is earlier.
func (h *holdingReader) end(lock []byte) (at pgtype.Timestamptz) {
	found := members(lock, [4]string{"expiresAt", "expiresAfter"})
	at = timeOf(found[0])
	created := Timestamp(h.event.CreatedAt)
	if after, ok := durationOf(member(found[1], "microseconds")); ok && created.Valid {
		if end := created.Time.Add(after); !at.Valid || end.Before(at.Time) {
			at = pgtype.Timestamptz{Time: end, Valid: true}
		}
	}
	return at
}

// The operators of jsonb, on the text of JSON that jsonb takes. No value at all is NULL.

// kindOf returns the first character of a value, which decides its kind; 0: there is no value.
func kindOf(value []byte) byte {
	if value = skipSpace(value); len(value) == 0 {
		return 0
	}
	return value[0]
}

// member returns a member of an object; nil where there is none.
func member(object []byte, name string) []byte { return members(object, [4]string{name})[0] }

// members returns members of an object, each the last one of its name; nil where there is none. An empty name is none.
func members(object []byte, wanted [4]string) (found [4][]byte) {
	if kindOf(object) != '{' {
		return found
	}
	rest := skipSpace(skipSpace(object)[1:])
	for len(rest) > 0 && rest[0] == '"' {
		end := stringEnd(rest)
		key := textOf(rest[:end])
		rest = skipSpace(skipSpace(rest[end:])[1:]) // after the colon
		end = valueEnd(rest)
		for i, name := range wanted {
			if name != "" && string(key) == name {
				found[i] = rest[:end]
			}
		}
		if rest = skipSpace(rest[end:]); len(rest) == 0 || rest[0] != ',' {
			break
		}
		rest = skipSpace(rest[1:])
	}
	return found
}

// textOf returns the text that a value is; nil where it is something else.
func textOf(value []byte) []byte {
	if kindOf(value) != '"' {
		return nil
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1]
	}
	text, err := jsontext.AppendUnquote([]byte{}, value)
	if err != nil {
		return nil
	}
	return text
}

// mostDecimal is the most characters that the text of a decimal may have.
const mostDecimal = 700

// decimalOf returns the decimal in a text or a number, as numeric prints it, as the database's function decimal_of
// does; empty where there is none.
func decimalOf(value []byte) ledger.Decimal {
	text := string(value)
	if kindOf(value) == '"' {
		if len(value) > 6*mostDecimal { // even where each character is escaped
			return ""
		}
		if text = string(textOf(value)); len(text) > mostDecimal {
			return ""
		}
	}
	decimal, err := ledger.ParseDecimal(text)
	if err != nil {
		return ""
	}
	return decimal.Plain()
}

// timeOf returns the time in a text, as ledger.as_timestamptz does.
func timeOf(value []byte) (at pgtype.Timestamptz) {
	text := string(textOf(value))
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > len("2006-01-02T15:04:05.000000Z") || text[13] != ':' ||
		text[19] == ',' || strings.HasPrefix(text, "0000") {
		return at // what is not refused here and is no time, time.Parse refuses
	}
	t, err := time.Parse("2006-01-02T15:04:05Z", text)
	return pgtype.Timestamptz{Time: t, Valid: err == nil}
}

// mostMicroseconds is the longest duration that is added to a time: 285 years.
const mostMicroseconds = 9_000_000_000_000_000

// durationOf returns the duration in a text or a number, in microseconds, as the database's function duration_of does.
func durationOf(value []byte) (d time.Duration, ok bool) {
	text := string(textOf(value))
	if kindOf(value) != '"' {
		text = string(decimalOf(value))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strings.HasPrefix(text, "+") || len(strings.TrimPrefix(text, "-")) > 19 || n > mostMicroseconds ||
		n < -mostMicroseconds {
		return 0, false
	}
	return time.Duration(n) * time.Microsecond, true
}

func skipSpace(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\n' || text[0] == '\t' || text[0] == '\r') {
		text = text[1:]
	}
	return text
}

// stringEnd returns the position after the closing quote of the string that a text begins with.
func stringEnd(text []byte) int {
	for i := 1; ; {
		quote := i + bytes.IndexByte(text[i:], '"')
		escape := bytes.IndexByte(text[i:quote], '\\')
		if escape < 0 {
			return quote + 1
		}
		i += escape + 2
	}
}

// valueEnd returns the position after the value that a text begins with.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			if i += stringEnd(text[i:]); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			} else if depth < 0 {
				return i
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(text)
}
