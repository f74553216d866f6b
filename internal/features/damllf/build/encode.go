package build

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Encode returns the payload of the package, as a participant serves it, and its id.
func (p Package) Encode() (id string, payload []byte) {
	e := encoder{p: p, textOf: map[string]int{}, nameOf: map[string]int{}, typeOf: map[string]int{}}
	minor := p.Minor
	if minor == "" {
		minor = "1"
	}
	m := e.message()
	m.bytes(3, []byte(minor))
	m.bytes(4, e.encode())
	payload = m.done()
	return ID(payload), payload
}

// ID returns the id of the package that has this payload.
func ID(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// encoder fills the tables of a package while it encodes what refers to them.
type encoder struct {
	p                      Package
	texts                  []string
	names, types           [][]byte
	textOf, nameOf, typeOf map[string]int
}

func (e *encoder) encode() []byte {
	meta := e.message()
	meta.number(1, e.text(e.p.Name))
	meta.number(2, e.text(e.p.Version))
	if e.p.Upgrades != "" {
		upgraded := e.message()
		upgraded.number(1, e.text(e.p.Upgrades))
		meta.bytes(3, upgraded.done())
	}
	var modules [][]byte
	for _, m := range e.p.Modules {
		modules = append(modules, e.module(m))
	}
	p := e.message()
	p.all(1, modules)
	for _, s := range e.texts {
		p.bytes(2, []byte(s))
	}
	p.all(3, e.names)
	p.bytes(4, meta.done())
	p.all(5, e.types)
	if e.p.Imports != nil {
		imports := e.message()
		for _, id := range e.p.Imports {
			imports.bytes(1, []byte(id))
		}
		p.bytes(9, imports.done())
	}
	return p.done()
}

func (e *encoder) module(m Module) []byte {
	out := e.message()
	out.number(1, e.name(m.Name))
	for _, s := range m.Synonyms {
		def := e.message()
		def.number(2, e.name(s.Name))
		e.params(def, 3, s.Params)
		e.typ(def, 4, s.Type)
		out.bytes(3, def.done())
	}
	for _, t := range m.Types {
		out.bytes(4, e.dataType(t))
	}
	for _, i := range m.Interfaces {
		out.bytes(4, e.dataType(DataType{Name: i.Name, Internal: true, form: 8}))
	}
	out.all(5, m.Values)
	for _, t := range m.Templates {
		out.bytes(6, e.template(t))
	}
	for _, i := range m.Interfaces {
		def := e.message()
		def.number(2, e.name(i.Name))
		e.choices(def, 5, i.Choices)
		e.typ(def, 6, i.View)
		for _, r := range i.Requires {
			def.bytes(7, e.ref(r))
		}
		out.bytes(8, def.done())
	}
	return out.done()
}

func (e *encoder) dataType(t DataType) []byte {
	out := e.message()
	out.number(2, e.name(t.Name))
	e.params(out, 3, t.Params)
	if !t.Internal {
		out.number(4, 1)
	}
	body := e.message()
	for _, f := range t.fields {
		body.bytes(1, e.field(f))
	}
	if t.form == 7 {
		var constructors []int
		for _, c := range t.constructors {
			constructors = append(constructors, e.text(c))
		}
		body.numbers(2, constructors)
	}
	if t.form != 0 {
		out.bytes(protowire.Number(t.form), body.done())
	}
	return out.done()
}

func (e *encoder) field(f Field) []byte {
	out := e.message()
	e.typ(out, 2, f.Type)
	out.number(3, e.text(f.Name))
	return out.done()
}

func (e *encoder) params(out *message, num protowire.Number, names []string) {
	for _, name := range names {
		param := e.message()
		param.number(3, e.text(name))
		out.bytes(num, param.done())
	}
}

// expression is where one must be: the value of type Unit.
var expression = []byte{5 << 3, 0}

func (e *encoder) template(t Template) []byte {
	out := e.message()
	out.number(1, e.name(t.Name))
	out.bytes(4, expression)
	e.choices(out, 6, t.Choices)
	out.bytes(7, expression)
	if t.Key != nil {
		key := e.message()
		e.typ(key, 1, *t.Key)
		key.bytes(3, expression)
		key.bytes(4, expression)
		out.bytes(9, key.done())
	}
	for _, r := range t.Implements {
		implements := e.message()
		implements.bytes(1, e.ref(r))
		implements.bytes(2, nil)
		out.bytes(10, implements.done())
	}
	return out.done()
}

func (e *encoder) choices(out *message, num protowire.Number, choices []Choice) {
	for _, c := range choices {
		choice := e.message()
		choice.number(2, e.text(c.Name))
		if c.Consuming {
			choice.number(3, 1)
		}
		choice.bytes(4, expression)
		binder := e.message()
		e.typ(binder, 2, c.Argument)
		binder.number(3, e.text("arg"))
		choice.bytes(6, binder.done())
		e.typ(choice, 8, c.Result)
		choice.bytes(9, expression)
		out.bytes(num, choice.done())
	}
}

// typ writes a type into a field, unless it is none.
func (e *encoder) typ(out *message, num protowire.Number, t Type) {
	if t.form == 0 {
		return
	}
	encoded := e.sum(t)
	if !e.p.Style.Inline {
		i, ok := e.typeOf[string(encoded)]
		if !ok {
			i = len(e.types)
			e.types = append(e.types, encoded)
			e.typeOf[string(encoded)] = i
		}
		interned := e.message()
		interned.member(8, uint64(i))
		encoded = interned.done()
	}
	out.bytes(num, encoded)
}

func (e *encoder) sum(t Type) []byte {
	out, body := e.message(), e.message()
	if e.p.Style.Applications && t.form != 4 && len(t.args) > 0 {
		left, last := t, len(t.args)-1
		left.args = t.args[:last]
		e.typ(body, 1, left)
		e.typ(body, 2, t.args[last])
		out.bytes(9, body.done())
		return out.done()
	}
	switch t.form {
	case 1:
		body.number(3, e.text(t.name))
	case 2, 7:
		body.bytes(1, e.ref(t.ref))
	case 3:
		body.number(1, int(t.n))
	case 4:
		e.params(body, 1, []string{t.name})
	case 5:
		for _, f := range t.fields {
			body.bytes(1, e.field(f))
		}
	case 6:
		out.member(6, protowire.EncodeZigZag(t.n))
		return out.done()
	}
	for _, a := range t.args {
		e.typ(body, 2, a)
	}
	out.bytes(protowire.Number(t.form), body.done())
	return out.done()
}

func (e *encoder) ref(r Ref) []byte {
	pkg := e.message()
	if i := slices.Index(e.p.Imports, r.Package); i >= 0 {
		pkg.member(4, uint64(i))
	} else if r.Package != "" {
		pkg.member(3, uint64(e.text(r.Package)))
	} else {
		pkg.bytes(1, nil)
	}
	moduleName, name, _ := strings.Cut(r.Name, ":")
	module := e.message()
	module.bytes(1, pkg.done())
	module.number(2, e.name(moduleName))
	out := e.message()
	out.bytes(1, module.done())
	out.number(2, e.name(name))
	return out.done()
}

func (e *encoder) text(s string) int {
	i, ok := e.textOf[s]
	if !ok {
		i = len(e.texts)
		e.texts = append(e.texts, s)
		e.textOf[s] = i
	}
	return i
}

func (e *encoder) name(dotted string) int {
	i, ok := e.nameOf[dotted]
	if !ok {
		var segments []int
		for s := range strings.SplitSeq(dotted, ".") {
			segments = append(segments, e.text(s))
		}
		name := e.message()
		name.numbers(1, segments)
		i = len(e.names)
		e.names = append(e.names, name.done())
		e.nameOf[dotted] = i
	}
	return i
}
