package damllf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf/build"
)

// draw writes a type with everything in it, in short.
func draw(t *Type) string {
	var b strings.Builder
	switch b.WriteString(t.Kind.String()); t.Kind {
	case Numeric:
		fmt.Fprintf(&b, " %d", t.Scale)
	case Record, Variant, Enum, Recursive:
		b.WriteString(" " + t.Ref.Entity)
	case ContractID:
		if t.Ref.Entity != "" {
			b.WriteString(" " + t.Ref.Entity)
		}
	}
	var parts []string
	for _, a := range t.Args {
		parts = append(parts, draw(a))
	}
	for _, f := range t.Fields {
		parts = append(parts, f.Name+": "+draw(f.Type))
	}
	parts = append(parts, t.Constructors...)
	if len(parts) > 0 {
		b.WriteString("(" + strings.Join(parts, ", ") + ")")
	}
	return b.String()
}

func TestResolve(t *testing.T) {
	t.Parallel()
	p, far := decoded(t, id(1), everything()), decoded(t, otherID, other())
	r := resolver(p, far)
	name := Name{Module: "A.B", Entity: "T"}
	got, err := r.Resolve(p.Templates[name].Payload)
	require.NoError(t, err)
	require.Equal(t, "Record T(owner: Party, all: Record All(unit: Unit, bool: Bool, int: Int64, date: Date, time: Timestamp, "+
		"numeric0: Numeric 0, numeric37: Numeric 37, decimal: Numeric 10, party: Party, text: Text, contract: ContractId T, "+
		"maybe: Optional(Optional(Text)), list: List(Int64), textmap: TextMap(Bool), genmap: GenMap(Party, List(Text)), "+
		"record: Record Pair(_1: Int64, _2: Record Pair(_1: Text, _2: Bool)), "+
		"variant: Variant V(Empty: Unit, Amount: Numeric 3, C: Record V.C(amount: Numeric 7)), enum: Enum Color(Red, Green, Blue), "+
		"tree: Record Tree(value: Text, kids: List(Recursive Tree)), far: Record Tuple2(_1: Text, _2: Int64)))", draw(got))
	require.Equal(t, Ref{Package: id(1), Name: name}, got.Ref)
	require.Equal(t, otherID, got.Fields[1].Type.Fields[19].Type.Ref.Package)

	got, err = r.Resolve(p.Templates[Name{Module: "A.B", Entity: "All"}].Key)
	require.NoError(t, err)
	require.Equal(t, "Record Pair(_1: Party, _2: Text)", draw(got))
	require.Equal(t, "Record A.B:Pair", got.String())
}

func TestResolveParametersAndRecursion(t *testing.T) {
	t.Parallel()
	a := build.Var("a")
	local := func(name string, args ...build.Type) build.Type { return build.Local("M:"+name, args...) }
	holder := params(build.Record("Holder", member("x", build.ContractID(a))), "a")
	for want, fields := range map[string][]build.DataType{
		"Record R(x: Record Wrap(v: Record Wrap(v: Int64)))": { // the same definition twice, and no recursion
			params(build.Record("Wrap", member("v", a)), "a"), build.Record("R", member("x", local("Wrap", local("Wrap", build.Int64))))},
		"Record R(x: Record Wrap(v: Recursive R))": {
			params(build.Record("Wrap", member("v", a)), "a"), build.Record("R", member("x", local("Wrap", local("R"))))},
		"Record R(a: Record S(b: Optional(Recursive R)), c: List(Record S(b: Optional(Recursive R))))": {
			build.Record("R", member("a", local("S")), member("c", build.List(local("S")))),
			build.Record("S", member("b", build.Optional(local("R"))))},
		"Record R(x: Record Nest(v: Int64, n: Optional(Recursive Nest)))": { // its argument grows with every turn
			params(build.Record("Nest", member("v", a), member("n", build.Optional(local("Nest", build.List(a))))), "a"),
			build.Record("R", member("x", local("Nest", build.Int64)))},
		"Record R(x: Record Holder(x: ContractId R))":           {holder, build.Record("R", member("x", local("Holder", local("R"))))},
		"Record R(x: Record Holder(x: ContractId NowhereDefd))": {holder, build.Record("R", member("x", local("Holder", local("NowhereDefd"))))},
		"Record R(x: ContractId)":                               {build.Record("R", member("x", build.ContractID(build.Builtin(13))))},
		"Record R(x: Record Swap(l: Text, r: Record Swap(l: Bool, r: Int64)))": { // the same names mean something else within
			params(build.Record("Swap", member("l", build.Var("b")), member("r", build.Var("a"))), "a", "b"),
			params(build.Record("Outer", member("unused", build.Unit)), "a"),
			build.Record("R", member("x", local("Swap", local("Swap", build.Int64, build.Bool), build.Text)))},
		"Record R(x: Record In(a: Record Two(y: Numeric 4)))": {
			params(build.Record("Two", member("y", build.Builtin(5, build.Var("n")))), "n"),
			params(build.Record("In", member("a", local("Two", build.Var("m")))), "m"), build.Record("R", member("x", local("In", build.Nat(4))))},
		"Variant R(Leaf: Text, Node: Record R.Node(l: Recursive R, r: Recursive R))": {
			build.Variant("R", member("Leaf", build.Text), member("Node", local("R.Node"))),
			build.Record("R.Node", member("l", local("R")), member("r", local("R")))},
	} {
		p := decoded(t, id(1), types(fields...))
		got, err := resolver(p).Resolve(named(id(1), "M:R"))
		require.NoError(t, err, want)
		require.Equal(t, want, draw(got))
	}
}

