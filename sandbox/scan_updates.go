package sandbox

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// pathNetworkUpdates is the path of the updates of the network (interface.md, "Updates of a network").
const pathNetworkUpdates = "/v2/updates"

// firstMigration is the migration id of a ledger's first updates.
const firstMigration = 1

// networkView is a ledger as its Scan shows it: what the DSO sees.
type networkView struct {
	*view
	filter *updateFilter
	change int // the number of updates before the migration id rises; 0: it does not
}

func (s *Scan) network() *networkView {
	scope := Scope{Parties: []string{s.ledger.DSO()}, Shape: LedgerEffects, NoTopology: true}
	return &networkView{view: s.ledger.view(), filter: scope.compiled(s.ledger.names()), change: s.opts.MigrateAfter}
}

// migration returns the migration id of update i.
func (v *networkView) migration(i int) int64 {
	if v.change > 0 && i >= v.change {
		return firstMigration + 1
	}
	return firstMigration
}

// after returns the index of the first update after a position.
func (v *networkView) after(migration, micros int64) int {
	return sort.Search(len(v.updates), func(i int) bool {
		own := v.migration(i)
		return own > migration || own == migration && v.updates[i].record > micros
	})
}

// networkNode is an event that the DSO sees, with the number that Scan gives it.
type networkNode struct {
	*event
	as       *networkChoice // how an exercise is shown; nil: it is a creation
	names    *movement      // whose record is named after it; nil: none
	sight    sight
	last     int   // the highest number below it
	children []int // numbers
}

// nodes returns the events of transaction i that the DSO sees, in order, and which of them are roots: those whose
// parent it does not see, too.
func (v *networkView) nodes(i int) (nodes []networkNode, roots []int) {
	u := &v.updates[i]
	type parent struct {
		n    int
		last int32 // node of its last descendant in the ledger
	}
	var open []parent
	push := func(node networkNode, last int32) {
		n := len(nodes)
		node.last = n
		nodes = append(nodes, node)
		for len(open) > 0 && open[len(open)-1].last < node.node {
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			roots = append(roots, n)
		} else {
			above := &nodes[open[len(open)-1].n]
			above.children = append(above.children, n)
		}
		for _, above := range open {
			nodes[above.n].last = n
		}
		if node.as != nil {
			open = append(open, parent{n, last})
		}
	}
	movement, end := v.movementsOf(i)
	var choices []networkChoice // of a movement
	of := -1                    // of which one
	for j := u.first; j < u.first+u.count; j++ {
		e := &v.events[j]
		s := v.sightOf(v.filter, e)
		if !s.match {
			continue
		}
		for movement < end && v.movements[movement].first+v.movements[movement].count <= j {
			movement++
		}
		node, last := networkNode{event: e, sight: s}, e.last
		if e.choice >= 0 {
			c := v.shownChoice(e)
			node.as = &c
		}
		shown := false // the event is one of the choices
		if movement < end && v.movements[movement].first <= j {
			m := &v.movements[movement]
			if of != movement {
				choices, of = v.choices(movement), movement
			}
			for c := range choices {
				if as := &choices[c]; m.first+as.from == j {
					shown = shown || as.is
					push(v.choiceNode(m, as, networkNode{event: e, sight: s}))
				}
			}
			if m.first == j && len(choices) > 0 && node.as != nil {
				node.as.choice, node.as.argument, node.as.result = "Archive", struct{}{}, struct{}{}
				last = e.node
			}
		}
		if !shown {
			push(node, last)
		}
	}
	return nodes, roots
}

// choiceNode makes the node of a choice of a movement, and returns the last node below it too.
func (v *networkView) choiceNode(m *movement, as *networkChoice, node networkNode) (networkNode, int32) {
	node.as = as
	if as.named {
		node.names = m
	}
	switch {
	case as.over > 0:
		return node, v.events[m.first+as.from+as.over-1].node
	case as.over < 0:
		return node, node.node - 1
	}
	return node, v.events[m.first+m.count-1].node
}

// leg returns the part of a reassignment that is shown: Scan keeps one of each update.
func (v *networkView) leg(i int) (*leg, bool) {
	u := &v.updates[i]
	for j := range v.legs[u.first : u.first+u.count] {
		l := &v.legs[int(u.first)+j]
		if s := v.holdersSight(v.filter.reassignments, &v.contracts[v.reassignments[l.reassignment].contract]); s.match {
			return l, true
		}
	}
	return nil, false
}

// appendItem appends update i, or nothing and false if the DSO sees nothing of it.
func (v *networkView) appendItem(dst []byte, i int) ([]byte, bool) {
	switch u := &v.updates[i]; u.kind {
	case kindTransaction:
		if nodes, roots := v.nodes(i); len(nodes) > 0 {
			return v.appendTransactionItem(dst, i, nodes, roots), true
		}
	case kindReassignment:
		if l, ok := v.leg(i); ok {
			return v.appendReassignmentItem(dst, i, l), true
		}
	}
	return dst, false
}

