package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Keys in Extra under which members stand that are not known and lie at another level than the rest of it.
const (
	extraEnvelope = "$envelope"          // the element around the value: wrappers with the known parts cut out
	extraStatus   = "$viewStatus"        // of an interface view's viewStatus
	extraTrace    = "$traceContext"      // of an update's traceContext
	extraTimes    = "$synchronizerTimes" // of a checkpoint's synchronizerTimes, by "[index]"
)

// eachMember tells the names of the members of an object that the decoder has put together.
func eachMember(members jsontext.Value, visit func(name string)) {
	if len(members) == 0 {
		return
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(members), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err == nil {
			visit(name.String())
			err = dec.SkipValue()
		}
	}
	if err != nil {
		panic("ledger: members that were decoded once are JSON: " + err.Error())
	}
}

// unknown is the members that this version does not know, for Extra. A name that Extra uses for itself stops: it
// would be taken for what it is not.
func (o *object) unknown(members jsontext.Value) JSON {
	eachMember(members, func(name string) {
		switch name {
		case extraEnvelope, extraStatus, extraTrace, extraTimes:
			o.fail(name, errors.New("is a member of a name that is reserved here"))
		}
	})
	return members
}

// appendMember is an object, which may be nil, with a member more. Without a value nothing is added.
func appendMember(object JSON, name string, value jsontext.Value) JSON {
	if value == nil {
		return object
	}
	return extend(bytes.Clone(object), name, value)
}

// extend is appendMember for an object that nobody else has: it may be changed, and is not copied for each member.
func extend(object JSON, name string, value jsontext.Value) JSON {
	if value == nil {
		return object
	}
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		panic("ledger: a member's name is a text: " + err.Error())
	}
	if object == nil {
		object = append(object, '{')
	} else {
		object[len(object)-1] = ','
	}
	object = append(append(object, quoted...), ':')
	return append(append(object, value...), '}')
}

// withEnvelope adds to extra the unknown members beside wrapper ({"update": …, "new": 1}) and those beside the
// value of variant ({"Transaction": {"value": …, "new": 1}}), in the shape in which they were served. An empty wrapper
// is a level that the element does not have.
func withEnvelope(extra JSON, beside jsontext.Value, wrapper, variant string, inVariant jsontext.Value) JSON {
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

// newUnknown keeps an object whose only key is a variant's name that is not known.
func newUnknown(kind string, raw jsontext.Value) (UnknownElement, error) {
	if strings.ContainsAny(kind, "\x00\uFFFD") {
		return UnknownElement{}, fmt.Errorf("is of the kind %q, which is not known, and the name holds a NUL character or half of a surrogate pair", kind)
	}
	return UnknownElement{Kind: kind, Raw: raw}, nil
}

// unknownEvent keeps an event of a kind that is not known.
func unknownEvent(kind string, raw jsontext.Value) (UnknownElement, error) {
	event, err := newUnknown(kind, raw)
	if err != nil {
		return event, err
	}
	node, ok := firstReadable(readableLevels(raw), func(o *object, w *wireReadable) int32 { return o.nodeID("nodeId", w.NodeID) })
	if ok {
		event.NodeID = &node
	}
	return event, nil
}

// unknownUpdate keeps an update of a kind that is not known. Its offset must be readable, or the stream could not
// be resumed after it.
func unknownUpdate(kind string, raw jsontext.Value) (*Update, error) {
	element, err := newUnknown(kind, raw)
	if err != nil {
		return nil, err
	}
	levels := readableLevels(raw)
	offset, ok := firstReadable(levels, func(o *object, w *wireReadable) Offset { return o.updateOffset("offset", w.Offset) })
	if !ok {
		return nil, fmt.Errorf("is of the kind %q, which is not known, and has no readable offset", kind)
	}
	update := &Update{Kind: KindUnknown, Offset: offset, Unknown: []UnknownElement{element}}
	update.ID, _ = firstReadable(levels, func(o *object, w *wireReadable) string { return o.unique("updateId", w.UpdateID) })
	update.SynchronizerID, _ = firstReadable(levels, func(o *object, w *wireReadable) *string {
		return o.requiredText("synchronizerId", w.SynchronizerID)
	})
	update.RecordTime, _ = firstReadable(levels, func(o *object, w *wireReadable) Time { return o.time("recordTime", w.RecordTime) })
	return update, nil
}

// wireReadable is what can be hoped for in a variant that is not known.
type wireReadable struct {
	Offset         span `json:"offset"`
	UpdateID       span `json:"updateId"`
	SynchronizerID span `json:"synchronizerId"`
	RecordTime     span `json:"recordTime"`
	NodeID         span `json:"nodeId"`
	Value          span `json:"value"`
}

// level is an object in which members of a variant that is not known may stand.
type level struct {
	*reader
	wire wireReadable
}

// readableLevels is the objects below a variant that is not known, the likelier one first: its value, and itself.
func readableLevels(raw jsontext.Value) []level {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true))
	_, _ = dec.ReadToken() // the object's start
	_, _ = dec.ReadToken() // its only name
	body, err := dec.ReadValue()
	if err != nil {
		panic("ledger: a variant that was decoded once is JSON: " + err.Error())
	}
	own, ok := readLevel(body)
	if !ok {
		return nil
	}
	if value := own.at(own.wire.Value); value != nil {
		if inner, ok := readLevel(value); ok {
			return []level{inner, own}
		}
	}
	return []level{own}
}

func readLevel(body []byte) (level, bool) {
	l := level{reader: newReader(body)}
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	return l, json.UnmarshalDecode(dec, &l.wire) == nil
}

// firstReadable is the first value that is of the expected kind; what is not stays in the raw JSON alone.
func firstReadable[T any](levels []level, read func(*object, *wireReadable) T) (T, bool) {
	for i := range levels {
		o := object{reader: levels[i].reader}
		if value := read(&o, &levels[i].wire); o.err == nil {
			return value, true
		}
	}
	var none T
	return none, false
}
