package sandbox

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// servedOfNetworks are the columns that a network's service says something of. All others are NULL.
var servedOfNetworks = map[string][]string{
	"updates": strings.Fields("ledger_offset update_id kind synchronizer_id record_time effective_at workflow_id " +
		"external_transaction_hash"),
	"created_events": strings.Fields(
		`ledger_offset node_id origin contract_id template_id package_id package_name module_name entity_name payload
		signatories observers created_at workflow_id update_id synchronizer_id record_time`),
	"archived_events": strings.Fields(
		`ledger_offset node_id contract_id template_id package_id package_name module_name entity_name choice
		acting_parties update_id synchronizer_id record_time`),
	"exercised_events": strings.Fields(
		`ledger_offset node_id contract_id template_id package_id package_name module_name entity_name interface_id
		choice choice_argument exercise_result acting_parties consuming last_descendant_node_id update_id
		synchronizer_id record_time`),
	"reassignments": strings.Fields(
		`ledger_offset node_id kind contract_id template_id package_name module_name entity_name reassignment_id
		source_synchronizer_id target_synchronizer_id submitter reassignment_counter update_id synchronizer_id record_time`),
}

// NetworkTruth returns what the relations of a schema pair must hold after a database has indexed every update that the
// service shows of the network, in the form of [Ledger.Truth].
func (s *Scan) NetworkTruth() map[string][]Row {
	return s.networkTruth(0, 0)
}

// NetworkTruthFromSnapshot is NetworkTruth of a database that took the snapshot of a migration at a record time, and
// then indexed the updates. It is that of [Ledger.TruthFromSnapshot].
func (s *Scan) NetworkTruthFromSnapshot(migration int64, at time.Time) map[string][]Row {
	return s.networkTruth(migration, at.UnixMicro())
}

// networkTruth returns the truth after the updates from a position on; migration 0: from the beginning.
func (s *Scan) networkTruth(migration, at int64) map[string][]Row {
	v := s.network()
	t := s.ledger.newTruth(Scope{Parties: []string{s.ledger.DSO()}, Shape: LedgerEffects, NoTopology: true})
	t.view = v.view
	n := v.after(migration, at)
	t.networkUpdates(v, 0, n)
	if migration > 0 {
		t.networkCarried()
	}
	t.networkUpdates(v, n, len(v.updates))
	return t.finish()
}

// networkCarried leaves of what was active only what a snapshot says of it. Of its updates that is the workflow id, and
// where a contract that had moved was created is not known.
func (t *truth) networkCarried() {
	carried := map[[2]any]bool{}
	for s, row := range t.active {
		carried[[2]any{row["activated_offset"], row["activated_node_id"]}] = true
		if row["reassignment_counter"] != json.Number("0") {
			delete(t.born, s.contract)
			row["created_offset"] = nil
		}
	}
	created := []Row{}
	for _, row := range t.rows["created_events"] {
		if carried[[2]any{row["ledger_offset"], row["node_id"]}] {
			row["origin"], row["update_id"], row["record_time"] = "snapshot", nil, nil
			created = append(created, row)
		}
	}
	for _, relation := range relations {
		t.rows[relation] = []Row{}
	}
	t.rows["created_events"] = created
}

func (t *truth) networkUpdates(v *networkView, from, to int) {
	for i := from; i < to; i++ {
		switch u := &v.updates[i]; u.kind {
		case kindTransaction:
			t.networkTransaction(v, i, u)
		case kindReassignment:
			t.networkReassignment(v, i, u)
		}
	}
}

// offset returns the offset of update i: 52 bits for the microseconds, with the migration above them.
func (v *networkView) offset(i int) int64 { return v.migration(i)<<52 + v.updates[i].record }

// change changes columns of the row that was added last to a relation, takes out what a network's service does not
// send, and returns it.
func (t *truth) change(relation string, columns Row) Row {
	rows := t.rows[relation]
	row := rows[len(rows)-1]
	for column := range row {
		if !slices.Contains(servedOfNetworks[relation], column) {
			row[column] = nil
		}
	}
	for column, value := range columns {
		row[column] = value
	}
	return row
}

func (t *truth) networkUpdate(v *networkView, i int, u *update, kind string) {
	t.update(i, u, kind)
	columns := Row{"ledger_offset": number(v.offset(i))}
	if u.kind == kindReassignment {
		columns["workflow_id"] = nil
	}
	t.change("updates", columns)
}

