package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Exchange is a request to a participant and its answer.
type Exchange struct {
	Method  string
	Path    string // with its query
	Request string // the body
	Status  int
	Type    string // the answer's Content-Type
	Answer  string // its body
}

// ReplayExchanges returns the ledger that a participant showed in recorded exchanges: its updates in both shapes, its
// active contracts at the ledger end, its contracts, synchronizers and vetted packages, and the packages whose
// contents are given by their ids. Of what came several times the longest form counts, which has blobs and views of
// interfaces; they are left out where a request does not ask for them. Parties, templates and interfaces of a request
// are ignored. An update that came in one shape only is not there in the other. Snapshots before the ledger end are
// refused.
func ReplayExchanges(exchanges []Exchange, packages map[string][]byte) (*Replay, error) {
	r := &Replay{
		participant: replayedParticipant, exchanged: true,
		contracts: map[string]json.RawMessage{}, ids: map[string]int{},
	}
	x := exchanged{
		replay: r, updates: map[int64]*replayUpdate{}, entries: map[[2]string]int{}, looked: map[string]bool{},
		packages: map[string]Package{}, vetted: map[[2]string]Vetting{},
	}
	for i, e := range exchanges {
		if e.Status != 200 {
			continue
		}
		if err := x.read(e); err != nil {
			return nil, fmt.Errorf("exchange %d, %s %s: %w", i, e.Method, e.Path, err)
		}
	}
	if len(x.updates) == 0 {
		return nil, errors.New("the exchanges hold no updates")
	}
	for _, offset := range slices.Sorted(maps.Keys(x.updates)) {
		u := x.updates[offset]
		r.ids[u.id] = len(r.updates)
		r.updates = append(r.updates, *u)
		r.ledgerEnd = max(r.ledgerEnd, offset)
	}
	uploaded := slices.SortedFunc(maps.Values(x.packages), func(a, b Package) int { return cmp.Compare(a.ID, b.ID) })
	r.vets = &vettings{participant: r.participant, packages: newPackageSet(uploaded, nil, packages)}
	for _, v := range x.vetted {
		r.vets.set(v)
	}
	return r, nil
}

// exchanged is what has been read of exchanges.
type exchanged struct {
	replay   *Replay
	updates  map[int64]*replayUpdate
	entries  map[[2]string]int  // by contract and synchronizer
	looked   map[string]bool    // contracts whose look-up was recorded
	packages map[string]Package // those that the participant has
	vetted   map[[2]string]Vetting
}

func (x *exchanged) read(e Exchange) error {
	var d decoder
	path, _, _ := strings.Cut(e.Path, "?")
	var list []json.RawMessage
	var answer object
	if strings.HasPrefix(e.Answer, "[") {
		list = decode[[]json.RawMessage](&d, json.RawMessage(e.Answer), "answer")
	} else if e.Answer != "" {
		answer = d.object(json.RawMessage(e.Answer), "answer")
	}
	switch path {
	case "/v2/parties/participant-id":
		x.replay.participant = decode[string](&d, answer["participantId"], "participantId")
	case "/v2/state/ledger-end":
		x.replay.ledgerEnd = decode[int64](&d, answer["offset"], "offset")
	case "/v2/state/connected-synchronizers":
		x.connected(&d, answer)
	case "/v2/updates", "/v2/updates/flats":
		x.addUpdates(&d, list, e.Request)
	case "/v2/updates/get-updates-page":
		x.addUpdates(&d, decode[[]json.RawMessage](&d, answer["updates"], "updates"), e.Request)
	case "/v2/updates/update-by-id":
		x.addUpdates(&d, []json.RawMessage{json.RawMessage(e.Answer)}, e.Request)
	case "/v2/state/active-contracts":
		x.addEntries(&d, list)
	case "/v2/state/active-contracts-page":
		x.addEntries(&d, decode[[]json.RawMessage](&d, answer["activeContracts"], "activeContracts"))
	case "/v2/contracts/contract-by-id":
		id := decode[string](&d, d.object(answer["createdEvent"], "createdEvent")["contractId"], "contractId")
		x.replay.contracts[id], x.looked[id] = answer["createdEvent"], true
	case "/v2/package-vetting/list":
		x.addVetted(&d, answer)
	}
	return d.err
}