func TestResolveAcrossPackages(t *testing.T) {
	t.Parallel()
	in := func(pkg int) build.Type { return build.Con(build.Ref{Package: id(pkg), Name: "M:R"}) }
	one := decoded(t, id(1), types(build.Record("R", member("two", in(2)), member("three", in(3)))))
	two := decoded(t, id(2), types(build.Record("R", member("one", build.Optional(in(1))), member("three", in(3)))))
	three := decoded(t, id(3), types(build.Record("R", member("one", build.List(in(1))), member("four", in(4)))))
	four := decoded(t, id(4), types(build.Enum("R", "Only")))

	// Who fetches what is missing, and tries again, gets there.
	var missing *MissingError
	_, err := resolver().Resolve(named(id(1), "M:R"))
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{id(1)}, missing.Packages)
	_, err = resolver(one).Resolve(named(id(1), "M:R"))
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{id(2), id(3)}, missing.Packages)
	_, err = resolver(one, three, two).Resolve(named(id(1), "M:R"))
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{id(4)}, missing.Packages)
	require.ErrorContains(t, err, id(4))

	got, err := resolver(one, two, three, four).Resolve(named(id(1), "M:R"))
	require.NoError(t, err)
	require.Equal(t, "Record R(two: Record R(one: Optional(Recursive R), three: Record R(one: List(Recursive R), four: Enum R(Only))), "+
		"three: Record R(one: List(Recursive R), four: Enum R(Only)))", draw(got))
	require.Equal(t, id(1), got.Fields[0].Type.Fields[0].Type.Args[0].Ref.Package, "three types have the same name")

	broken := errors.New("disk on fire")
	r := Resolver{Package: func(string) (*Package, error) { return nil, broken }}
	_, err = r.Resolve(named(id(1), "M:R"))
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, id(1))
}

func TestResolveNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	syn := func(name string, args ...build.Type) build.Type {
		return build.Syn(build.Ref{Name: "M:" + name}, args...)
	}
	for says, typ := range map[string]build.Type{
		"M:R.x: package " + id(1) + " (types 1.0) has no type of data M:Gone": build.Local("M:Gone"),
		"has no synonym M:Gone":                                syn("Gone"),
		"M:P has 1 type parameters and is given 2":             build.Local("M:P", build.Text, build.Text),
		"M:P has 1 type parameters and is given 0":             build.Local("M:P"),
		"M:Alias has 1 type parameters and is given 0":         syn("Alias"),
		"M:R.x: Optional has 1 type parameters and is given 0": build.Builtin(9),
		"M:R.x: Text has 0 type parameters and is given 1":     build.Builtin(7, build.Text),
		"M:R.x: type 16 of the language is no type of data":    build.Builtin(16, build.Text, build.Text),
		"type 1002 of the language is no type of data":         build.Builtin(1002),
		"M:R.x: List: a number stands where a type must be":    build.List(build.Nat(3)),
		"M:R.x: the scale of a Numeric is no number":           build.Builtin(5, build.Text),
		"M:R.x: type parameter a has no definition":            build.Var("a"),
		"M:R.x: M:P.p: type parameter b has no definition":     build.Local("M:P", build.Var("b")),
		"type parameter a is applied to arguments":             build.Var("a", build.Text),
		"M:R.x: a quantified type is no type of data":          build.Forall("a", build.Var("a")),
		"M:R.x: TextMap: a structure is no type of data":       build.TextMap(build.Struct()),
		"M:R.x: the type's parts stand more than 200 deep":     syn("Loop"),
		"Numeric has 1 type parameters and is given 2":         build.Builtin(5, build.Nat(1), build.Nat(2)),
	} {
		p := types(build.Record("R", member("x", typ)), params(build.Record("P", member("p", build.Var("a"))), "a"))
		p.Modules[0].Synonyms = []build.Synonym{{Name: "Loop", Type: syn("Loop")},
			{Name: "Alias", Params: []string{"a"}, Type: build.List(build.Var("a"))}}
		_, err := resolver(decoded(t, id(1), p)).Resolve(named(id(1), "M:R"))
		require.ErrorContains(t, err, says, "%s", says)
	}
	_, err := resolver(decoded(t, id(1), types(internal(build.Record("Fun", member("f", build.Text)))))).Resolve(named(id(1), "M:Fun"))
	require.ErrorContains(t, err, "has no type of data M:Fun")
}

// TestResolveLimitsParts: each type has the next one twice, and so a million parts.
func TestResolveLimitsParts(t *testing.T) {
	t.Parallel()
	var all []build.DataType
	for i := range 20 {
		next := build.Local(fmt.Sprintf("M:D%d", i+1))
		all = append(all, build.Record(fmt.Sprintf("D%d", i), member("l", next), member("r", next)))
	}
	all = append(all, build.Record("D20"))
	p := decoded(t, id(1), types(all...))
	_, err := resolver(p).Resolve(named(id(1), "M:D0"))
	require.ErrorContains(t, err, "more than 100000 parts")
	_, err = resolver(p).Resolve(named(id(1), "M:D6"))
	require.NoError(t, err)

	var constructors []string
	var fields []build.Field
	for i := range 400 {
		constructors = append(constructors, fmt.Sprintf("C%d", i))
		fields = append(fields, member(fmt.Sprintf("f%d", i), build.Local("M:E")))
	}
	p = decoded(t, id(1), types(build.Enum("E", constructors...), build.Record("R", fields...)))
	_, err = resolver(p).Resolve(named(id(1), "M:R"))
	require.ErrorContains(t, err, "M:R.f249: "+id(1)+":M:E: the type has more than 100000 parts")
}
