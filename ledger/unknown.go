package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Members that this program does not know are kept in Extra. These keys are for those that the server sent at another
// level than the rest of it.
const (
	extraEnvelope = "$envelope"          // the element around the value: wrappers with the known parts cut out
	extraStatus   = "$viewStatus"        // of an interface view's viewStatus
	extraTrace    = "$traceContext"      // of an update's traceContext
	extraTimes    = "$synchronizerTimes" // of a checkpoint's synchronizerTimes, by "[index]"
)

var extraNames = []string{extraEnvelope, extraStatus, extraTrace, extraTimes}

// extend returns an object with one more member. The object may be nil, and may be changed. The name has its quotes.
func extend(object JSON, name, value []byte) JSON {
	if object == nil {
		object = append(object, '{')
	} else {
		object[len(object)-1] = ','
	}
	object = append(append(object, name...), ':')
	return append(append(object, value...), '}')
}

// appendMember returns an object, which may be nil, with one more member, unless that has no value.
func appendMember(object JSON, name string, value JSON) JSON {
	if value == nil {
		return object
	}
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		panic("ledger: a member's name is a text: " + err.Error())
	}
	return extend(bytes.Clone(object), quoted, value)
}

// withEnvelope adds to extra the unknown members beside wrapper ({"update": …, "new": 1}) and those beside the
// value of variant ({"Transaction": {"value": …, "new": 1}}), in the shape in which they were served. An empty wrapper
// is a level that the element does not have.
func withEnvelope(extra, beside JSON, wrapper, variant string, inVariant JSON) JSON {
	envelope := beside
	if inVariant != nil {
		inner := appendMember(nil, variant, inVariant)
		if wrapper != "" {
			inner = appendMember(envelope, wrapper, inner)
		}
		envelope = inner
	}
	return appendMember(extra, extraEnvelope, envelope)
}

// unknownElement keeps an object whose only member is an unknown variant.
func (d *decoder) unknownElement(begun int, raw JSON) (UnknownElement, readable) {
	s := jsonScanner{text: raw}
	end := s.string(1)
	kind := string(unquoted(raw[1:end]))
	if strings.ContainsAny(kind, "\x00\uFFFD") {
		d.refuseAt(begun, "", fmt.Errorf("is of the kind %s, which is not known, and the name holds a NUL character or "+
			"half of a surrogate pair", Quoted(kind)))
	}
	own := d.readLevel(raw[end+1 : len(raw)-1])
	inner := d.readLevel(own.value)
	return UnknownElement{Kind: kind, Raw: raw}, readable{
		offset:         cmp.Or(inner.offset, own.offset),
		updateID:       cmp.Or(inner.updateID, own.updateID),
		synchronizerID: cmp.Or(inner.synchronizerID, own.synchronizerID),
		recordTime:     cmp.Or(inner.recordTime, own.recordTime),
		nodeID:         cmp.Or(inner.nodeID, own.nodeID),
	}
}

// readable is what an unknown variant may have, in its value or beside it. What can't be read is zero.
type readable struct {
	offset         Offset
	updateID       string
	synchronizerID *string
	recordTime     Time
	nodeID         *int32
	value          JSON
}

var readableMembers = membersOf(
	may("offset", func(d *decoder, r *readable) { r.offset = attempt(d, (*decoder).updateOffset) }),
	may("updateId", func(d *decoder, r *readable) { r.updateID = attempt(d, (*decoder).rareID) }),
	may("synchronizerId", func(d *decoder, r *readable) { r.synchronizerID = attempt(d, (*decoder).commonText) }),
	may("recordTime", func(d *decoder, r *readable) { r.recordTime = attempt(d, (*decoder).time) }),
	may("nodeId", func(d *decoder, r *readable) {
		r.nodeID = attempt(d, func(d *decoder) *int32 { return new(d.nodeID()) })
	}),
	may("value", func(d *decoder, r *readable) { r.value = d.value() }),
).withoutUnknown()

// readLevel reads what it can of a value, which was read once before; nothing if that is no object.
func (d *decoder) readLevel(value JSON) (r readable) {
	readableMembers.read(newDecoder(value, d.lexicon), &r)
	return r
}

// UnknownElement is an update or an event of a kind that this version does not know, as the server sent it.
type UnknownElement struct {
	NodeID *int32 // nil for a whole update, or if the event has none
	Kind   string // the variant's name as served
	Raw    JSON   // the object with the variant's name as its only key
}

// Table implements Element.
func (e *UnknownElement) Table() string { return "unknown_elements" }

// Contract implements Element.
func (e *UnknownElement) Contract() string { return "" }

// Redact implements Element.
func (e *UnknownElement) Redact() { e.Raw = nil }

// unknownEvent keeps an event of an unknown kind, with its node id if that can be read.
func (d *decoder) unknownEvent(begun int, raw JSON) UnknownElement {
	event, r := d.unknownElement(begun, raw)
	event.NodeID = r.nodeID
	return event
}
