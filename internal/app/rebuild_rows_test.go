package app

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
)

// rebuildRelations is where the rows come from: the analysts' views, and of the tables beneath what the views leave
// out. They come in the order of their places in the server's lists.
var rebuildRelations = map[string]string{
	"updates": "SELECT * FROM ledger.updates",
	"created": `SELECT v.*, c.reassignment_counter, c.entry_extra FROM ledger.created_events v
		LEFT JOIN indexer.created c USING (ledger_offset, node_id) ORDER BY node_id`,
	"archived": `SELECT a.* FROM ledger.archived_events a WHERE NOT EXISTS (SELECT FROM ledger.exercised_events e
		WHERE e.ledger_offset = a.ledger_offset AND e.node_id = a.node_id)`,
	"exercised": "SELECT * FROM ledger.exercised_events",
	"views":     "SELECT * FROM ledger.interface_views ORDER BY ordinal",
	"reassignments": `SELECT v.*, c.created_offset, c.created_node_id, c.workflow_id, c.entry_extra, c.created_offset IS NOT NULL AS carried
		FROM ledger.reassignments v LEFT JOIN indexer.reassignments c USING (ledger_offset, node_id)`,
	"topology": "SELECT * FROM ledger.topology_events ORDER BY node_id",
	"unknown": `SELECT u.ledger_offset, u.ordinal, u.node_id, u.kind, u.raw, u.workflow_id, u.entry_extra, u.ledger_offset <= f.history_floor AS carried
		FROM indexer.unknown_elements u CROSS JOIN indexer.floors f ORDER BY ordinal`,
	"checkpoints": "SELECT v.*, c.ordinal FROM ledger.offset_checkpoints v JOIN indexer.synchronizers USING (synchronizer_id) JOIN indexer.offset_checkpoints c USING (ledger_offset, synchronizer_ref)",
	"exact":       "SELECT *, convert_from(exact, 'UTF8') AS text FROM ledger.exact_payloads",
}

// The members whose values have columns of their own, level by level. All other values are compared as a whole.
var (
	levels = names(`update Transaction Reassignment TopologyTransaction OffsetCheckpoint value
		viewStatus traceContext event ParticipantAuthorizationAdded ParticipantAuthorizationChanged ParticipantAuthorizationRevoked
		ParticipantAuthorizationOnboarding contractEntry JsActiveContract JsIncompleteUnassigned JsIncompleteAssigned
		JsEmpty`)
	lists = names("events interfaceViews synchronizerTimes")
	sets  = names("witnessParties signatories observers actingParties implementedInterfaces")
	times = names("recordTime effectiveAt createdAt assignmentExclusivity")
)

// isLevel reports whether a member is a level: events are too, whatever their kind.
func isLevel(name string) bool {
	return slices.Contains(levels, name) || strings.HasSuffix(name, "Event")
}

// row is a row as to_jsonb shows it. Columns that are NULL are left out.
type row map[string]jsontext.Value

func (r row) text(column string) string {
	if r[column] == nil {
		return ""
	}
	return string(must(jsontext.AppendUnquote(nil, r[column])))
}

// rebuild makes the server's JSON out of rows.
type rebuild struct {
	relations map[string]map[string][]row // by relation and offset
	exact     map[string]jsontext.Value   // by exactKey
	asked     map[string]bool             // the keys in exact that rows asked for
	others    []string                    // relations of events of transactions whose columns are their members
	watermark string
}

func readRows(ctx context.Context, db pgx.Tx) (*rebuild, error) {
	x := &rebuild{relations: map[string]map[string][]row{}, exact: map[string]jsontext.Value{}, asked: map[string]bool{}}
	if err := db.QueryRow(ctx, "SELECT ledger.latest_offset()::text").Scan(&x.watermark); err != nil {
		return nil, fmt.Errorf("read the watermark: %w", err)
	}
	rows, err := db.Query(ctx, `SELECT relname::text FROM pg_class WHERE relnamespace = 'indexer'::regnamespace AND relkind = 'p' AND relname <> ALL ($1)`,
		names("updates created archived exercised interface_views reassignments topology_events lifetimes"))
	if err != nil {
		return nil, fmt.Errorf("look for tables of events: %w", err)
	}
	if x.others, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, fmt.Errorf("look for tables of events: %w", err)
	}
	queries := maps.Clone(rebuildRelations)
	for _, relation := range x.others {
		queries[relation] = "SELECT * FROM ledger." + relation + "_events"
	}
	for relation, query := range queries {
		rows, err := db.Query(ctx, "SELECT to_jsonb(r) FROM ("+query+") r")
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", relation, err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", relation, err)
		}
		x.relations[relation] = map[string][]row{}
		for _, text := range texts {
			r := row(object(text))
			for column, value := range r {
				if value.Kind() == 'n' {
					delete(r, column)
				}
			}
			offset := string(r["ledger_offset"])
			x.relations[relation][offset] = append(x.relations[relation][offset], r)
			if relation == "exact" {
				x.exact[exactKey(r, "seq", r.text("field"))] = jsontext.Value(r.text("text"))
			}
		}
	}
	return x, nil
}

