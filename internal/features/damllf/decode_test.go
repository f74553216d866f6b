package damllf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"ledgerindexer/internal/features/damllf/build"
	"ledgerindexer/internal/tools/brief"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	styles := []build.Style{
		{}, {Inline: true}, {Applications: true}, {Inline: true, Applications: true}, {Unpacked: true}, {Unknown: true},
		{Inline: true, Applications: true, Unpacked: true, Unknown: true},
	}
	id, payload := everything().Encode()
	want, err := Decode(id, payload)
	require.NoError(t, err)
	for _, minor := range []string{"1", "2", "3", "dev"} {
		for _, imports := range [][]string{nil, {otherID}, {strings.Repeat("2", 64), otherID}} {
			for _, style := range styles {
				p := everything()
				p.Minor, p.Style, p.Imports = minor, style, imports
				_, payload := p.Encode()
				got, err := decode(want.ID, payload)
				require.NoError(t, err, "%s %v %+v", minor, imports, style)
				expected := *want
				expected.Language = "2." + minor
				require.Equal(t, &expected, got, "%s %v %+v", minor, imports, style)
			}
		}
	}
}

func TestDecodedPackage(t *testing.T) {
	t.Parallel()
	id, payload := everything().Encode()
	p, err := Decode(id, payload)
	require.NoError(t, err)

	require.Equal(t, []string{id, "2.1", "every-thing_1", "1.20.3", strings.Repeat("1", 64)},
		[]string{p.ID, p.Language, p.Name, p.Version, p.Upgrades})
	local := func(entity string) Ref { return Ref{Package: id, Name: Name{Module: "A.B", Entity: entity}} }
	name := func(entity string) Name { return local(entity).Name }
	con := func(entity string, args ...*TypeExpr) *TypeExpr {
		return &TypeExpr{Form: Constructor, Ref: local(entity), Args: args}
	}
	builtin := func(n Builtin, args ...*TypeExpr) *TypeExpr {
		return &TypeExpr{Form: Primitive, Builtin: n, Args: args}
	}
	variable := func(name string) *TypeExpr { return &TypeExpr{Form: Variable, Var: name} }

	require.Len(t, p.DataTypes, 8, "what is internal is left out, and so are interfaces")
	require.NotContains(t, p.DataTypes, name("Dictionary"))
	require.Equal(t, &DataType{Kind: Record}, p.DataTypes[name("Archive")])
	require.Equal(t, &DataType{Kind: Enum, Constructors: []string{"Red", "Green", "Blue"}}, p.DataTypes[name("Color")])
	require.Equal(t, &DataType{Kind: Variant, Params: []string{"n"}, Fields: []FieldExpr{
		{"Empty", builtin(0)}, {"Amount", builtin(5, &TypeExpr{Form: Number, Nat: 3})}, {"C", con("V.C", variable("n"))},
	}}, p.DataTypes[name("V")])
	require.Equal(t, &DataType{Kind: Record, Params: []string{"a"}, Fields: []FieldExpr{
		{"value", variable("a")}, {"kids", builtin(10, con("Tree", variable("a")))},
	}}, p.DataTypes[name("Tree")])

	holding := Ref{Package: otherID, Name: Name{Module: "Api.Holding", Entity: "Holding"}}
	archive := Choice{Consuming: true, Argument: con("Archive"), Result: builtin(0)}
	require.Equal(t, map[Name]*Template{
		name("T"): {Payload: con("T"), Choices: map[string]Choice{
			"Archive": archive, "Peek": {Argument: con("All"), Result: builtin(9, con("Color"))},
		}, Implements: []Ref{holding, local("I")}},
		name("All"): {Payload: con("All"), Key: con("Pair", builtin(6), builtin(7)), Choices: map[string]Choice{"Archive": archive}},
	}, p.Templates)
	require.Equal(t, map[Name]*Interface{name("I"): {
		View: con("Pair", builtin(7), builtin(7)), Choices: map[string]Choice{"Archive": archive}, Requires: []Ref{holding},
	}}, p.Interfaces)
	require.Equal(t, id+":A.B:I", local("I").String())
}

