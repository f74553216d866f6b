package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// networkNode is an event in the tree of a network's transaction.
type networkNode struct {
	id       string
	at       int // position of the event in the text
	children []string
	list     networkKind
	index    int   // in the update's list of events of this kind
	number   int32 // the node id; -1: not numbered yet
}

// networkKind says which of the update's lists holds an event.
type networkKind int

const (
	networkCreated networkKind = iota
	networkExercised
	networkUnknown
)

// networkEvents reads the events of a transaction. They come sorted by id as text, not in the order of the tree.
func (d *decoder) networkEvents(u *networkItem) {
	u.tree = true
	d.namedMembers(func(id string) {
		d.peek()
		node := networkNode{id: id, at: d.at, number: -1}
		d.networkEvent(u, &node)
		d.tree = append(d.tree, node)
	})
}

// namedMembers reads an object with arbitrary names, each at most once, and calls read to read each value.
func (d *decoder) namedMembers(read func(name string)) {
	if d.peek() != '{' {
		d.mistyped("an object")
		return
	}
	names := len(d.memberNames)
	d.at++
	d.enter()
	for ends := d.is('}'); !ends && !d.refused; ends = d.endsMember() {
		d.peek()
		name := d.upTo(d.memberName(d.at, names))
		d.want(':')
		if !d.refused {
			read(string(unquoted(name)))
		}
	}
	d.leave(names)
}

// networkEvent reads an event twice: first only its type, then the members that events of this type have.
func (d *decoder) networkEvent(u *networkItem, node *networkNode) {
	begun := d.mark()
	var o networkOutline
	networkOutlineMembers.read(d, &o)
	if d.refused {
		return
	}
	sent := d.text[begun.at:d.at]
	id := cmp.Or(o.id, node.id) // an event of an unknown type may have none
	switch o.kind {
	case "created_event":
		d.goBack(begun)
		node.list, node.index = networkCreated, d.created.count()
		id = d.networkCreation(OriginTransaction)
	case "exercised_event":
		d.goBack(begun)
		node.list, node.index = networkExercised, d.exercised.count()
		e := networkExerciseEvent{ExercisedEvent: d.exercised.add()}
		e.Extra = networkExercisedMembers.read(d, &e)
		id, node.children = e.id, e.children
	default:
		node.list, node.index, node.children = networkUnknown, len(u.Unknown), o.children
		quoted, err := jsontext.AppendQuote(nil, o.kind)
		if err != nil {
			panic("ledger: an event's type is a text: " + err.Error())
		}
		u.Unknown = append(u.Unknown, UnknownElement{Kind: o.kind, Raw: extend(nil, quoted, sent)})
	}
	if id != node.id && !d.refused {
		d.refuseAt(node.at, "event_id", fmt.Errorf("is %s, and the event stands under %s", Quoted(id), Quoted(node.id)))
	}
}

// networkOutline is the part of an event that is read before its type is known.
type networkOutline struct {
	kind, id string
	children []string
}

var networkOutlineMembers = membersOf(
	must("event_type", func(d *decoder, o *networkOutline) { o.kind = d.commonID() }),
	may("event_id", func(d *decoder, o *networkOutline) { o.id = string(d.chars()) }),
	may("child_event_ids", func(d *decoder, o *networkOutline) { o.children = attempt(d, (*decoder).idList) }),
).withoutUnknown()

// numberEvents gives the events of a transaction their node ids in execution order: each before its descendants. begun
// is the transaction's position in the text.
func (d *decoder) numberEvents(begun int, item *networkItem) {
	places := make(map[string]int, len(d.tree))
	for i := range d.tree {
		places[d.tree[i].id] = i
	}
	type frame struct{ node, child int }
	var open []frame // exercises whose children are being numbered, the innermost last
	next := int32(0)
	enter := func(id string, at int, field string) {
		i, found := places[id]
		switch {
		case !found:
			d.refuseAt(at, field, fmt.Errorf("names event %s, which events_by_id does not have", Quoted(id)))
		case d.tree[i].number >= 0:
			d.refuseAt(at, field, fmt.Errorf("names event %s, which another list names, or the same one twice", Quoted(id)))
		default:
			d.tree[i].number = next
			next++
			open = append(open, frame{node: i})
		}
	}
	for _, root := range item.roots {
		enter(root, begun, "root_event_ids")
		for len(open) > 0 && !d.refused {
			top := &open[len(open)-1]
			node := &d.tree[top.node]
			if top.child < len(node.children) {
				top.child++
				enter(node.children[top.child-1], node.at, "child_event_ids")
				continue
			}
			d.setNodeIDs(item, node, next-1)
			open = open[:len(open)-1]
		}
	}
	for i := range d.tree {
		if node := &d.tree[i]; node.number < 0 && !d.refused {
			d.refuseAt(node.at, "event_id", fmt.Errorf("is %s, which is below no root event", Quoted(node.id)))
		}
	}
	if d.refused {
		return // events that were not reached have no number
	}
	slices.SortFunc(item.Created, func(a, b CreatedEvent) int { return cmp.Compare(a.NodeID, b.NodeID) })
	slices.SortFunc(item.Exercised, func(a, b ExercisedEvent) int { return cmp.Compare(a.NodeID, b.NodeID) })
	slices.SortFunc(item.Unknown, func(a, b UnknownElement) int { return cmp.Compare(*a.NodeID, *b.NodeID) })
}

// setNodeIDs stores the node id of an event, and last, the highest node id among its descendants.
func (d *decoder) setNodeIDs(item *networkItem, node *networkNode, last int32) {
	switch node.list {
	case networkCreated:
		c := &item.Created[node.index]
		c.NodeID = node.number
		d.keepEventID(&c.Extra, item.ID, node.id, node.number)
	case networkExercised:
		e := &item.Exercised[node.index]
		e.NodeID, e.LastDescendantNodeID = node.number, last
		d.keepEventID(&e.Extra, item.ID, node.id, node.number)
	case networkUnknown:
		item.Unknown[node.index].NodeID = new(node.number)
	}
}

// keepEventID adds an event id to extra if it is not of the usual form: update id, colon, node id.
func (d *decoder) keepEventID(extra *JSON, updateID, eventID string, number int32) {
	d.scratch = strconv.AppendInt(append(append(d.scratch[:0], updateID...), ':'), int64(number), 10)
	if string(d.scratch) == eventID {
		return
	}
	quoted, err := jsontext.AppendQuote(nil, eventID)
	if err != nil {
		panic("ledger: an event id is a text: " + err.Error())
	}
	*extra = appendMember(*extra, "event_id", quoted)
}
