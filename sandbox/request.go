package sandbox

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// object is a JSON object whose keys are looked up exactly as they are written, as
// the participant does; unknown keys are ignored and missing ones have defaults.
type object map[string]json.RawMessage

// decoder reads request bodies; it keeps the first error.
type decoder struct{ err error }

func (d *decoder) fail(path string, err error) {
	if d.err == nil {
		d.err = fmt.Errorf("%w at '%s'", err, path)
	}
}

func decode[T any](d *decoder, raw json.RawMessage, path string) (v T) {
	if raw == nil {
		return v
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		d.fail(path, err)
	}
	return v
}

func isNull(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }

func (d *decoder) object(raw json.RawMessage, path string) object {
	return decode[object](d, raw, path)
}

func (d *decoder) bytes(raw json.RawMessage, path string) []byte {
	b, err := base64.StdEncoding.DecodeString(decode[string](d, raw, path))
	if err != nil {
		d.fail(path, err)
	}
	return b
}

// variant returns the one variant of a sum type.
func (d *decoder) variant(raw json.RawMessage, path string) (string, json.RawMessage) {
	o := d.object(raw, path)
	if len(o) == 0 {
		return "Empty", nil
	}
	if len(o) > 1 {
		d.fail(path, fmt.Errorf("expected one variant, got %d", len(o)))
	}
	for name, value := range o {
		return name, value
	}
	return "", nil
}

type clauseKind int

const (
	clauseWildcard clauseKind = iota
	clauseTemplate
	clauseInterface
)

// A clause is one of the cumulative filters.
type clause struct {
	Kind clauseKind
	ID   string
	Blob bool
	View bool
}

// eventFormat is an EventFormat as it was sent, with defaults applied.
type eventFormat struct {
	ByParty map[string][]clause
	Any     []clause // nil: absent
	Verbose bool
}

func (d *decoder) clauses(raw json.RawMessage, path string) []clause {
	list := []clause{}
	for _, item := range decode[[]object](d, d.object(raw, path)["cumulative"], path+".cumulative") {
		name, value := d.variant(item["identifierFilter"], path+".identifierFilter")
		body := d.object(d.object(value, path)["value"], path+"."+name)
		c := clause{Blob: decode[bool](d, body["includeCreatedEventBlob"], path)}
		switch name {
		case "WildcardFilter":
		case "TemplateFilter":
			c.Kind, c.ID = clauseTemplate, decode[string](d, body["templateId"], path)
		case "InterfaceFilter":
			c.Kind, c.ID = clauseInterface, decode[string](d, body["interfaceId"], path)
			c.View = decode[bool](d, body["includeInterfaceView"], path)
		case "Empty":
			continue
		default:
			d.fail(path, fmt.Errorf("type %s has no variant", name))
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		list = append(list, clause{}) // no filter is the wildcard
	}
	return list
}

func (d *decoder) eventFormat(raw json.RawMessage, path string) *eventFormat {
	if isNull(raw) {
		return nil
	}
	o := d.object(raw, path)
	f := &eventFormat{ByParty: map[string][]clause{}, Verbose: decode[bool](d, o["verbose"], path+".verbose")}
	for party, filters := range d.object(o["filtersByParty"], path+".filtersByParty") {
		f.ByParty[party] = d.clauses(filters, path+".filtersByParty")
	}
	if !isNull(o["filtersForAnyParty"]) {
		f.Any = d.clauses(o["filtersForAnyParty"], path+".filtersForAnyParty")
	}
	return f
}

// updateFormat is an UpdateFormat as it was sent.
type updateFormat struct {
	Transactions    *eventFormat
	Shape           string
	Reassignments   *eventFormat
	Topology        bool
	TopologyParties []string
	Trees           bool // transactions are to be served as trees
}

const (
	shapeACSDelta      = "TRANSACTION_SHAPE_ACS_DELTA"
	shapeLedgerEffects = "TRANSACTION_SHAPE_LEDGER_EFFECTS"
)

func (d *decoder) updateFormat(raw json.RawMessage) *updateFormat {
	if isNull(raw) {
		return nil
	}
	o := d.object(raw, "updateFormat")
	f := &updateFormat{Reassignments: d.eventFormat(o["includeReassignments"], "includeReassignments")}
	if part := o["includeTransactions"]; !isNull(part) {
		t := d.object(part, "includeTransactions")
		f.Transactions = d.eventFormat(t["eventFormat"], "includeTransactions.eventFormat")
		if f.Transactions == nil {
			f.Transactions = &eventFormat{}
		}
		f.Shape = decode[string](d, t["transactionShape"], "includeTransactions.transactionShape")
		switch f.Shape {
		case shapeACSDelta, shapeLedgerEffects, "", "TRANSACTION_SHAPE_UNSPECIFIED":
		default:
			d.fail("transactionShape", fmt.Errorf("'%s' is not a member of enum TransactionShape", f.Shape))
		}
	}
	topology := d.object(o["includeTopologyEvents"], "includeTopologyEvents")
	if part := topology["includeParticipantAuthorizationEvents"]; !isNull(part) {
		f.Topology = true
		f.TopologyParties = decode[[]string](d, d.object(part, "includeTopologyEvents")["parties"], "parties")
	}
	return f
}

const eitherForm = "Please use either backwards compatible arguments (filter and verbose) or "

// eventFormatOf applies the rules for the deprecated filter and verbose.
func (d *decoder) eventFormatOf(o object) (*eventFormat, *cantonError) {
	format := d.eventFormat(o["eventFormat"], "eventFormat")
	filter := d.eventFormat(o["filter"], "filter")
	verbose := decode[bool](d, o["verbose"], "verbose")
	switch {
	case d.err != nil:
		return nil, nil
	case format != nil && (filter != nil || verbose):
		return nil, invalidArgument("Both event_format and filter/verbose are set. " + eitherForm +
			"event_format, but not both.")
	case format != nil:
		return format, nil
	case filter != nil:
		filter.Verbose = verbose
		return filter, nil
	}
	return nil, invalidArgument("Either filter/verbose or event_format is required. " + eitherForm + "event_format.")
}

// updateFormatOf applies them to updates. With the deprecated filter come the topology events of the parties that it
// names, of all where it names none (interface.md, endpoint 2).
func (d *decoder) updateFormatOf(o object) (*updateFormat, *cantonError) {
	format := d.updateFormat(o["updateFormat"])
	filter := d.eventFormat(o["filter"], "filter")
	verbose := decode[bool](d, o["verbose"], "verbose")
	switch {
	case d.err != nil:
		return nil, nil
	case format != nil && (filter != nil || verbose):
		return nil, invalidArgument("Both update_format and filter/verbose are set. " + eitherForm +
			"update_format, but not both.")
	case format != nil:
		return format, nil
	case filter != nil:
		filter.Verbose = verbose
		return &updateFormat{
			Transactions: filter, Shape: shapeACSDelta, Reassignments: filter,
			Topology: true, TopologyParties: slices.Collect(maps.Keys(filter.ByParty)),
		}, nil
	}
	return nil, invalidArgument("Either filter/verbose or update_format is required. " + eitherForm + "update_format.")
}
