package sandbox

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// facts are the columns that an update, or a snapshot's entry, gives to the rows of
// its events.
type facts Row

// on returns the facts of update i.
func (t *truth) on(i int, u *update) facts {
	return facts{
		"update_id": t.updateIDOf(i), "synchronizer_id": t.synchronizers[u.synchronizer],
		"record_time": instant(u.record), "workflow_id": t.extrasOf(i).workflow,
	}
}

// with adds the columns that every event relation has.
func (f facts) with(r Row) Row {
	r["update_id"], r["synchronizer_id"], r["record_time"] = f["update_id"], f["synchronizer_id"], f["record_time"]
	return r
}

// updateIDOf returns the id of update i as a string.
func (w *world) updateIDOf(i int) string { return string(w.updateID(nil, i)) }

func number[T int | int32 | int64](n T) json.Number {
	return json.Number(strconv.FormatInt(int64(n), 10))
}

// timeForm is how rows hold times.
const timeForm = "2006-01-02T15:04:05.000000Z"

func instant(micros int64) string { return time.UnixMicro(micros).UTC().Format(timeForm) }

func bytea(b []byte) string { return `\x` + hex.EncodeToString(b) }

// value decodes JSON as a jsonb column would be; null is nil.
func value(raw []byte) any {
	d := rowDecoder{rest: raw}
	v, err := d.value()
	if err != nil {
		panic(err) // of our own JSON: can not happen
	}
	return v
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (w *world) texts(parties []uint16) []any { return anyTexts(w.sorted(parties)) }

func (k kind) columns(r Row) Row {
	t := k.template()
	r["template_id"], r["package_name"], r["module_name"], r["entity_name"] = k.id(), t.packageName, t.module, t.entity
	return r
}

func (k kind) interfaceIDs(views uint8) []any {
	var list []string
	for _, i := range k.template().interfaces {
		if views&(1<<i) != 0 {
			list = append(list, interfaces[i].id())
		}
	}
	slices.Sort(list)
	return anyTexts(list)
}

func (t *truth) update(i int, u *update, kind string) {
	x := t.extrasOf(i)
	r := Row{
		"ledger_offset": number(u.offset), "update_id": t.updateIDOf(i), "kind": kind,
		"synchronizer_id": t.synchronizers[u.synchronizer], "record_time": instant(u.record),
		"effective_at": nil, "workflow_id": nil, "command_id": nil,
		"trace_parent": orNil(x.traceParent), "trace_state": orNil(x.traceState),
		"external_transaction_hash": nil, "paid_traffic_cost": nil,
	}
	if u.kind != kindTopology {
		r["workflow_id"], r["command_id"] = x.workflow, x.command
		if x.cost >= 0 {
			r["paid_traffic_cost"] = number(x.cost)
		}
	}
	if u.kind == kindTransaction {
		r["effective_at"] = instant(u.effective())
		if x.externalHash != nil {
			r["external_transaction_hash"] = bytea(x.externalHash)
		}
	}
	t.add("updates", r)
}

// created adds a created_events row and those of its interface views.
func (t *truth) created(on facts, n int32, offset int64, node int32, s *sight, origin string) Row {
	c := &t.contracts[n]
	r := on.with(c.kind.columns(Row{
		"ledger_offset": number(offset), "node_id": number(node), "origin": origin,
		"contract_id": string(t.contractID(nil, n)), "package_id": c.kind.packageID(),
		"representative_package_id": t.representative(n), "payload": nil, "contract_key": nil,
		"contract_key_hash": nil, "signatories": t.texts(c.parties[:c.signatories]),
		"observers":       t.texts(c.stakeholders()[c.signatories:]),
		"witness_parties": t.texts(s.shown.list()), "created_at": instant(t.view.updates[c.created].effective()),
		"acs_delta": s.acs, "created_event_blob": bytea(nil), "workflow_id": on["workflow_id"],
	}))
	if s.arguments {
		r["payload"] = value(t.appendPayload(nil, n))
		if c.kind.template().keyed {
			r["contract_key"] = value(t.appendKey(nil, n))
		}
	}
	if t.feat.contractKeyHash {
		r["contract_key_hash"] = bytea(t.keyHash(n, s))
	}
	if s.blob {
		r["created_event_blob"] = bytea(t.blob(n))
	}
	t.add("created_events", r)
	if origin == "transaction" {
		t.born[n] = offset
	}
	for _, i := range c.kind.template().interfaces {
		if s.views&(1<<i) != 0 {
			t.interfaceView(on, r, n, i)
		}
	}
	return r
}

func (t *truth) interfaceView(on facts, created Row, n int32, iface int) {
	r := on.with(Row{
		"ledger_offset": created["ledger_offset"], "node_id": created["node_id"], "contract_id": created["contract_id"],
		"interface_id": interfaces[iface].id(), "package_name": interfaces[iface].packageName,
		"module_name": interfaces[iface].module,
		"entity_name": interfaces[iface].entity, "view_value": nil, "status_code": number(0), "status_message": "",
		"status_details": []any{}, "implementation_package_id": nil,
	})
	if t.viewFails(n, iface) {
		r["status_code"], r["status_message"] = number(9), value([]byte(viewFailure))
		r["status_details"] = value(t.appendViewDetails(nil, n))
	} else {
		r["view_value"] = value(t.appendViewValue(nil, n, iface))
		if t.feat.contractKeyHash {
			r["implementation_package_id"] = t.representative(n)
		}
	}
	t.add("interface_views", r)
}

func (t *truth) archived(on facts, u *update, e *event, s *sight) {
	r := on.with(e.served.columns(Row{
		"ledger_offset": number(u.offset), "node_id": number(e.node), "contract_id": string(t.contractID(nil, e.contract)),
		"package_id": e.served.packageID(),
		"choice":     nil, "acting_parties": nil,
		"witness_parties": t.texts(s.shown.list()), "acs_delta": s.acs, "implemented_interfaces": e.served.interfaceIDs(
			s.views),
	}))
	if t.filter.effects {
		r["choice"], r["acting_parties"] = e.served.template().choices[e.choice].name, t.texts([]uint16{e.actor})
	}
	t.add("archived_events", r)
}

func (t *truth) exercised(on facts, i int, u *update, e *event, s *sight) {
	ch := e.served.template().choices[e.choice]
	r := on.with(e.served.columns(Row{
		"ledger_offset": number(u.offset), "node_id": number(e.node), "contract_id": string(t.contractID(nil, e.contract)),
		"package_id":   e.served.packageID(),
		"interface_id": nil, "choice": ch.name, "choice_argument": value(t.appendChoiceArgument(nil, i, e)),
		"exercise_result": value(t.appendExerciseResult(nil, i, e)), "acting_parties": t.texts([]uint16{e.actor}),
		"consuming": ch.consuming, "last_descendant_node_id": number(e.last), "witness_parties": t.texts(s.shown.list()),
		"acs_delta": s.acs, "implemented_interfaces": []any{},
	}))
	if ch.through >= 0 {
		r["interface_id"] = interfaces[ch.through].id()
	}
	if ch.consuming {
		r["implemented_interfaces"] = e.served.interfaceIDs(s.views)
	}
	t.add("exercised_events", r)
}

// moved adds a reassignments row for one half.
func (t *truth) moved(on facts, n int32, offset int64, node int32, s *sight, assigned bool) {
	m := &t.reassignments[n]
	r := on.with(t.contracts[m.contract].kind.columns(Row{
		"ledger_offset": number(offset), "node_id": number(node), "kind": "assigned",
		"contract_id":            string(t.contractID(nil, m.contract)),
		"reassignment_id":        string(t.reassignmentID(nil, n)),
		"source_synchronizer_id": t.synchronizers[m.source], "target_synchronizer_id": t.synchronizers[m.target],
		"submitter": "", "reassignment_counter": number(m.counter), "assignment_exclusivity": nil,
		"witness_parties": t.texts(s.shown.list()),
	}))
	if m.submitter >= 0 {
		r["submitter"] = t.parties[m.submitter]
	}
	if !assigned {
		r["kind"] = "unassigned"
		if m.exclusive {
			r["assignment_exclusivity"] = instant(t.exclusivity(m))
		}
	}
	t.add("reassignments", r)
}

// activeRow returns the active_contracts row of a contract that a created_events row
// activated.
func (t *truth) activeRow(n int32, created Row, synchronizer uint8, counter int32) Row {
	r := Row{
		"synchronizer_id": t.synchronizers[synchronizer], "reassignment_counter": number(counter),
		"created_offset": nil, "activated_offset": created["ledger_offset"], "activated_node_id": created["node_id"],
	}
	if at, ok := t.born[n]; ok {
		r["created_offset"] = number(at)
	}
	for _, column := range []string{
		"contract_id", "template_id", "package_id", "package_name", "module_name", "entity_name", "payload",
		"contract_key", "signatories", "observers", "witness_parties", "created_at",
	} {
		r[column] = created[column]
	}
	return r
}
