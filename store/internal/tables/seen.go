package tables

import (
	"regexp"
	"strings"
)

// What a role that is limited to parties sees, as conditions on a row s. Policies ask the views my_lists, my_parties,
// my_positions and my_history, which show a role what it was granted.
const (
	// Everyone: the table says nothing about parties. It has no policy.
	Everyone = "true"
	// Nobody: limited roles see no row.
	Nobody = "false"
	// besideEvents is a policy that shows all rows: relations show a list only beside an event that the role sees. It is a
	// policy, and not none, because PostgreSQL hides the statistics of a table with policies.
	besideEvents = "s.party_list_ref IS NOT NULL"

	ofMyParty    = "EXISTS (SELECT FROM my_parties m WHERE m.party = s.party_id)"
	ofMyPosition = "EXISTS (SELECT FROM my_positions m WHERE m.position_id = s.position_id)"
	ofHistory    = "EXISTS (SELECT FROM my_history)"
	ofUpdates    = "s.stream = '" + StreamUpdates + "'"

	// The policies of the tables that are asked apply too.
	ofSeenEnd = "EXISTS (SELECT FROM archived a WHERE a.ledger_offset = s.ledger_offset AND a.node_id = s.node_id)" +
		" OR EXISTS (SELECT FROM exercised e WHERE e.ledger_offset = s.ledger_offset AND e.node_id = s.node_id)"
	ofSeenCreation = "EXISTS (SELECT FROM created c WHERE c.contract_id = s.contract_id)"
	// A contract that was found is seen by its stakeholders. One that was not is seen by whoever sees the event that it
	// was looked up for.
	ofLookup = "CASE WHEN s.status = 'found' THEN EXISTS (SELECT FROM my_parties m WHERE m.party = ANY (s.signatories) " +
		"OR m.party = ANY (s.observers)) ELSE " + ofSeenEnd + " END"
)

// seenRedaction returns the condition that a role sees what is left of a redaction's contract or update.
func seenRedaction(facts []Table) string {
	condition := "CASE s.kind WHEN 'update' THEN EXISTS (SELECT FROM updates u WHERE u.update_id = s.id) ELSE "
	for i := range facts {
		if facts[i].Contract {
			condition += "EXISTS (SELECT FROM " + facts[i].Name + " e WHERE e.contract_id = s.id) OR "
		}
	}
	return condition + "EXISTS (SELECT FROM lookups l WHERE l.contract_id = s.id) END"
}

// seenByList returns the condition that a list of parties in one of these columns has one of the role's. The planner
// expects <> 0 to be true of almost all rows, so it joins as for a role that sees everything. If it expected few rows,
// it would look them up one by one.
func seenByList(columns ...string) string {
	conditions := make([]string, len(columns))
	for i, column := range columns {
		conditions[i] = "get_bit((SELECT m.bits FROM my_lists m), s." + column + ") <> 0"
	}
	return strings.Join(conditions, " OR ")
}

// ofRow is a column of a row s.
var ofRow = regexp.MustCompile(`\bs\.`)

// Policy returns Seen as the condition of a policy, in which a row has its table's name. Empty: the table needs no
// policy.
func (t *Table) Policy() string {
	if t.Seen == "" || t.Seen == Everyone {
		return ""
	}
	return ofRow.ReplaceAllString(t.Seen, t.Name+".")
}

// Readable returns the tables that readers have a right to, each once.
func Readable() (list []Table) {
	for i := range all {
		if all[i].Seen != "" {
			list = append(list, all[i])
		}
	}
	return list
}
