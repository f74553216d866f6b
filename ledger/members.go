package ledger

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Each kind of JSON object that servers send is described by a table of its members: the names, which of them are
// required, and how each value is read.

// known is such a table. The members are read into a T. They are listed in the order in which servers send them,
// because that order is read fastest.
type known[T any] struct {
	list     []member[T]
	required uint64 // a bit for each in the list
	others   others
}

// member is a known member, with the function that reads its value. A null counts as an absent member.
type member[T any] struct {
	name     string // with its quotes
	required bool
	read     func(*decoder, *T)
}

// others says what is done with the members of an object that its table does not have.
type others int

const (
	keptAsExtra others = iota // they become an Extra; the names that Extra itself uses are refused
	kept                      // they are kept under any names
	leftOut                   // they are dropped
)

// membersOf returns the table of an object whose unknown members become an Extra.
func membersOf[T any](list ...member[T]) *known[T] {
	all := &known[T]{list: list}
	for i := range list {
		if list[i].required {
			all.required |= 1 << i
		}
	}
	return all
}

// must describes a member that every object of the table has.
func must[T any](name string, read func(*decoder, *T)) member[T] {
	return member[T]{`"` + name + `"`, true, read}
}

// may describes a member that may be missing.
func may[T any](name string, read func(*decoder, *T)) member[T] {
	return member[T]{`"` + name + `"`, false, read}
}

// wrapped returns the table of an object whose only member is "value". Such objects stand between the name of a variant
// and its members.
func wrapped[T any](read func(*decoder, *T)) *known[T] { return membersOf(must("value", read)).keep() }

// keep returns the table of the same object, with unknown members kept under any names.
func (m *known[T]) keep() *known[T] { return &known[T]{m.list, m.required, kept} }

// withoutUnknown returns the table of the same object, without its unknown members.
func (m *known[T]) withoutUnknown() *known[T] { return &known[T]{m.list, m.required, leftOut} }

var (
	errMissing  = errors.New("is required, and absent or null")
	errReserved = errors.New("is a member of a name that is reserved here")
)

// read reads an object. It returns the unknown members as one object.
func (m *known[T]) read(d *decoder, into *T) (unknown JSON) {
	unknown, _ = m.count(d, into)
	return unknown
}

// variant reads an object with one member, whose name is the variant. It returns the object if the name is unknown.
func (m *known[T]) variant(d *decoder, into *T) (unknown JSON) {
	begun := d.here()
	unknown, count := m.count(d, into)
	switch {
	case count == 0:
		d.refuseAt(begun, "", errors.New("holds no variant, and exactly one is expected"))
	case count > 1:
		d.refuseAt(begun, "", fmt.Errorf("holds %d variants, and exactly one is expected", count))
	}
	return unknown
}

// count reads an object, and returns how many members it has, without known ones that are null.
func (m *known[T]) count(d *decoder, into *T) (unknown JSON, count int) {
	if d.peek() != '{' {
		d.mistyped("an object")
		return nil, 0
	}
	begun, names := d.at, len(d.memberNames) // of objects around this one
	d.at++
	d.enter()
	var seen, present uint64
	for next, ends := 0, d.is('}'); !ends && !d.refused; ends = d.endsMember() {
		i := m.find(d, next)
		if i == len(m.list) {
			unknown = m.unknown(d, unknown, names)
			count++
			continue
		}
		bit := uint64(1) << i
		if seen&bit != 0 {
			d.stop()
			continue
		}
		seen |= bit
		d.want(':')
		if d.peek() == 'n' {
			d.value()
		} else {
			present |= bit
			m.list[i].read(d, into)
		}
		next = i + 1
	}
	d.leave(names)
	if missing := m.required &^ present; missing != 0 {
		name := m.list[bits.TrailingZeros64(missing)].name
		d.refuseAt(begun, name[1:len(name)-1], errMissing)
	}
	return unknown, count + bits.OnesCount64(present)
}

// endsMember reads what follows a member, and reports whether it is the end of the object.
func (d *decoder) endsMember() bool {
	if d.is(',') {
		return false
	}
	d.want('}')
	return true
}

// find looks up the name of the next member, and reads it. It returns its index in the list; probably is the likely
// one. For an unknown name it returns the length of the list, and does not read the name.
func (m *known[T]) find(d *decoder, probably int) int {
	if d.peek(); probably < len(m.list) && d.has(m.list[probably].name) {
		d.at += len(m.list[probably].name)
		return probably
	}
	for i := range m.list {
		if d.has(m.list[i].name) {
			d.at += len(m.list[i].name)
			return i
		}
	}
	return m.findEscaped(d)
}

// findEscaped is find for a name that may have escapes.
func (m *known[T]) findEscaped(d *decoder) int {
	escapes := d.escapes
	if d.peek() != '"' {
		d.stop()
		return len(m.list)
	}
	end := d.jsonScanner.string(d.at)
	if end < 0 || d.escapes == escapes {
		return len(m.list)
	}
	name := `"` + string(unquoted(d.text[d.at:end])) + `"`
	i := slices.IndexFunc(m.list, func(known member[T]) bool { return known.name == name })
	if i < 0 {
		return len(m.list)
	}
	d.at = end
	return i
}

// unknown reads an unknown member, and returns the object of unknown members with it. first is where the names of the
// object that is being read begin in d.memberNames.
func (m *known[T]) unknown(d *decoder, object JSON, first int) JSON {
	begun := d.at
	end := d.memberName(begun, first)
	name := d.upTo(end)
	if m.others == keptAsExtra && slices.Contains(extraNames, string(unquoted(name))) {
		d.refuse(errReserved)
	}
	d.want(':')
	value := d.value()
	if m.others == leftOut || d.refused {
		return nil
	}
	return extend(object, d.text[begun:end], value)
}