func exactKey(r row, ordinal, field string) string {
	return fmt.Sprintf("offset %s, node %s, ordinal %s, %s", r["ledger_offset"], r["node_id"], r[ordinal], field)
}

// at lists the rows of an offset, and of a node where one is given.
func (x *rebuild) at(relation string, offset jsontext.Value, node ...jsontext.Value) []row {
	var found []row
	for _, r := range x.relations[relation][string(offset)] {
		if len(node) == 0 || string(node[0]) == string(r["node_id"]) {
			found = append(found, r)
		}
	}
	return found
}

// value is the value of a column as it was sent: the exact one where the column has a stand-in.
func (x *rebuild) value(r row, column, field string) jsontext.Value {
	ordinal := ""
	if r["ordinal"] != nil {
		ordinal = "ordinal"
	}
	key := exactKey(r, ordinal, field)
	if x.exact[key] == nil || object(r[column])["$exact"] == nil {
		return r[column]
	}
	x.asked[key] = true
	return x.exact[key]
}

func (x *rebuild) time(r row, column, field string) jsontext.Value {
	key := exactKey(r, "", field)
	if x.exact[key] == nil || r[column] == nil {
		return r[column]
	}
	x.asked[key] = true
	return x.exact[key]
}

// besides makes an object of all columns but some: a column is a member of its name unless it is known to be something
// else.
func (r row) besides(columns string) members {
	left, fields := names(columns+" ledger_offset extra"), "offset=ledger_offset"
	for column := range r {
		if !slices.Contains(left, column) {
			fields += " " + memberOf(column) + "=" + column
		}
	}
	return r.take(fields)
}

// take makes an object of columns, given as name=column or, where the column is the name in lower case, as the name.
func (r row) take(fields string) members {
	m := members{}
	for _, field := range names(fields) {
		name, column, named := strings.Cut(field, "=")
		if !named {
			column = columnOf(name)
		}
		m[name] = r[column]
		if r[column] != nil && slices.Contains(blobs, column) {
			blob := must(hex.DecodeString(strings.TrimPrefix(r.text(column), `\x`)))
			m[name] = jsontext.Value(`"` + base64.StdEncoding.EncodeToString(blob) + `"`)
		}
	}
	return m
}

var blobs = names("contract_key_hash created_event_blob external_transaction_hash transaction_hash")

// columnOf is the name of a column: command_id for commandId.
func columnOf(name string) string {
	var column strings.Builder
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			column.WriteString("_")
		}
		column.WriteRune(c)
	}
	return strings.ToLower(column.String())
}

