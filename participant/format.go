package participant

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TransactionShape selects the events of a transaction.
type TransactionShape string

// The transaction shapes. ACS delta brings creations and archivals as their contracts' stakeholders see them; ledger
// effects brings creations and exercises, also those that were only witnessed.
const (
	ShapeACSDelta      TransactionShape = "TRANSACTION_SHAPE_ACS_DELTA"
	ShapeLedgerEffects TransactionShape = "TRANSACTION_SHAPE_LEDGER_EFFECTS"
)

// EventFormat selects events by party and contract (interface.md, "EventFormat"). An event matches if one of the two
// filters does. One of them must be set. The first needs the right to read as each of its parties, the second the right
// to read as any party.
type EventFormat struct {
	FiltersByParty     map[string]Filters `json:"filtersByParty"`
	FiltersForAnyParty *Filters           `json:"filtersForAnyParty,omitzero"`
	Verbose            bool               `json:"verbose"` // request labels of record fields and the like

	encoded jsontext.Value // the JSON if it was encoded before, else nil
}

// Filters are the filters of one party. A contract matches if one of them does, or if all are empty or there are none.
type Filters struct {
	Cumulative []CumulativeFilter `json:"cumulative"`
}

// CumulativeFilter is one of a party's filters (interface.md, "TransactionFilter", identifierFilter). At most one
// member is set; the zero value is the variant Empty.
type CumulativeFilter struct {
	Wildcard  *WildcardFilter
	Template  *TemplateFilter
	Interface *InterfaceFilter
}

// WildcardFilter matches all contracts.
type WildcardFilter struct {
	IncludeCreatedEventBlob bool `json:"includeCreatedEventBlob"`
}

// TemplateFilter matches the contracts of a template, in all versions of its package.
type TemplateFilter struct {
	TemplateID              string `json:"templateId"` // #package-name:Module:Entity; up to 3.4 also a package id
	IncludeCreatedEventBlob bool   `json:"includeCreatedEventBlob"`
}

// InterfaceFilter matches the contracts that implement an interface.
type InterfaceFilter struct {
	InterfaceID             string `json:"interfaceId"` // as TemplateFilter.TemplateID
	IncludeInterfaceView    bool   `json:"includeInterfaceView"`
	IncludeCreatedEventBlob bool   `json:"includeCreatedEventBlob"`
}

// UpdateFormat selects updates (interface.md, "UpdateFormat"). The server does not send a kind whose member is nil.
type UpdateFormat struct {
	IncludeTransactions   *TransactionFormat `json:"includeTransactions,omitzero"`
	IncludeReassignments  *EventFormat       `json:"includeReassignments,omitzero"`
	IncludeTopologyEvents *TopologyFormat    `json:"includeTopologyEvents,omitzero"`

	encoded jsontext.Value // the JSON if it was encoded before, else nil
}

// TransactionFormat selects transactions. A transaction without a matching event is not sent.
type TransactionFormat struct {
	EventFormat      EventFormat      `json:"eventFormat"`
	TransactionShape TransactionShape `json:"transactionShape"`
}

// TopologyFormat selects topology events; nil selects none.
type TopologyFormat struct {
	HostingEvents *ParticipantAuthorizationFormat `json:"includeParticipantAuthorizationEvents,omitzero"`
}

// ParticipantAuthorizationFormat selects changes of hosting by party.
type ParticipantAuthorizationFormat struct {
	Parties []string `json:"parties"` // none: all
}

// MarshalJSONTo writes the members in an order that depends only on the value: a continuation token is valid only with
// exactly the same format.
func (f EventFormat) MarshalJSONTo(enc *jsontext.Encoder) error {
	if f.encoded != nil {
		return enc.WriteValue(f.encoded)
	}
	type members EventFormat
	return json.MarshalEncode(enc, members(f), json.Deterministic(true))
}

// MarshalJSONTo is as that of EventFormat.
func (f UpdateFormat) MarshalJSONTo(enc *jsontext.Encoder) error {
	if f.encoded != nil {
		return enc.WriteValue(f.encoded)
	}
	type members UpdateFormat
	return json.MarshalEncode(enc, members(f), json.Deterministic(true))
}

// MarshalJSONTo writes the variant that is set.
func (f CumulativeFilter) MarshalJSONTo(enc *jsontext.Encoder) error {
	switch {
	case f.Wildcard != nil:
		return writeVariant(enc, "identifierFilter", "WildcardFilter", f.Wildcard)
	case f.Template != nil:
		return writeVariant(enc, "identifierFilter", "TemplateFilter", f.Template)
	case f.Interface != nil:
		return writeVariant(enc, "identifierFilter", "InterfaceFilter", f.Interface)
	}
	return writeVariant(enc, "identifierFilter", "Empty", nil)
}

// writeVariant writes one of several variants as the API does: {"member":{"variant":{"value":…}}}. value is nil for a
// variant without members.
func writeVariant(enc *jsontext.Encoder, member, variant string, value any) error {
	members := map[string]any{}
	if value != nil {
		members["value"] = value
	}
	return json.MarshalEncode(enc, map[string]map[string]any{member: {variant: members}})
}