func TestDecodeRefusesOtherBytes(t *testing.T) {
	t.Parallel()
	id, payload := everything().Encode()
	_, err := Decode(id, payload[:len(payload)-1])
	require.ErrorIs(t, err, ErrHash)
	require.ErrorContains(t, err, id)
	_, err = Decode(strings.ToUpper(id), payload)
	require.ErrorIs(t, err, ErrHash)

	language1 := message{}.bytes(3, "15").bytes(2, "another schema")
	_, err = Decode(build.ID(language1), language1)
	require.ErrorIs(t, err, ErrLanguage1)
}

// message is a message as it is on the wire.
type message []byte

func (m message) bytes(num protowire.Number, value string) message {
	return protowire.AppendString(protowire.AppendTag(m, num, protowire.BytesType), value)
}

func (m message) sub(num protowire.Number, value message) message { return m.bytes(num, string(value)) }

func (m message) number(num protowire.Number, n int64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, num, protowire.VarintType), uint64(n))
}

// TestDecodeNamesWhatIsWrong adds something bad to a small package: it names it and says where it is.
func TestDecodeNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	text := []string{"name", "1.0", "M", "X", "1x", "", "ab-c", id(7), "ü", strings.Repeat("n", 1001), "a.b", "a", strings.Repeat("n", 500)}
	const name, version, dottedM, dottedX = 0, 1, 0, 1
	whole := func(metadata message, rest message) message {
		var p message
		for _, s := range text {
			p = p.bytes(2, s)
		}
		segment := func(i byte) { p = p.sub(3, message{}.bytes(1, string([]byte{i}))) }
		segment(2)                        // 0: M
		segment(3)                        // 1: X
		p = p.sub(3, nil)                 // 2: no segments
		segment(4)                        // 3: no name
		segment(99)                       // 4: no such string
		p = p.sub(3, message{10, 1, 128}) // 5: cut off
		p = p.sub(3, message{10, 2, 12, 12})
		return message{}.bytes(3, "1").sub(4, append(p.sub(4, metadata), rest...))
	}
	ok := message{}.number(1, name).number(2, version)
	in := func(rest message) message { return whole(ok, rest) }
	// module is one with these definitions, in a package with a table of these types.
	module := func(m message, table ...message) message {
		rest := message{}.sub(1, m)
		for _, t := range table {
			rest = rest.sub(5, t)
		}
		return in(rest)
	}
	dataType := func(m message, table ...message) message {
		return module(message{}.sub(4, append(message{}.number(2, dottedX).number(4, 1), m...)), table...)
	}
	// field is a record with a field of this type.
	field := func(typ message, table ...message) message {
		return dataType(message{}.sub(5, message{}.sub(1, message{}.sub(2, typ).number(3, 11))), table...)
	}
	unit := message{}.sub(3, nil)
	self := message{}.sub(1, message{}.sub(1, message{}.sub(1, nil))).number(2, dottedX)
	of := func(pkg message) message {
		return message{}.sub(2, message{}.sub(1, message{}.sub(1, message{}.sub(1, pkg))))
	}
	template := func(m message) message { return module(message{}.sub(6, append(message{}.number(1, dottedX), m...))) }
	choice := message{}.number(2, 3).sub(6, message{}.sub(2, unit)).sub(8, unit)
	twice := func(num protowire.Number, m message) message { return message{}.sub(num, m).sub(num, m) }
	interned := message{}.number(8, 0)

	_, err := decode("p", field(unit))
	require.NoError(t, err, "what the bad ones are made of is good")
	_, err = decode("p", field(message{}.sub(2, message{}.sub(1, self))))
	require.NoError(t, err)
	_, err = decode("p", template(message{}.sub(6, choice)))
	require.NoError(t, err)

	for says, payload := range map[string]message{
		"the payload holds no package":                     {},
		`"" is no version of Daml-LF 2`:                    message{}.sub(4, nil),
		`"1;2" is no version of Daml-LF 2`:                 message{}.bytes(3, "1;2").sub(4, nil),
		"field 3 has wire type 0, not 2":                   message{}.number(3, 1),
		"byte 1 of 2: it is cut off":                       {3<<3 | 2, 5},
		"field 3 is a group":                               {3<<3 | 3, 5},
		"byte 0 of 1: no field of a message":               {0},
		"metadata: there is none":                          message{}.bytes(3, "1").sub(4, nil),
		"metadata: there is no interned string 77":         whole(message{}.number(1, 77), nil),
		`metadata: "" is no name of a package`:             whole(message{}.number(1, 5), nil),
		`metadata: "ü" is no name of a package`:            whole(message{}.number(1, 8), nil),
		`metadata: "name" is no version of a package`:      whole(message{}.number(1, name), nil),
		`metadata: "name" is no id of a package`:           whole(ok.sub(3, message{}.number(1, name)), nil),
		`metadata: "a" is no id of a package`:              whole(ok.sub(3, message{}.number(1, 11)), nil),
		"metadata: field 1 is -1":                          whole(message{}.number(1, -1), nil),
		"metadata: field 1 is 2147483648":                  whole(message{}.number(1, 1<<31), nil),
		"metadata: interned string 9 has 1001 bytes":       whole(message{}.number(1, 9), nil),
		"field 2 has wire type 0, not 2":                   in(message{}.number(2, 1)),
		"field 1 has wire type 0, not 2":                   in(message{}.number(1, 1)),
		"module 0: there is no interned dotted name 50":    module(message{}.number(1, 50)),
		"interned dotted name 2: it has no segments":       module(message{}.number(1, 2)),
		`interned string 4 is "1x", which is no name`:      module(message{}.number(1, 3)),
		"interned dotted name 4: there is no interned str": module(message{}.number(1, 4)),
		"interned dotted name 5: field 1: it is cut off":   module(message{}.number(1, 5)),
		"interned dotted name 6: it is longer than a name": module(message{}.number(1, 6)),
		"module M: field 4 has wire type 0":                module(message{}.number(4, 1)),
		"module M: data type X: it is neither":             dataType(nil),
		"data type X: it is neither a record nor":          dataType(message{}.sub(8, nil)),
		"module M: data type X: field 5 has wire type 0":   dataType(message{}.number(5, 1)),
		"data type X: it is there twice": module(twice(4,
			message{}.number(2, dottedX).number(4, 1).sub(5, nil))),
		"data type X: type parameter a is there twice": dataType(twice(3, message{}.number(3, 11)).sub(5, nil)),
		"data type X: field a is there twice": dataType(message{}.sub(5,
			twice(1, message{}.sub(2, unit).number(3, 11)))),
		"data type X: constructor a is there twice":        dataType(message{}.sub(7, message{}.bytes(2, "\x0b\x0b"))),
		"field 0: interned string 10 is \"a.b\"":           dataType(message{}.sub(5, message{}.sub(1, message{}.number(3, 10)))),
		"module M: data type X: field a: there is no type": field(nil),
		"field a: there is no type, or one of a form":      field(message{}.sub(17, nil)),
		"field a: 38 is no scale of a number":              field(message{}.number(6, 76)),
		"field a: -1 is no scale of a number":              field(message{}.number(6, 1)),
		"field a: field 3 has wire type 0, not 2":          field(message{}.number(3, 1)),
		"field a: there is no interned type 0":             field(interned),
		"field a: field 8 has wire type 2, not 0":          field(message{}.sub(8, nil)),
		"field a: the package of a reference is not said":  field(of(nil)),
		"field a: there is no import 0":                    field(of(message{}.number(4, 0))),
		`field a: "name" is no id of a package`:            field(of(message{}.number(3, 0))),
		"field a: a type is applied that takes no":         field(message{}.sub(9, message{}.sub(1, message{}.number(6, 2)).sub(2, unit))),
		"interned type 0: interned type 0 is used before":  field(interned, interned),
		"template X: choice X: it is there twice":          template(twice(6, choice)),
		"template X: choice X: there is no type":           template(message{}.sub(6, message{}.number(2, 3))),
		"template X: key: there is no type":                template(message{}.sub(9, nil)),
		"template X: implements 0: the package of a":       template(message{}.sub(10, nil)),
		"template X: it is there twice":                    module(twice(6, message{}.number(1, dottedX))),
		"interface X: view: there is no type":              module(message{}.sub(8, message{}.number(2, dottedX))),
		"interface X: requires 0: the package of a reference": module(message{}.sub(8,
			message{}.number(2, dottedX).sub(6, unit).sub(7, nil))),
		"synonym X: there is no type": module(message{}.sub(3, message{}.number(2, dottedX))),
		"field a: interned type 1: interned type 2 is used before": field(message{}.number(8, 1), unit,
			message{}.sub(3, message{}.number(1, 10).sub(2, message{}.number(8, 2))), unit),
	} {
		_, err := decode("p", payload)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "decode package p: ")
	}
}