func (t *truth) networkTransaction(v *networkView, i int, u *update) {
	nodes, _ := v.nodes(i)
	if len(nodes) == 0 {
		return
	}
	on := t.on(i, u)
	offset := v.offset(i)
	witnessed := map[int32]bool{}
	for n := range nodes {
		e := &nodes[n]
		if e.as == nil {
			row := t.networkCreated(on, e.contract, offset, int32(n), "transaction")
			if witnessed[e.contract] = !v.holds(e.contract); !witnessed[e.contract] {
				t.active[stay{e.contract, u.synchronizer}] = t.activeRow(e.contract, row, u.synchronizer, 0)
			}
			continue
		}
		columns := Row{"ledger_offset": number(offset), "node_id": number(n)}
		if witnessed[e.contract] {
			columns["acs_delta"] = false
		}
		t.networkExercised(on, columns, e, v, i)
		if e.as.consuming {
			t.archived(on, u, e.event, &e.sight)
			t.change("archived_events", columns)["choice"] = e.as.choice
			delete(t.active, stay{e.contract, u.synchronizer})
		}
	}
	t.networkUpdate(v, i, u, "transaction")
}

// networkExercised adds an exercised_events row.
func (t *truth) networkExercised(on facts, columns Row, e *networkNode, v *networkView, i int) {
	argument, result := v.values(i, e)
	packageName, packageID, module, entity := e.as.name()
	r := on.with(Row{
		"contract_id": e.as.contract, "template_id": packageID + ":" + module + ":" + entity, "package_id": packageID,
		"package_name": packageName,
		"module_name":  module, "entity_name": entity, "interface_id": nil, "choice": e.as.choice,
		"choice_argument": value(argument),
		"exercise_result": value(result), "acting_parties": t.texts([]uint16{e.as.actor}), "consuming": e.as.consuming,
		"last_descendant_node_id": number(e.last), "witness_parties": nil, "acs_delta": nil, "implemented_interfaces": nil,
	})
	if e.as.through != "" {
		r["interface_id"] = e.as.through
	}
	t.add("exercised_events", r)
	t.change("exercised_events", columns)
}

// holds reports whether the DSO is a stakeholder of a contract.
func (v *networkView) holds(contract int32) bool {
	for _, p := range v.contracts[contract].stakeholders() {
		if p == v.dso {
			return true
		}
	}
	return false
}

// networkCreated adds a created_events row. Of a contract of which the DSO is no stakeholder acs_delta is false.
func (t *truth) networkCreated(on facts, contract int32, offset int64, node int32, origin string) Row {
	t.created(on, contract, offset, node, &sight{grant: grant{match: true, arguments: true}}, origin)
	c := &t.contracts[contract]
	columns := Row{
		"signatories": t.texts(c.parties[:c.signatories]), "observers": t.texts(c.stakeholders()[c.signatories:]),
	}
	if !(&networkView{view: t.view}).holds(contract) {
		columns["acs_delta"] = false
	}
	return t.change("created_events", columns)
}

func anyTexts(list []string) []any {
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	return out
}

func (t *truth) networkReassignment(v *networkView, i int, u *update) {
	l, ok := v.leg(i)
	if !ok {
		return
	}
	r := &t.reassignments[l.reassignment]
	on := t.on(i, u)
	on["workflow_id"] = nil // it is not served
	side := r.source
	if l.assign {
		side = r.target
	}
	on["synchronizer_id"] = t.synchronizers[side]
	t.moved(on, l.reassignment, v.offset(i), 0, &sight{}, l.assign)
	columns := Row{"node_id": json.Number("0")}
	if !l.assign { // of which template the contract is is not served
		for _, column := range []string{"template_id", "package_name", "module_name", "entity_name"} {
			columns[column] = ""
		}
	}
	t.change("reassignments", columns)
	if l.assign {
		row := t.networkCreated(on, r.contract, v.offset(i), 0, "assignment")
		t.active[stay{r.contract, r.target}] = t.activeRow(r.contract, row, r.target, r.counter)
	} else {
		delete(t.active, stay{r.contract, r.source})
	}
	t.networkUpdate(v, i, u, "reassignment")
}