func (v *networkView) appendTransactionItem(dst []byte, i int, nodes []networkNode, roots []int) []byte {
	u, x := &v.updates[i], v.extrasOf(i)
	id := v.updateIDOf(i)
	dst = fmt.Appendf(dst, `{"update_id":%q,"migration_id":%d,"workflow_id":%q,"record_time":%q,`+
		`"synchronizer_id":%q,"effective_at":"`,
		id, v.migration(i), x.workflow, instant(u.record), v.synchronizers[u.synchronizer])
	dst = appendInstant(dst, u.effective())
	dst = append(dst, `","root_event_ids":`...)
	dst = appendEventIDs(dst, id, roots)
	dst = append(dst, `,"events_by_id":{`...)
	order := make([]int, len(nodes))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(strconv.Itoa(a), strconv.Itoa(b)) })
	for k, n := range order {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, `"%s:%d":`, id, n)
		if nodes[n].as == nil {
			dst = v.appendCreatedItem(dst, nodes[n].contract, id, n)
		} else {
			dst = v.appendExercisedItem(dst, i, &nodes[n], id, n)
		}
	}
	dst = append(dst, '}')
	if x.externalHash != nil {
		dst = append(dst, `,"external_transaction_hash":"`...)
		dst = append(hex.AppendEncode(dst, x.externalHash), '"')
	}
	return append(dst, '}')
}

func appendEventIDs(dst []byte, updateID string, numbers []int) []byte {
	dst = append(dst, '[')
	for i, n := range numbers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, `"%s:%d"`, updateID, n)
	}
	return append(dst, ']')
}

func (v *networkView) appendCreatedItem(dst []byte, number int32, updateID string, n int) []byte {
	c := &v.contracts[number]
	dst = fmt.Appendf(dst, `{"event_type":"created_event","event_id":"%s:%d","contract_id":"%s","template_id":%q,`+
		`"package_name":%q,"create_arguments":`,
		updateID, n, v.contractID(nil, number), c.kind.id(), c.kind.template().packageName)
	dst = v.appendPayload(dst, number)
	dst = append(dst, `,"created_at":"`...)
	dst = appendInstant(dst, v.updates[c.created].effective())
	dst = append(dst, `","signatories":`...)
	dst = append(dst, mustJSON(v.sorted(c.parties[:c.signatories]))...)
	dst = append(dst, `,"observers":`...)
	dst = append(dst, mustJSON(v.sorted(c.stakeholders()[c.signatories:]))...)
	return append(dst, '}')
}

func (v *networkView) appendExercisedItem(dst []byte, i int, node *networkNode, updateID string, n int) []byte {
	c := node.as
	packageName, packageID, module, entity := c.name()
	argument, result := v.values(i, node)
	dst = fmt.Appendf(dst, `{"event_type":"exercised_event","event_id":"%s:%d","contract_id":"%s",`+
		`"template_id":"%s:%s:%s","package_name":%q,"choice":%q,"choice_argument":%s`,
		updateID, n, c.contract, packageID, module, entity, packageName, c.choice, argument)
	dst = append(dst, `,"child_event_ids":`...)
	dst = appendEventIDs(dst, updateID, node.children)
	dst = fmt.Appendf(dst, `,"exercise_result":%s,"consuming":%t,"acting_parties":[%s],"interface_id":`, result,
		c.consuming, v.quoted[c.actor])
	if c.through == "" {
		return append(dst, "null}"...)
	}
	return append(appendQuoted(dst, c.through), '}')
}

func (v *networkView) appendReassignmentItem(dst []byte, i int, l *leg) []byte {
	u, r := &v.updates[i], &v.reassignments[l.reassignment]
	id, submitter := v.updateIDOf(i), ""
	if r.submitter >= 0 {
		submitter = v.parties[r.submitter]
	}
	dst = fmt.Appendf(dst, `{"update_id":%q,"offset":"%020d","record_time":%q,"event":{"submitter":%q,`+
		`"source_synchronizer":%q,"target_synchronizer":%q,"migration_id":%d,"unassign_id":%q,"reassignment_counter":%d,`,
		id, u.dealt, instant(u.record), submitter, v.synchronizers[r.source], v.synchronizers[r.target], v.migration(i),
		v.reassignmentID(nil, l.reassignment), r.counter)
	if l.assign {
		dst = append(dst, `"created_event":`...)
		dst = v.appendCreatedItem(dst, r.contract, id, 0)
	} else {
		dst = fmt.Appendf(dst, `"contract_id":"%s"`, v.contractID(nil, r.contract))
	}
	return append(dst, `}}`...)
}

// sorted returns the names of parties in their order as texts.
func (w *world) sorted(parties []uint16) []string {
	list := make([]string, len(parties))
	for i, p := range parties {
		list[i] = w.parties[p]
	}
	slices.Sort(list)
	return list
}