// memberOf is the name of the member that a column is of: commandId for command_id.
func memberOf(column string) string {
	words := strings.Split(column, "_")
	for i, word := range words[1:] {
		words[1+i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// ours are the columns of an event that its template's id and its update say, and the number that we give the template.
const ours = "template_number package_id module_name entity_name update_id synchronizer_id record_time "

// update rebuilds the element of an update.
func (x *rebuild) update(u row) members {
	at := u["ledger_offset"]
	recordTime, effectiveAt := x.time(u, "record_time", "recordTime"), x.time(u, "effective_at", "effectiveAt")
	extra := x.value(u, "extra", "extra")
	if u.text("kind") == "unknown" {
		element := members{}
		for _, e := range x.at("unknown", at) {
			element["update"] = x.value(e, "raw", "raw")
		}
		return element.merge(members{}.extra(extra)["$envelope"])
	}
	value := u.besides("kind record_time effective_at trace_parent trace_state")
	value["recordTime"], value["effectiveAt"] = recordTime, effectiveAt
	elsewhere := value.extra(extra)
	if elsewhere["$traceContext"] != nil || u["trace_parent"] != nil || u["trace_state"] != nil {
		value["traceContext"] = u.take("traceparent=trace_parent tracestate=trace_state").merge(elsewhere["$traceContext"])
	}
	name := map[string]string{"transaction": "Transaction", "reassignment": "Reassignment", "topology": "TopologyTransaction"}[u.text("kind")]
	value["events"] = x.events(at, name)
	return members{"update": members{name: members{"value": value}}}.merge(elsewhere["$envelope"])
}

func (x *rebuild) events(at jsontext.Value, kind string) []members {
	events := []members{}
	for _, r := range x.at("created", at) {
		if r.text("origin") == "transaction" {
			events = append(events, members{"CreatedEvent": x.created(r)})
		}
	}
	for _, r := range x.at("archived", at) {
		event := r.besides(ours + "acs_delta") // an event that is no exercise has none
		event.extra(x.value(r, "extra", "extra"))
		events = append(events, members{"ArchivedEvent": event})
	}
	for _, r := range x.at("exercised", at) {
		event := r.besides(ours + "choice_argument exercise_result")
		event["choiceArgument"] = x.value(r, "choice_argument", "choice_argument")
		event["exerciseResult"] = x.value(r, "exercise_result", "exercise_result")
		event.extra(x.value(r, "extra", "extra"))
		events = append(events, members{"ExercisedEvent": event})
	}
	for _, relation := range x.others {
		for _, r := range x.at(relation, at) {
			event := r.besides(ours)
			for column := range r {
				if name := memberOf(column); event[name] != nil {
					event[name] = x.value(r, column, column)
				}
			}
			event.extra(x.value(r, "extra", "extra"))
			events = append(events, members{strings.ToUpper(relation[:1]) + memberOf(relation)[1:] + "Event": event})
		}
	}
	for _, r := range x.at("reassignments", at) {
		if r.text("kind") == "assigned" {
			events = append(events, members{"JsAssignmentEvent": x.assigned(r, at, r["node_id"])})
			continue
		}
		event, envelope := x.unassigned(r)
		events = append(events, members{"JsUnassignedEvent": members{"value": event}}.merge(envelope))
	}
	for _, r := range x.at("topology", at) {
		events = append(events, x.topology(r))
	}
	if kind != "TopologyTransaction" {
		for _, r := range x.at("unknown", at) {
			events = append(events, members{}.merge(x.value(r, "raw", "raw")))
		}
	}
	return events
}

func (x *rebuild) created(r row) members {
	event := r.besides(ours + "origin payload contract_key created_at workflow_id reassignment_counter entry_extra")
	event["createdAt"] = x.time(r, "created_at", "createdAt")
	event["createArgument"] = x.value(r, "payload", "payload")
	event["contractKey"] = x.value(r, "contract_key", "contract_key")
	event.extra(x.value(r, "extra", "extra"))
	views := []members{}
	for _, v := range x.at("views", r["ledger_offset"], r["node_id"]) {
		view := v.take("interfaceId implementationPackageId")
		view["viewValue"] = x.value(v, "view_value", "view_value")
		status := v.take("code=status_code message=status_message")
		status["details"] = x.value(v, "status_details", "status_details")
		view["viewStatus"] = status.merge(view.extra(x.value(v, "extra", "extra"))["$viewStatus"])
		views = append(views, view)
	}
	event["interfaceViews"] = views
	return event
}

// assigned rebuilds an assignment, whose creation event stands at an offset and node.
func (x *rebuild) assigned(r row, offset, node jsontext.Value) members {
	event := r.take("source=source_synchronizer_id target=target_synchronizer_id reassignmentId submitter reassignmentCounter")
	event.extra(x.value(r, "extra", "assignment_extra"))
	event["createdEvent"] = x.creationAt(offset, node)
	return event
}

func (x *rebuild) creationAt(offset, node jsontext.Value) members {
	for _, c := range x.at("created", offset, node) {
		return x.created(c)
	}
	return members{}
}

// unassigned rebuilds an unassignment; what it had around its value comes beside it.
func (x *rebuild) unassigned(r row) (event members, envelope jsontext.Value) {
	event = r.take(`offset=ledger_offset nodeId contractId templateId packageName source=source_synchronizer_id
		target=target_synchronizer_id reassignmentId submitter reassignmentCounter witnessParties`)
	event["assignmentExclusivity"] = x.time(r, "assignment_exclusivity", "assignmentExclusivity")
	return event, event.extra(x.value(r, "extra", "extra"))["$envelope"]
}

func (x *rebuild) topology(r row) members {
	value := r.take("partyId participantId participantPermission=permission")
	envelope := value.extra(x.value(r, "extra", "extra"))["$envelope"]
	kind := r.text("kind")
	if kind == "unknown" {
		event := members{}
		for _, e := range x.at("unknown", r["ledger_offset"], r["node_id"]) {
			event["event"] = x.value(e, "raw", "raw")
		}
		return event.merge(envelope)
	}
	name := "ParticipantAuthorization" + strings.ToUpper(kind[:1]) + kind[1:]
	return members{"event": members{name: members{"value": value}}}.merge(envelope)
}

// checkpoint rebuilds what an offset checkpoint said of one synchronizer.
func (x *rebuild) checkpoint(r row) members {
	value := r.take("offset=ledger_offset")
	entry := r.take("synchronizerId")
	synchronizer := r.text("synchronizer_id")
	entry["recordTime"] = x.time(r, "record_time", "checkpoint_time "+synchronizer)
	ordinal := r["ordinal"]
	delete(r, "ordinal") // exact values of checkpoints have none
	elsewhere := value.extra(x.value(r, "extra", "checkpoint_extra "+synchronizer))
	entry.merge(object(elsewhere["$synchronizerTimes"])["["+string(ordinal)+"]"])
	value["synchronizerTimes"] = []members{entry}
	return members{"update": members{"OffsetCheckpoint": members{"value": value}}}.merge(elsewhere["$envelope"])
}

// entries rebuilds the entries of a snapshot.
func (x *rebuild) entries() []members {
	var entries []members
	add := func(r row, entryExtra jsontext.Value, variant string, value any) {
		around := object(entryExtra)
		if variant != "" {
			level := value.(members)
			level.extra(around["variant"])
			value = members{variant: level}
		}
		entry := r.take("workflowId")
		entry["contractEntry"] = value
		entries = append(entries, entry.merge(entry.extra(around["entry"])["$envelope"]))
	}
	for _, offset := range x.relations["created"] {
		for _, r := range offset {
			entryExtra := x.value(r, "entry_extra", "entry_extra")
			if r["reassignment_counter"] == nil {
				continue // a fact, or the creation event of an incomplete reassignment
			}
			value := r.take("synchronizerId reassignmentCounter")
			value["createdEvent"] = x.created(r)
			add(r, entryExtra, "JsActiveContract", value)
		}
	}
	for _, offset := range x.relations["reassignments"] {
		for _, r := range offset {
			switch {
			case string(r["carried"]) != "true":
			case r.text("kind") == "assigned":
				value := members{"assignedEvent": x.assigned(r, r["created_offset"], r["created_node_id"])}
				add(r, x.value(r, "entry_extra", "assignment_entry_extra"), "JsIncompleteAssigned", value)
			default:
				event, _ := x.unassigned(r)
				value := members{"unassignedEvent": event, "createdEvent": x.creationAt(r["created_offset"], r["created_node_id"])}
				add(r, x.value(r, "entry_extra", "entry_extra"), "JsIncompleteUnassigned", value)
			}
		}
	}
	for _, offset := range x.relations["unknown"] {
		for _, r := range offset {
			if string(r["carried"]) == "true" {
				var raw any = x.value(r, "raw", "raw")
				if r.text("kind") == "JsEmpty" {
					raw = members{"JsEmpty": members{}}
				}
				add(r, x.value(r, "entry_extra", "entry_extra"), "", raw)
			}
		}
	}
	return entries
}

// leftOver lists the exact values that no row has asked for.
func (x *rebuild) leftOver() []string {
	var keys []string
	for key := range x.exact {
		if !x.asked[key] {
			keys = append(keys, "exact value at "+key+" belongs to nothing")
		}
	}
	slices.Sort(keys)
	return keys
}