func (x *exchanged) connected(d *decoder, answer object) {
	for _, s := range decode[[]object](d, answer["connectedSynchronizers"], "connectedSynchronizers") {
		number := x.replay.synchronizer(decode[string](d, s["synchronizerId"], "synchronizerId"))
		x.replay.aliases[number] = decode[string](d, s["synchronizerAlias"], "synchronizerAlias")
	}
}

func (x *exchanged) addUpdates(d *decoder, list []json.RawMessage, request string) {
	shape := 0
	if strings.Contains(request, shapeLedgerEffects) {
		shape = 1
	}
	for _, raw := range list {
		u := x.replay.newUpdate(d, raw)
		if u.variant == "OffsetCheckpoint" {
			continue
		}
		known := cmp.Or(x.updates[u.offset], &u)
		if len(raw) > len(known.raw[shape]) {
			known.raw[shape] = raw
		}
		if u.variant != "Transaction" { // of which there are shapes
			known.raw[1-shape] = known.raw[shape]
		}
		x.updates[u.offset] = known
		for _, event := range u.events {
			x.keep(d, event)
		}
	}
}

// keep keeps the creation in an event for look-ups.
func (x *exchanged) keep(d *decoder, event json.RawMessage) {
	id, created := createdIn(d, event)
	if id != "" && !x.looked[id] && len(created) > len(x.replay.contracts[id]) {
		x.replay.contracts[id] = created
	}
}

func (x *exchanged) addEntries(d *decoder, list []json.RawMessage) {
	for _, raw := range list {
		element := d.object(raw, "")
		name, body := d.variant(element["contractEntry"], "contractEntry")
		entry := d.object(body, name)
		created := d.object(entry["createdEvent"], "createdEvent")
		if name != "JsActiveContract" {
			d.fail("contractEntry", fmt.Errorf("%s can't be replayed", name))
			return
		}
		of := [2]string{
			decode[string](d, created["contractId"], "contractId"), decode[string](d, entry["synchronizerId"], "synchronizerId"),
		}
		at, known := x.entries[of]
		if !known {
			at = len(x.replay.entries)
			x.entries[of] = at
			x.replay.entries = append(x.replay.entries, replayEntry{
				offset:   decode[int64](d, created["offset"], "offset"),
				workflow: decode[string](d, element["workflowId"], "workflowId"),
			})
		}
		if e := &x.replay.entries[at]; len(element["contractEntry"]) > len(e.raw) {
			e.raw = element["contractEntry"]
		}
	}
}

func (x *exchanged) addVetted(d *decoder, answer object) {
	for _, vetted := range decode[[]object](d, answer["vettedPackages"], "vettedPackages") {
		v := Vetting{
			Synchronizer: decode[string](d, vetted["synchronizerId"], "synchronizerId"),
			Participant:  decode[string](d, vetted["participantId"], "participantId"),
			Serial:       decode[int32](d, vetted["topologySerial"], "topologySerial"),
		}
		for _, p := range decode[[]servedPackage](d, vetted["packages"], "packages") {
			v.Packages = append(v.Packages, Vetted{
				PackageID: p.ID, ValidFrom: instantOf(d, p.ValidFrom), ValidUntil: instantOf(d, p.ValidUntil),
			})
			if p.Name != "" {
				x.packages[p.ID] = Package{ID: p.ID, Name: p.Name, Version: p.Version}
			}
		}
		x.vetted[[2]string{v.Synchronizer, v.Participant}] = v
	}
}

func instantOf(d *decoder, text *string) *time.Time {
	if text == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, *text)
	if err != nil {
		d.fail("packages", err)
	}
	return &at
}