// networkRequest is the body of POST /v2/updates.
type networkRequest struct {
	size              int64
	begun             bool // it reads on after a position
	migration, micros int64
}

// networkRequest reads a request. Its refusals have the text of the real service.
func (s *Scan) networkRequest(w http.ResponseWriter, r *http.Request) (q networkRequest, refused string) {
	o, refused := requestObject(w, r)
	if refused != "" {
		return q, refused
	}
	if isNull(o["page_size"]) {
		return q, malformedContent + "DecodingFailure at .page_size: Missing required field"
	}
	var d decoder
	q.size = decode[int64](&d, o["page_size"], "page_size")
	encoding := decode[string](&d, o["daml_value_encoding"], "daml_value_encoding")
	var at string
	if !isNull(o["after"]) {
		q.begun = true
		after := d.object(o["after"], "after")
		for _, name := range []string{"after_migration_id", "after_record_time"} {
			if isNull(after[name]) {
				return q, malformedContent + "DecodingFailure at .after." + name + ": Missing required field"
			}
		}
		q.migration = decode[int64](&d, after["after_migration_id"], "after_migration_id")
		at = decode[string](&d, after["after_record_time"], "after_record_time")
	}
	if d.err != nil {
		return q, malformedContent + d.err.Error()
	}
	if q.begun {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return q, "Invalid timestamp: " + at
		}
		q.micros = t.UnixMicro()
	}
	switch {
	case !isNull(o["daml_value_encoding"]) && encoding != "compact_json":
		return q, fmt.Sprintf("%sDecodingFailure at .daml_value_encoding: the sandbox serves compact_json, not %s",
			malformedContent, encoding)
	case q.size < 1:
		return q, "Limit must be at least 1."
	case q.size > int64(s.opts.PageLimit):
		return q, fmt.Sprintf("Exceeded limit maximum (%d > %d).", q.size, s.opts.PageLimit)
	}
	return q, ""
}

// notReplicated is what a service answers as long as its history is not complete.
const notReplicated = "This scan instance has not yet replicated all data. This process can take an extended period " +
	"of time to complete."

// networkUpdates implements POST /v2/updates.
func (s *Scan) networkUpdates(w http.ResponseWriter, r *http.Request) {
	q, refused := s.networkRequest(w, r)
	s.mu.Lock()
	backfilling := s.backfilling
	s.mu.Unlock()
	switch {
	case backfilling:
		writeScanError(w, http.StatusServiceUnavailable, notReplicated)
		return
	case refused != "":
		writeScanError(w, http.StatusBadRequest, refused)
		return
	}
	writeJSON(w, append(append([]byte(`{"transactions":[`), bytes.Join(s.page(q), []byte{','})...), `]}`...))
}

// page returns the updates of a request.
func (s *Scan) page(q networkRequest) (items [][]byte) {
	if s.preparedUpdates != nil {
		return s.preparedPage(q)
	}
	v := s.network()
	i := 0
	if q.begun {
		i = v.after(q.migration, q.micros)
	}
	for ; i < len(v.updates) && int64(len(items)) < q.size; i++ {
		item, shown := v.appendItem(nil, i)
		if shown {
			item, shown = s.rewritten(v, i, item)
		}
		if shown {
			items = append(items, item)
		}
	}
	return items
}

var forgedWorkflow = regexp.MustCompile(`"workflow_id":"[^"]*"`)

func (s *Scan) rewritten(v *networkView, i int, item []byte) ([]byte, bool) {
	s.mu.Lock()
	behind := s.behind
	s.mu.Unlock()
	if i >= len(v.updates)-behind {
		return nil, false
	}
	return s.changed(v, i, item)
}

// changed returns an update as the options have it.
func (s *Scan) changed(v *networkView, i int, item []byte) ([]byte, bool) {
	if s.opts.LieAbout > 0 && v.updates[i].offset == s.opts.LieAbout {
		item = forgedWorkflow.ReplaceAll(item, []byte(`"workflow_id":"forged"`))
	}
	if s.opts.Rewrite == nil {
		return item, true
	}
	item = s.opts.Rewrite(Element{Path: pathNetworkUpdates, Offset: v.updates[i].offset, Raw: item})
	return item, item != nil
}

// networkUpdate implements GET /v2/updates/{update_id}, which serves an incomplete history too.
func (s *Scan) networkUpdate(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, pathNetworkUpdates+"/")
	if s.preparedUpdates != nil {
		if i, ok := s.preparedUpdates.Named(id); ok && i >= 0 {
			writeJSON(w, s.preparedUpdates.Element(i))
			return
		}
	}
	v := s.network()
	if i, ok := v.updateNamed(id); ok {
		if item, shown := v.appendItem(nil, i); shown {
			if item, shown = s.rewritten(v, i, item); shown {
				writeJSON(w, item)
				return
			}
		}
	}
	writeScanError(w, http.StatusNotFound, fmt.Sprintf("Transaction with id %s not found", id))
}
