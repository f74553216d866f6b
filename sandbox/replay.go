package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Replay is a ledger made of recorded responses: lists of updates and of active
// contracts. It serves what was recorded, in the shape in which it was recorded,
// whatever the filters of a request; only kinds that were not asked for are left out.
//
// Recordings of updates are put one after the other, their offsets moved so that the
// first is 1. Recordings of active contracts were normalised apart from them: their
// contract ids get the prefix "snapshot-N:" (N counts those files) and their node ids
// are numbered on, because all can be the same. They are the snapshot at every offset
// from their own on. Everything else is served with the values that were recorded.
type Replay struct {
	participant   string
	exchanged     bool // what was recorded are exchanges
	updates       []replayUpdate
	entries       []replayEntry
	synchronizers []string
	aliases       []string
	contracts     map[string]json.RawMessage // their CreatedEvent
	ids           map[string]int
	ledgerEnd     int64
	snapshots     int
	vets          *vettings
}

type replayUpdate struct {
	offset       int64
	id           string
	variant      string
	synchronizer int   // or -1
	record       int64 // microseconds, or 0
	events       []json.RawMessage
	raw          [2]json.RawMessage // in the shapes ACS_DELTA and LEDGER_EFFECTS; nil: not shown
}

type replayEntry struct {
	offset   int64
	workflow string
	raw      []byte
}

// LoadReplay reads files that each hold the JSON array of a response: of updates
// (elements with "update") or of active contracts (with "contractEntry").
func LoadReplay(files ...string) (*Replay, error) {
	r := &Replay{participant: replayedParticipant, contracts: map[string]json.RawMessage{}, ids: map[string]int{}}
	r.vets = &vettings{participant: replayedParticipant, packages: newPackageSet(nil, nil, nil)}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("load a recording: %w", err)
		}
		if err := r.load(data); err != nil {
			return nil, fmt.Errorf("load the recording %s: %w", file, err)
		}
	}
	if len(r.updates) == 0 && len(r.entries) == 0 {
		return nil, errors.New("load recordings: there is nothing in them; name files with the JSON array of a response")
	}
	return r, nil
}

// ParticipantID returns the participant's id. It is made up where there are lists only, which do not contain it.
func (r *Replay) ParticipantID() string { return r.participant }

// End returns the ledger end: the last offset there is.
func (r *Replay) End() int64 { return r.ledgerEnd }

// Len returns the number of updates.
func (r *Replay) Len() int { return len(r.updates) }

// Entries returns the number of entries of the snapshot.
func (r *Replay) Entries() int { return len(r.entries) }

