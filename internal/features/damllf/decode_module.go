package damllf

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// module reads the definitions of a module. Values and exceptions are skipped.
func (d *decoder) module(message []byte) {
	name := d.dotted(d.number(message, 1))
	d.named(name)
	for f := range d.fields(message) {
		switch f.num {
		case 3:
			define(d, d.p.synonyms, name, "synonym", f, 2, d.synonym)
		case 4:
			define(d, d.p.DataTypes, name, "data type", f, 2, d.dataType)
		case 6:
			define(d, d.p.Templates, name, "template", f, 1, d.template)
		case 8:
			define(d, d.p.Interfaces, name, "interface", f, 2, d.interfaceType)
		}
	}
}

// define reads a definition and adds it to those of its kind. Its name is in the given field.
func define[T any](
	d *decoder, all map[Name]*T, module, kind string, f field, nameIn protowire.Number, read func(Name, []byte) *T,
) {
	if !d.is(f, protowire.BytesType) {
		return
	}
	d.enter(kind, -1)
	name := Name{Module: module, Entity: d.dotted(d.number(f.value, nameIn))}
	d.named(name.Entity)
	if definition := read(name, f.value); definition != nil {
		if all[name] != nil {
			d.fail("it is there twice")
		}
		all[name] = definition
		d.keep(512)
	}
	d.leave()
}

func (d *decoder) synonym(_ Name, message []byte) *synonym {
	return &synonym{params: d.params(message), body: d.typeIn(message, 4)}
}

// dataType reads a record, a variant or an enum; nil if its values can't be stored on the ledger.
func (d *decoder) dataType(_ Name, message []byte) *DataType {
	if d.number(message, 4) == 0 {
		return nil
	}
	t := &DataType{Params: d.params(message)}
	sum := d.oneOf(message, 5, 6, 7, 8)
	if sum.num != 0 {
		d.is(sum, protowire.BytesType)
	}
	switch sum.num {
	case 5:
		t.Kind, t.Fields = Record, d.typedFields(sum.value, "field")
	case 6:
		t.Kind, t.Fields = Variant, d.typedFields(sum.value, "constructor")
	case 7:
		t.Kind = Enum
		for i := range d.numbers(sum.value, 2) {
			t.Constructors = append(t.Constructors, d.identifier(i))
			d.keep(16)
		}
		d.distinct("constructor", t.Constructors)
	default:
		d.fail("it is neither a record nor a variant nor an enum")
	}
	return t
}

func (d *decoder) params(message []byte) []string {
	var params []string
	for param := range d.each(message, 3) {
		params = append(params, d.identifier(d.number(param, 3)))
		d.keep(16)
	}
	d.distinct("type parameter", params)
	return params
}

// typedFields reads the fields of a record, or the constructors of a variant.
func (d *decoder) typedFields(message []byte, kind string) []FieldExpr {
	var fields []FieldExpr
	var names []string
	for f := range d.each(message, 1) {
		d.enter(kind, len(fields))
		name := d.identifier(d.number(f, 3))
		d.named(name)
		fields = append(fields, FieldExpr{Name: name, Type: d.typeIn(f, 2)})
		names = append(names, name)
		d.keep(48)
		d.leave()
	}
	d.distinct(kind, names)
	return fields
}

func (d *decoder) template(name Name, message []byte) *Template {
	t := &Template{
		Payload: &TypeExpr{Form: Constructor, Ref: Ref{Package: d.p.ID, Name: name}},
		Choices: d.choices(message, 6),
	}
	if key := d.last(message, 9); key != nil {
		d.enter("key", -1)
		t.Key = d.typeIn(key, 1)
		d.leave()
	}
	for implements := range d.each(message, 10) {
		d.enter("implements", len(t.Implements))
		t.Implements = append(t.Implements, d.ref(d.last(implements, 1)))
		d.keep(64)
		d.leave()
	}
	return t
}

func (d *decoder) interfaceType(_ Name, message []byte) *Interface {
	d.enter("view", -1)
	t := &Interface{View: d.typeIn(message, 6)}
	d.leave()
	t.Choices = d.choices(message, 5)
	for requires := range d.each(message, 7) {
		d.enter("requires", len(t.Requires))
		t.Requires = append(t.Requires, d.ref(requires))
		d.keep(64)
		d.leave()
	}
	return t
}

// choices reads the choices of a template or an interface.
func (d *decoder) choices(message []byte, num protowire.Number) map[string]Choice {
	choices := map[string]Choice{}
	for c := range d.each(message, num) {
		d.enter("choice", len(choices))
		name := d.identifier(d.number(c, 2))
		d.named(name)
		if _, ok := choices[name]; ok {
			d.fail("it is there twice")
		}
		choices[name] = Choice{
			Consuming: d.number(c, 3) != 0, Argument: d.typeIn(d.last(c, 6), 2), Result: d.typeIn(c, 8),
		}
		d.keep(128)
		d.leave()
	}
	return choices
}

// distinct refuses a name that occurs twice.
func (d *decoder) distinct(kind string, names []string) {
	sorted := slices.Sorted(slices.Values(names))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			d.fail("%s %s is there twice", kind, sorted[i])
		}
	}
}
