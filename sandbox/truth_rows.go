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
