package damllf

import "google.golang.org/protobuf/encoding/protowire"

// typeIn reads a type from a field of a message outside the table of types.
func (d *decoder) typeIn(message []byte, num protowire.Number) *TypeExpr {
	return d.typ(d.last(message, num), len(d.types.at), 0)
}

// typ reads a type that may refer to entries of the table with a lower index than below, and is nested within depth
// others.
func (d *decoder) typ(message []byte, below, depth int) *TypeExpr {
	if depth > maxNesting {
		d.fail("types stand more than %d deep within each other", maxNesting)
	}
	t := &TypeExpr{}
	sum := d.oneOf(message, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	switch sum.num {
	case 0:
		d.fail("there is no type, or one of a form that is not known")
	case 6:
		if d.is(sum, protowire.VarintType) {
			t.Form, t.Nat = Number, int(protowire.DecodeZigZag(sum.n))
		}
		if t.Nat < 0 || t.Nat > 37 {
			d.fail("%d is no scale of a number", t.Nat)
		}
	case 8:
		return d.interned(d.index(sum), below, depth)
	default:
		d.is(sum, protowire.BytesType)
	}
	switch sum.num {
	case 1:
		t.Form, t.Var = Variable, d.identifier(d.number(sum.value, 3))
	case 2:
		t.Form, t.Ref = Constructor, d.ref(d.last(sum.value, 1))
	case 3:
		t.Form, t.Builtin = Primitive, Builtin(d.number(sum.value, 1))
	case 4:
		t.Form, t.Var = Other, "a quantified type"
	case 5:
		t.Form, t.Var = Other, "a structure"
	case 7:
		t.Form, t.Ref = Synonym, d.ref(d.last(sum.value, 1))
	case 9:
		return d.application(sum.value, below, depth)
	}
	if t.Form != Other {
		for argument := range d.each(sum.value, 2) {
			t.Args = append(t.Args, d.typ(argument, below, depth+1))
		}
	}
	d.keep(128 + 8*len(t.Args))
	return t
}

// interned returns an entry of the table of types. It may refer only to entries before it, so that reading ends.
func (d *decoder) interned(i, below, depth int) *TypeExpr {
	if i >= below && i < len(d.types.at) {
		d.fail("interned type %d is used before its place", i)
	}
	if known, ok := d.knownTypes[i]; ok {
		return known
	}
	message := d.entry(d.types, i, "interned type")
	d.enter("interned type", i)
	t := d.typ(message, i, depth+1)
	d.leave()
	d.keep(64)
	d.knownTypes[i] = t
	return t
}

// application reads a type that is applied to one more argument.
func (d *decoder) application(message []byte, below, depth int) *TypeExpr {
	applied := d.typ(d.last(message, 1), below, depth+1)
	argument := d.typ(d.last(message, 2), below, depth+1)
	if applied.Form == Number || applied.Form == Other {
		d.fail("a type is applied that takes no arguments")
	}
	if d.keep(128 + 8*len(applied.Args)); d.err != nil {
		return applied
	}
	t := *applied // a copy: applied may be an entry of the table
	t.Args = append(applied.Args[:len(applied.Args):len(applied.Args)], argument)
	return &t
}

// ref reads the name of a data type, an interface or a synonym.
func (d *decoder) ref(message []byte) Ref {
	module := d.last(message, 1)
	return Ref{
		Package: d.packageOf(d.last(module, 1)),
		Name:    Name{Module: d.dotted(d.number(module, 2)), Entity: d.dotted(d.number(message, 2))},
	}
}

// packageOf reads a reference to a package: this one, one by its id, or an import.
func (d *decoder) packageOf(message []byte) string {
	sum := d.oneOf(message, 1, 3, 4)
	switch sum.num {
	case 1:
		return d.p.ID
	case 3:
		return d.packageID(d.text(d.index(sum)))
	case 4:
		id := d.entry(d.imports, d.index(sum), "import")
		d.keep(len(id))
		return d.packageID(string(id))
	}
	d.fail("the package of a reference is not said")
	return ""
}
