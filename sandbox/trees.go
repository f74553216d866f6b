package sandbox

import (
	"encoding/json"
	"net/http"
)

// trees implements POST /v2/updates/trees, the update-tree variant of interface.md,
// endpoint 2.
func (s *Server) trees(w http.ResponseWriter, r *http.Request) {
	s.updateList(w, r, (*decoder).treeFormatOf)
}

// treeFormatOf applies the rules for updates as trees: only the deprecated filter,
// and no template filters in it. Everything that a party sees comes, with views of
// the interfaces asked for, but no topology events: a list of trees has no form for them.
func (d *decoder) treeFormatOf(o object) (*updateFormat, *cantonError) {
	filter := d.eventFormat(o["filter"], "filter")
	verbose := decode[bool](d, o["verbose"], "verbose")
	switch {
	case d.err != nil:
		return nil, nil
	case !isNull(o["updateFormat"]):
		return nil, invalidArgument("update_format must be unset for update trees. Use filter and verbose.")
	case filter == nil:
		return nil, invalidArgument("Either filter/verbose or update_format is required")
	}
	filter.Verbose = verbose
	wildcards := true
	withWildcard := func(list []clause) []clause {
		for _, c := range list {
			wildcards = wildcards && c.Kind != clauseTemplate
		}
		return append(list, clause{})
	}
	for party, list := range filter.ByParty {
		filter.ByParty[party] = withWildcard(list)
	}
	if filter.Any != nil {
		filter.Any = withWildcard(filter.Any)
	}
	if !wildcards {
		return nil, invalidArgument("template filters must be empty for update trees")
	}
	return &updateFormat{Transactions: filter, Shape: shapeLedgerEffects, Reassignments: filter, Trees: true}, nil
}

// appendListed appends update i as a list of the filter shows it, or nothing.
func (s *Server) appendListed(dst []byte, h reading, i int, f *updateFilter) ([]byte, bool) {
	start := len(dst)
	dst, shown := h.appendUpdate(dst, i, f, &s.feat)
	if shown && f.trees {
		dst = append(dst[:start], asTree(dst[start:])...)
	}
	return dst, shown
}

// asTree turns a served transaction into a tree: its events by node id. Other updates
// are the same as ever.
func asTree(raw []byte) []byte {
	var element struct {
		Update map[string]struct{ Value object } `json:"update"`
	}
	err := json.Unmarshal(raw, &element)
	transaction, ok := element.Update["Transaction"]
	if err != nil || !ok {
		return raw
	}
	var d decoder
	byID := map[string]any{}
	for _, event := range decode[[]json.RawMessage](&d, transaction.Value["events"], "events") {
		name, body := d.variant(event, "event")
		kind := map[string]string{"CreatedEvent": "CreatedTreeEvent", "ExercisedEvent": "ExercisedTreeEvent"}[name]
		node := string(d.object(body, name)["nodeId"])
		byID[node] = map[string]any{kind: map[string]any{"value": body}}
	}
	tree := map[string]any{"eventsById": byID}
	for _, key := range []string{"updateId", "commandId", "workflowId", "effectiveAt", "offset", "synchronizerId",
		"traceContext", "recordTime"} {
		tree[key] = transaction.Value[key]
	}
	out, err := marshal(map[string]any{"update": map[string]any{"TransactionTree": map[string]any{"value": tree}}})
	if d.err != nil || err != nil {
		return raw // a recording of something strange, served as it is
	}
	return out
}
