package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The paths of the snapshots of the network (interface.md, "Updates of a network").
const (
	pathSnapshotBefore = "/v0/state/acs/snapshot-timestamp"
	pathSnapshotAfter  = "/v0/state/acs/snapshot-timestamp-after"
	pathNetworkACS     = "/v1/state/acs"
)

// migrationEnd returns the index after the last update of a migration.
func (v *networkView) migrationEnd(migration int64) int { return v.after(migration, math.MaxInt64) }

// snapshotBefore returns the time of the newest snapshot at or before a time in a migration. One is taken at each
// multiple of an interval, when an update after that was seen.
func (v *networkView) snapshotBefore(migration, before, every int64) (at int64, ok bool) {
	first, end := v.migrationEnd(migration-1), v.migrationEnd(migration)
	if first == end {
		return 0, false
	}
	at = min(before, v.updates[end-1].record-1)
	at -= at % every
	return at, at >= v.updates[first].record
}

// snapshotAfter returns the time of the first snapshot after a time in a migration, or in a later one.
func (v *networkView) snapshotAfter(migration, after, every int64) (at int64, ok bool) {
	for ; v.migrationEnd(migration-1) < len(v.updates); migration++ {
		first, end := v.migrationEnd(migration-1), v.migrationEnd(migration)
		if first < end {
			at = max(after, v.updates[first].record-1)
			if at += every - at%every; at < v.updates[end-1].record {
				return at, true
			}
		}
		after = 0
	}
	return 0, false
}

// snapshotTime implements the two operations that name a snapshot: parameter is their time's, which says in refusals
// where none is.
func (s *Scan) snapshotTime(parameter string, find func(v *networkView, migration, at, every int64) (int64,
	bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.Query()
		for _, name := range []string{parameter, "migration_id"} {
			if !given.Has(name) {
				writeScanError(w, http.StatusNotFound, "Request is missing required query parameter '"+name+"'")
				return
			}
		}
		at, err := time.Parse(time.RFC3339Nano, given.Get(parameter))
		migration, wrong := strconv.ParseInt(given.Get("migration_id"), 10, 64)
		if err != nil || wrong != nil {
			writeScanError(w, http.StatusBadRequest, "The query parameter '"+parameter+"' or 'migration_id' was malformed")
			return
		}
		record, ok := find(s.network(), migration, at.UnixMicro(), s.opts.SnapshotEvery.Microseconds())
		if !ok {
			writeScanError(w, http.StatusNotFound, "No snapshots found "+parameter+" "+given.Get(parameter))
			return
		}
		writeValue(w, map[string]string{"record_time": time.UnixMicro(record).UTC().Format(time.RFC3339Nano)})
	}
}

// networkContract is a contract of a snapshot.
type networkContract struct {
	contract int32
	update   int   // that created it, or brought it to its synchronizer
	row      int64 // of the last of its stakeholders in the service's table
}

// snapshot returns the contracts that the DSO saw created, and not archived, in the first n updates, in the service's
// order.
func (v *networkView) snapshot(n int) (list []networkContract) {
	at := map[stay]int{}
	for i := range v.updates[:n] {
		switch u := &v.updates[i]; u.kind {
		case kindTransaction:
			nodes, _ := v.nodes(i)
			for k := range nodes {
				switch e := &nodes[k]; {
				case e.as == nil:
					at[stay{e.contract, u.synchronizer}] = i
				case e.as.consuming:
					delete(at, stay{e.contract, u.synchronizer})
				}
			}
		case kindReassignment:
			if l, ok := v.leg(i); ok {
				if r := &v.reassignments[l.reassignment]; l.assign {
					at[stay{r.contract, r.target}] = i
				} else {
					delete(at, stay{r.contract, r.source})
				}
			}
		}
	}
	for s, update := range at {
		list = append(list, networkContract{contract: s.contract, update: update})
	}
	slices.SortFunc(list, func(a, b networkContract) int {
		created := func(c networkContract) int64 { return v.updates[v.contracts[c.contract].created].effective() }
		return cmp.Or(cmp.Compare(created(a), created(b)), bytes.Compare(v.contractID(nil, a.contract),
			v.contractID(nil, b.contract)), cmp.Compare(a.update, b.update))
	})
	row := int64(0)
	for i := range list {
		row += int64(len(v.contracts[list[i].contract].stakeholders()))
		list[i].row = row
	}
	return list
}

// snapshotQuery is the body of POST /v1/state/acs and POST /v1/holdings/summary.
type snapshotQuery struct {
	migration, record, size, after int64
	orBefore                       bool
	parties, templates, owners     []string
}