// TestDecodeReadsOnDemand: a table of types also has those of expressions, and what nothing of data refers to is not
// looked at.
func TestDecodeReadsOnDemand(t *testing.T) {
	t.Parallel()
	p := types(build.Record("R", member("x", build.Optional(build.Text))))
	_, payload := p.Encode()
	var d decoder
	body := message(d.last(payload, 4))
	body = body.bytes(5, "no type").sub(5, message{}.number(8, 1e6)).bytes(3, "no name").bytes(7, "no expression")
	got, err := decode(id(1), message{}.bytes(3, "1").sub(4, body))
	require.NoError(t, err)
	require.Equal(t, decoded(t, id(1), p), got)
}

// TestDecodeAppliesATypeTwice: what a type of the table is applied to does not show in another use of it.
func TestDecodeAppliesATypeTwice(t *testing.T) {
	t.Parallel()
	four := params(build.Record("Four", member("d", build.Var("d"))), "a", "b", "c", "d")
	p := types(four, build.Record("R", member("x", build.Text), member("y", build.Int64),
		member("z", build.Local("M:Four", build.Unit, build.Unit, build.Unit)))) // types 0 to 4: d, Text, Int64, Unit, Four
	known, err := decode(id(1), appended(p, 2, func(i int) message { return application(4, int64(i-4)) }))
	require.NoError(t, err)
	r := resolver(known)
	for i, want := range []string{"Record Four(d: Text)", "Record Four(d: Int64)"} {
		got, err := r.Resolve(known.DataTypes[Name{Module: "M", Entity: "M"}].Fields[i].Type)
		require.NoError(t, err)
		require.Equal(t, want, draw(got))
	}
}

// TestDecodeSurvivesDamage cuts a package off everywhere and alters every byte of it.
func TestDecodeSurvivesDamage(t *testing.T) {
	t.Parallel()
	step := 3
	if brief.Run() {
		step = 31
	}
	for _, style := range []build.Style{{}, {Inline: true, Applications: true, Unpacked: true, Unknown: true}} {
		p := everything()
		p.Style = style
		_, payload := p.Encode()
		var d decoder
		body := d.last(payload, 4)
		for i := 0; i < len(body); i += step {
			_, _ = decode("p", message{}.bytes(3, "1").sub(4, body[:i]))
			_, err := decode("p", payload[:i])
			require.Error(t, err)
			for _, b := range []byte{0xff, body[i] ^ 1, body[i] + 8} {
				was := body[i]
				body[i] = b
				_, _ = decode("p", payload)
				body[i] = was
			}
		}
	}
}
