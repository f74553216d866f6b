package sandbox

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"time"
)

// features are the differences between the participant's releases that show in its
// responses.
type features struct {
	contractKeyHash bool // CreatedEvent.contractKeyHash and InterfaceView.implementationPackageId
	token           bool // streamContinuationToken
	onboarding      bool // ParticipantAuthorizationOnboarding
	transactionHash bool
	endTimes        bool // synchronizerTimes in the ledger end

	// bareLookups leaves empty what a looked-up contract does not have, to the letter of
	// interface.md (endpoint 3). Real participants put something there: see lookupOffset.
	bareLookups bool
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// appendInstant appends a time of microseconds since 1970 as the participant writes
// it: in UTC, with 0, 3 or 6 digits of the second's fraction.
func appendInstant(dst []byte, micros int64) []byte {
	t := time.UnixMicro(micros).UTC()
	switch {
	case micros%1_000_000 == 0:
		return t.AppendFormat(dst, "2006-01-02T15:04:05Z")
	case micros%1000 == 0:
		return t.AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	}
	return t.AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
}

// appendParties appends a list of parties, which is a set: each reading has another order, as a participant has after a
// restart.
func (v *view) appendParties(dst []byte, parties []uint16) []byte {
	var list [maxWitnesses]uint16
	shuffled := list[:copy(list[:], parties)]
	slices.SortFunc(shuffled, func(a, b uint16) int {
		return cmp.Compare(mix(v.seed^v.reading<<16^uint64(a)), mix(v.seed^v.reading<<16^uint64(b)))
	})
	dst = append(dst, '[')
	for i, p := range shuffled {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, v.quoted[p]...)
	}
	return append(dst, ']')
}

// effective returns the ledger effective time of an update: a little before it was
// recorded.
func (u *update) effective() int64 { return u.record - 300_000 - u.dealt%7*1000 }

// extras are the parts of an update that it may or may not have. They are
// derived, as everything that no later update depends on.
type extras struct {
	command, workflow        string
	traceParent, traceState  string // traceParent "": no trace context; traceState "": null
	externalHash, updateHash []byte // externalHash nil: null
	cost                     int64  // -1: null
}

func (w *world) extrasOf(index int) (x extras) {
	r := derive(w.seed, domainUpdate, uint64(index))
	if r.chance(50) {
		x.command = "command-" + strconv.Itoa(index)
	}
	if r.chance(30) {
		x.workflow = "workflow-" + strconv.Itoa(r.intn(1000))
	}
	if r.chance(60) {
		b := append(make([]byte, 0, 55), "00-"...)
		b = appendHex(appendHex(b, r.next()), r.next())
		b = appendHex(append(b, '-'), r.next())
		x.traceParent = string(append(b, "-01"...))
		if r.chance(20) {
			x.traceState = "vendor=" + strconv.Itoa(r.intn(100))
		}
	}
	if r.chance(15) {
		x.externalHash = r.bytes(nil, 32)
	}
	x.cost = -1
	if r.chance(70) {
		x.cost = int64(r.intn(20_000))
	}
	x.updateHash = r.bytes(nil, 32)
	return x
}