func (r *Replay) load(data []byte) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		return err
	}
	if len(elements) == 0 {
		return nil
	}
	var first object
	if err := json.Unmarshal(elements[0], &first); err != nil {
		return err
	}
	add := r.addEntry
	switch {
	case first["update"] != nil:
		offset, err := findOffset(first["update"])
		if err != nil {
			return err
		}
		shift := r.ledgerEnd + 1 - offset
		if len(r.updates) == 0 {
			shift = 1 - offset
		}
		add = func(raw json.RawMessage) error { return r.addUpdate(raw, shift) }
	case first["contractEntry"] != nil:
		r.snapshots++
	default:
		return errors.New("the elements are neither updates nor active contracts")
	}
	for i, raw := range elements {
		if err := add(raw); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// findOffset returns the offset of an update.
func findOffset(update json.RawMessage) (int64, error) {
	var d decoder
	_, variant := d.variant(update, "update")
	offset := d.object(d.object(variant, "update")["value"], "value")["offset"]
	if d.err == nil && offset == nil {
		return 0, errors.New("the update has no offset")
	}
	return decode[int64](&d, offset, "offset"), d.err
}

func (r *Replay) addUpdate(raw json.RawMessage, shift int64) error {
	var d decoder
	offsets := edit{"offset": mover(shift)}
	created := edit{"offset": mover(shift)}
	events := each(anyKey(edit{
		"offset": mover(shift), "value": nested(offsets), "createdEvent": nested(created),
	}))
	moved, err := apply(raw, edit{"update": anyKey(edit{"value": nested(edit{"offset": mover(shift), "events": events})})})
	if err != nil {
		return err
	}
	u := r.newUpdate(&d, moved)
	u.raw = [2]json.RawMessage{moved, moved}
	for _, event := range u.events {
		if id, created := createdIn(&d, event); id != "" {
			r.contracts[id] = created
		}
	}
	if u.offset <= r.ledgerEnd && len(r.updates) > 0 {
		d.fail("update", fmt.Errorf("offset %d does not grow", u.offset))
	}
	if u.id != "" {
		r.ids[u.id] = len(r.updates)
	}
	r.updates = append(r.updates, u)
	r.ledgerEnd = max(r.ledgerEnd, u.offset)
	return d.err
}

// newUpdate reads an element with an update.
func (r *Replay) newUpdate(d *decoder, element json.RawMessage) replayUpdate {
	variant, body := d.variant(d.object(element, "")["update"], "update")
	value := d.object(d.object(body, variant)["value"], "value")
	u := replayUpdate{
		offset: decode[int64](d, value["offset"], "offset"), id: decode[string](d, value["updateId"], "updateId"),
		variant: variant, synchronizer: -1, events: decode[[]json.RawMessage](d, value["events"], "events"),
	}
	if id := decode[string](d, value["synchronizerId"], "synchronizerId"); id != "" {
		u.synchronizer = r.synchronizer(id)
		record := decode[time.Time](d, value["recordTime"], "recordTime")
		u.record = record.UnixMicro()
	}
	if value["offset"] == nil {
		d.fail("update", errors.New("the update has no offset"))
	}
	return u
}

// createdIn returns the contract that an event creates, or brings to a synchronizer, and its CreatedEvent; "": it does
// neither.
func createdIn(d *decoder, event json.RawMessage) (id string, created json.RawMessage) {
	name, body := d.variant(event, "event")
	if name == "JsAssignmentEvent" {
		name, body = "CreatedEvent", d.object(body, name)["createdEvent"]
	}
	if name != "CreatedEvent" {
		return "", nil
	}
	return decode[string](d, d.object(body, name)["contractId"], "contractId"), body
}

func (r *Replay) synchronizer(id string) int {
	if i := slices.Index(r.synchronizers, id); i >= 0 {
		return i
	}
	r.synchronizers, r.aliases = append(r.synchronizers, id), append(r.aliases, id)
	return len(r.synchronizers) - 1
}

func (r *Replay) addEntry(raw json.RawMessage) error {
	var d decoder
	node := len(r.entries)
	rename := func(raw json.RawMessage) (json.RawMessage, error) {
		var id string
		err := json.Unmarshal(raw, &id)
		return appendString(nil, "snapshot-"+strconv.Itoa(r.snapshots)+":"+id), err
	}
	renumber := func(json.RawMessage) (json.RawMessage, error) { return appendInt(nil, int64(node)), nil }
	created := nested(edit{"contractId": rename, "nodeId": renumber})
	element := d.object(raw, "")
	changed, err := anyKey(edit{
		"createdEvent": created, "unassignedEvent": nested(edit{"contractId": rename}),
		"assignedEvent": nested(edit{"createdEvent": created}),
	})(element["contractEntry"])
	if err != nil {
		return err
	}
	name, body := d.variant(changed, "contractEntry")
	entry := d.object(body, name)
	if id := decode[string](&d, entry["synchronizerId"], "synchronizerId"); id != "" {
		r.synchronizer(id)
	}
	event := entry["createdEvent"]
	if assigned := entry["assignedEvent"]; event == nil && assigned != nil {
		event = d.object(assigned, name)["createdEvent"]
	}
	o := d.object(event, name)
	offset := decode[int64](&d, o["offset"], "offset")
	if event != nil {
		r.contracts[decode[string](&d, o["contractId"], "contractId")] = event
	}
	r.entries = append(r.entries, replayEntry{offset: offset, workflow: decode[string](&d, element["workflowId"],
		"workflowId"), raw: changed})
	r.ledgerEnd = max(r.ledgerEnd, offset)
	return d.err
}

const replayedParticipant = "participant::replayed"

// names implements History.
func (r *Replay) names() names {
	return names{participant: r.participant, synchronizers: r.synchronizers, aliases: r.aliases, recorded: true}
}

func (r *Replay) open() reading { return r }

// vettings implements History. Lists are of a participant without packages.
func (r *Replay) vettings() *vettings { return r.vets }

func (r *Replay) end() int64            { return r.ledgerEnd }
func (r *Replay) prunedTo() int64       { return 0 }
func (r *Replay) more() <-chan struct{} { return nil }
func (r *Replay) count() int            { return len(r.updates) }
func (r *Replay) offsetOf(i int) int64  { return r.updates[i].offset }

// inFlight reports whether there is no snapshot at an offset below the ledger end: of exchanges there is none but the
// empty one at 0.
func (r *Replay) inFlight(at int64) bool { return r.exchanged && at > 0 }

func (r *Replay) after(offset int64) int {
	return sort.Search(len(r.updates), func(i int) bool { return r.updates[i].offset > offset })
}

func (r *Replay) appendUpdate(dst []byte, i int, f *updateFilter, _ *features) ([]byte, bool) {
	u := &r.updates[i]
	switch {
	case u.variant == "Transaction" && f.transactions == nil,
		u.variant == "Reassignment" && f.reassignments == nil,
		u.variant == "TopologyTransaction" && !f.topology:
		return dst, false
	}
	raw, of := u.raw[0], f.transactions
	if f.effects {
		raw = u.raw[1]
	}
	if u.variant == "Reassignment" {
		of = f.reassignments
	}
	if trim := r.trim(of); raw != nil && trim != nil {
		raw = trimmed(raw, edit{"update": anyKey(edit{"value": nested(edit{"events": each(anyKey(trim))})})})
	}
	return append(dst, raw...), raw != nil
}

func (r *Replay) updateNamed(id string) (int, bool) {
	i, ok := r.ids[id]
	return i, ok
}

func (r *Replay) recordTimes(n int) []int64 {
	times := make([]int64, len(r.synchronizers))
	for _, u := range r.updates[:n] {
		if u.synchronizer >= 0 {
			times[u.synchronizer] = max(times[u.synchronizer], u.record)
		}
	}
	return times
}

func (r *Replay) snapshot(at int64, from pointer, f *eventFilter, _ *features, yield func(entry) bool) {
	trim := r.trim(f)
	for i := from.number; i < int64(len(r.entries)); i++ {
		e := &r.entries[i]
		if e.offset > at {
			continue
		}
		raw := e.raw
		if trim != nil {
			raw = trimmed(raw, edit{"JsActiveContract": nested(trim)})
		}
		if !yield(entry{at: pointer{number: i + 1}, offset: e.offset, workflow: e.workflow, raw: raw}) {
			return
		}
	}
}

// trim returns how to leave out of what was exchanged what a filter does not ask for; nil: nothing. A filter is the
// same for every template here.
func (r *Replay) trim(f *eventFilter) edit {
	if !r.exchanged || f.any == nil {
		return nil
	}
	e := edit{}
	if !f.any[0].blob {
		e["createdEventBlob"] = constant(`""`)
	}
	if f.any[0].views == 0 {
		e["interfaceViews"], e["implementedInterfaces"] = constant(`[]`), constant(`[]`)
	}
	if len(e) == 0 {
		return nil
	}
	e["createdEvent"] = nested(maps.Clone(e))
	return e
}

// trimmed edits what was read before, which can't fail.
func trimmed(raw json.RawMessage, e edit) json.RawMessage {
	out, err := apply(raw, e)
	if err != nil {
		panic(fmt.Sprintf("sandbox: a recorded element: %v", err))
	}
	return out
}

func (r *Replay) appendContract(dst []byte, id string, parties []string, feat *features) ([]byte, bool) {
	raw, ok := r.contracts[id]
	if !ok {
		return dst, false
	}
	var d decoder
	o := d.object(raw, "createdEvent")
	witnesses := append(decode[[]string](&d, o["signatories"], "signatories"), decode[[]string](&d, o["observers"],
		"observers")...)
	if len(parties) > 0 {
		witnesses = slices.DeleteFunc(witnesses, func(p string) bool { return !slices.Contains(parties, p) })
	}
	if d.err != nil || len(witnesses) == 0 {
		return dst, false
	}
	packageID, _, _ := strings.Cut(decode[string](&d, o["templateId"], "templateId"), ":")
	o["representativePackageId"] = appendString(nil, packageID)
	o["offset"], o["nodeId"] = json.RawMessage("1"), json.RawMessage("0")
	o["interfaceViews"], o["acsDelta"] = json.RawMessage("[]"), json.RawMessage("false")
	if feat.bareLookups {
		o["offset"], o["createdEventBlob"] = json.RawMessage("0"), json.RawMessage(`""`)
		if len(parties) == 0 {
			witnesses = []string{}
		}
	}
	list, err := marshal(witnesses)
	o["witnessParties"] = list
	event, wrong := marshal(o)
	if d.err != nil || err != nil || wrong != nil {
		return dst, false
	}
	return append(dst, event...), true
}