// snapshotQuery reads a request, which must have another member beside migration and time. Its refusals have the text
// of the real service.
func (s *Scan) snapshotQuery(w http.ResponseWriter, r *http.Request, needed string) (q snapshotQuery, refused string) {
	o, refused := requestObject(w, r)
	if refused != "" {
		return q, refused
	}
	for _, name := range []string{"migration_id", "record_time", needed} {
		if isNull(o[name]) {
			return q, malformedContent + "DecodingFailure at ." + name + ": Missing required field"
		}
	}
	var d decoder
	q.migration, q.size = decode[int64](&d, o["migration_id"], "migration_id"), decode[int64](&d, o["page_size"],
		"page_size")
	at, match := decode[string](&d, o["record_time"], "record_time"), decode[string](&d, o["record_time_match"],
		"record_time_match")
	q.after = -1
	if !isNull(o["after"]) {
		q.after = decode[int64](&d, o["after"], "after")
	}
	q.parties, q.templates = decode[[]string](&d, o["party_ids"], "party_ids"), decode[[]string](&d, o["templates"],
		"templates")
	q.owners = decode[[]string](&d, o["owner_party_ids"], "owner_party_ids")
	record, err := time.Parse(time.RFC3339Nano, at)
	switch {
	case d.err != nil:
		return q, malformedContent + d.err.Error()
	case err != nil:
		return q, malformedContent + "DecodingFailure at .record_time: " + at
	case match != "" && match != "exact" && match != "at_or_before":
		return q, malformedContent + "DecodingFailure at .record_time_match: " + match
	case needed == "page_size" && q.size < 1:
		return q, "Limit must be at least 1."
	case q.size > int64(s.opts.PageLimit):
		return q, fmt.Sprintf("Exceeded limit maximum (%d > %d).", q.size, s.opts.PageLimit)
	}
	q.record, q.orBefore = record.UnixMicro(), match == "at_or_before"
	return q, ""
}

// snapshotAt returns the time of the snapshot that a request names; missing says that there is none.
func (s *Scan) snapshotAt(v *networkView, q *snapshotQuery) (at int64, missing string) {
	at, ok := v.snapshotBefore(q.migration, q.record, s.opts.SnapshotEvery.Microseconds())
	switch {
	case !ok && q.orBefore:
		return 0, "No snapshots found before " + instant(q.record)
	case !ok || at != q.record && !q.orBefore:
		return 0, fmt.Sprintf("Failed to find ACS snapshot for migration id %d at %s", q.migration, instant(q.record))
	}
	return at, ""
}

// snapshotAsked reads which snapshot a request names, and whether there is one; what is wrong is answered, and ok
// false.
func (s *Scan) snapshotAsked(w http.ResponseWriter, r *http.Request,
	needed string) (v *networkView, q snapshotQuery, at int64, ok bool) {
	q, refused := s.snapshotQuery(w, r, needed)
	if refused != "" {
		writeScanError(w, http.StatusBadRequest, refused)
		return nil, q, 0, false
	}
	v = s.network()
	at, missing := s.snapshotAt(v, &q)
	if missing != "" {
		writeScanError(w, http.StatusNotFound, missing)
		return nil, q, 0, false
	}
	return v, q, at, true
}

// networkACS implements POST /v1/state/acs.
func (s *Scan) networkACS(w http.ResponseWriter, r *http.Request) {
	v, q, at, ok := s.snapshotAsked(w, r, "page_size")
	if !ok {
		return
	}
	list := v.snapshot(v.after(q.migration, at))
	if rows := int64(0); q.after >= 0 {
		if len(list) > 0 {
			rows = list[len(list)-1].row
		}
		if q.after < 1 || q.after > rows {
			writeScanError(w, http.StatusBadRequest, fmt.Sprintf("Invalid after token, outside of snapshot range (1 to %d).",
				rows))
			return
		}
	}
	out := fmt.Appendf(nil, `{"record_time":%q,"migration_id":%d,"created_events":[`,
		time.UnixMicro(at).UTC().Format(time.RFC3339Nano), q.migration)
	n, last := int64(0), int64(0)
	for i := range list {
		if c := &list[i]; c.row > q.after && n < q.size && v.wanted(&q, c.contract) {
			if n > 0 {
				out = append(out, ',')
			}
			out = v.appendSnapshotContract(out, c, q.migration)
			n, last = n+1, c.row
		}
	}
	out = append(out, ']')
	if n == q.size { // the service does not look whether more follow
		out = fmt.Appendf(out, `,"next_page_token":%d`, last)
	}
	writeJSON(w, append(out, '}'))
}

// wanted reports whether the filters of a request let a contract through.
func (v *networkView) wanted(q *snapshotQuery, number int32) bool {
	c := &v.contracts[number]
	t := c.kind.template()
	return (len(q.templates) == 0 || slices.Contains(q.templates, t.packageName+":"+t.module+":"+t.entity)) &&
		(len(q.parties) == 0 || slices.ContainsFunc(c.stakeholders(),
			func(p uint16) bool { return slices.Contains(q.parties, v.parties[p]) }))
}

// appendSnapshotContract appends a contract of a snapshot. Of one from an earlier migration the service does not know
// which update created it. What a real service says of contracts that moved between synchronizers is not known; here it
// is the update that brought them to theirs.
func (v *networkView) appendSnapshotContract(dst []byte, c *networkContract, migration int64) []byte {
	var item map[string]json.RawMessage
	if err := json.Unmarshal(v.appendCreatedItem(nil, c.contract, "", 0), &item); err != nil {
		panic(err) // of our own JSON: can not happen
	}
	delete(item, "event_type")
	delete(item, "event_id")
	if v.migration(c.update) == migration || v.updates[c.update].kind == kindReassignment {
		item["created_in_update_id"] = json.RawMessage(strconv.Quote(v.updateIDOf(c.update)))
	}
	return append(dst, mustJSON(item)...)
}