func appendTrace(dst []byte, x *extras) []byte {
	if x.traceParent == "" {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"traceparent":"`...)
	dst = append(dst, x.traceParent...)
	dst = append(dst, `","tracestate":`...)
	if x.traceState == "" {
		return append(dst, "null}"...)
	}
	return append(appendQuoted(dst, x.traceState), '}')
}

func appendCost(dst []byte, cost int64) []byte {
	if cost < 0 {
		return append(dst, "null"...)
	}
	return appendInt(dst, cost)
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

// appendUpdate appends {"update":{…}} of update i as the filter shows it, or
// nothing and false if it shows nothing.
func (v *view) appendUpdate(dst []byte, i int, f *updateFilter, feat *features) ([]byte, bool) {
	u := &v.updates[i]
	switch u.kind {
	case kindTransaction:
		return v.appendTransaction(dst, i, u, f, feat)
	case kindReassignment:
		return v.appendReassignment(dst, i, u, f, feat)
	case kindTopology:
		return v.appendTopology(dst, i, u, f, feat)
	}
	return dst, false
}

func (v *view) appendTransaction(dst []byte, i int, u *update, f *updateFilter, feat *features) ([]byte, bool) {
	if f.transactions == nil {
		return dst, false
	}
	start := len(dst)
	x := v.extrasOf(i)
	dst = append(dst, `{"update":{"Transaction":{"value":{"updateId":"`...)
	dst = v.updateID(dst, i)
	dst = append(dst, `","commandId":"`...)
	dst = append(dst, x.command...)
	dst = append(dst, `","workflowId":"`...)
	dst = append(dst, x.workflow...)
	dst = append(dst, `","effectiveAt":"`...)
	dst = appendInstant(dst, u.effective())
	dst = append(dst, `","events":[`...)
	none := len(dst)
	dst = v.appendEvents(dst, i, u, f, feat)
	if len(dst) == none {
		return dst[:start], false
	}
	dst = append(dst, `],"offset":`...)
	dst = appendInt(dst, u.offset)
	dst = append(dst, `,"synchronizerId":"`...)
	dst = append(dst, v.synchronizers[u.synchronizer]...)
	dst = append(dst, `","traceContext":`...)
	dst = appendTrace(dst, &x)
	dst = append(dst, `,"recordTime":"`...)
	dst = appendInstant(dst, u.record)
	dst = append(dst, `","externalTransactionHash":`...)
	if x.externalHash == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendBase64(dst, x.externalHash)
	}
	dst = append(dst, `,"paidTrafficCost":`...)
	dst = appendCost(dst, x.cost)
	if feat.transactionHash {
		dst = append(dst, `,"transactionHash":`...)
		dst = appendBase64(dst, x.updateHash)
	}
	return append(dst, `}}}}`...), true
}

func (v *view) appendReassignment(dst []byte, i int, u *update, f *updateFilter, feat *features) ([]byte, bool) {
	if f.reassignments == nil {
		return dst, false
	}
	start := len(dst)
	x := v.extrasOf(i)
	dst = append(dst, `{"update":{"Reassignment":{"value":{"updateId":"`...)
	dst = v.updateID(dst, i)
	dst = append(dst, `","commandId":"`...)
	dst = append(dst, x.command...)
	dst = append(dst, `","workflowId":"`...)
	dst = append(dst, x.workflow...)
	dst = append(dst, `","offset":`...)
	dst = appendInt(dst, u.offset)
	dst = append(dst, `,"events":[`...)
	none := len(dst)
	for _, l := range v.legs[u.first : u.first+u.count] {
		r := &v.reassignments[l.reassignment]
		s := v.holdersSight(f.reassignments, &v.contracts[r.contract])
		if !s.match {
			continue
		}
		if len(dst) > none {
			dst = append(dst, ',')
		}
		if l.assign {
			dst = append(dst, `{"JsAssignmentEvent":`...)
			dst = v.appendAssigned(dst, l.reassignment, u.offset, l.node, &s, feat)
			dst = append(dst, '}')
		} else {
			dst = append(dst, `{"JsUnassignedEvent":{"value":`...)
			dst = v.appendUnassigned(dst, l.reassignment, &s)
			dst = append(dst, `}}`...)
		}
	}
	if len(dst) == none {
		return dst[:start], false
	}
	dst = append(dst, `],"traceContext":`...)
	dst = appendTrace(dst, &x)
	dst = append(dst, `,"recordTime":"`...)
	dst = appendInstant(dst, u.record)
	dst = append(dst, `","synchronizerId":"`...)
	dst = append(dst, v.synchronizers[u.synchronizer]...)
	dst = append(dst, `","paidTrafficCost":`...)
	dst = appendCost(dst, x.cost)
	return append(dst, `}}}}`...), true
}

var permissions = [...]string{
	"PARTICIPANT_PERMISSION_UNSPECIFIED", "PARTICIPANT_PERMISSION_SUBMISSION",
	"PARTICIPANT_PERMISSION_CONFIRMATION", "PARTICIPANT_PERMISSION_OBSERVATION",
}

// variant returns the served name of a topology event and the kind that analysts see.
// Onboarding is unknown before 3.5, which reports it as an addition.
func (e *topologyEvent) variant(feat *features) (served, kind string) {
	switch {
	case e.kind == topologyChanged:
		return "ParticipantAuthorizationChanged", "changed"
	case e.kind == topologyRevoked:
		return "ParticipantAuthorizationRevoked", "revoked"
	case e.kind == topologyOnboarding && feat.onboarding:
		return "ParticipantAuthorizationOnboarding", "onboarding"
	}
	return "ParticipantAuthorizationAdded", "added"
}

func (w *world) topologyParticipant(e *topologyEvent) string {
	if e.elsewhere {
		return w.other
	}
	return w.participant
}

func (v *view) appendTopology(dst []byte, i int, u *update, f *updateFilter, feat *features) ([]byte, bool) {
	if !f.topology {
		return dst, false
	}
	start := len(dst)
	dst = append(dst, `{"update":{"TopologyTransaction":{"value":{"updateId":"`...)
	dst = v.updateID(dst, i)
	dst = append(dst, `","offset":`...)
	dst = appendInt(dst, u.offset)
	dst = append(dst, `,"synchronizerId":"`...)
	dst = append(dst, v.synchronizers[u.synchronizer]...)
	dst = append(dst, `","recordTime":"`...)
	dst = appendInstant(dst, u.record)
	dst = append(dst, `","events":[`...)
	none := len(dst)
	events := v.topology[u.first : u.first+u.count]
	for j := range events {
		e := &events[j]
		if !f.showsTopology(v.parties[e.party]) {
			continue
		}
		if len(dst) > none {
			dst = append(dst, ',')
		}
		served, _ := e.variant(feat)
		dst = append(dst, `{"event":{"`...)
		dst = append(dst, served...)
		dst = append(dst, `":{"value":{"partyId":`...)
		dst = append(dst, v.quoted[e.party]...)
		dst = append(dst, `,"participantId":"`...)
		dst = append(dst, v.topologyParticipant(e)...)
		dst = append(dst, '"')
		if e.kind != topologyRevoked {
			dst = append(dst, `,"participantPermission":"`...)
			dst = append(dst, permissions[e.permission]...)
			dst = append(dst, '"')
		}
		dst = append(dst, `}}}}`...)
	}
	if len(dst) == none {
		return dst[:start], false
	}
	x := v.extrasOf(i)
	dst = append(dst, `],"traceContext":`...)
	dst = appendTrace(dst, &x)
	return append(dst, `}}}}`...), true
}
