package damllf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf/build"
)

func TestCompatible(t *testing.T) {
	t.Parallel()
	a, text, local := build.Var("a"), build.Text, build.Local
	r := func(fields ...build.Field) []build.DataType { return []build.DataType{build.Record("R", fields...)} }
	in := func(typ build.Type, more ...build.DataType) []build.DataType {
		return append(r(member("x", typ)), more...)
	}
	s := func(fields ...build.Field) build.DataType { return build.Record("S", fields...) }
	x, y, z := member("x", text), member("y", build.Int64), member("z", build.Optional(text))
	for _, test := range []struct {
		older, newer []build.DataType
		says         string // "" where they are compatible
	}{
		{r(), r(), ""},
		{r(x, y), r(x, y), ""},
		{r(x), r(x, z, member("zz", build.Optional(local("M:R")))), ""},
		{r(x), r(x, y), "y: the field was added and is not Optional, but Int64"},
		{r(x, y), r(x), "y: the field is gone"},
		{r(x, y), r(y, x), "x: the field was number 1 and became number 2"},
		{r(x, y), r(x, z, y), "y: the field was number 2 and became number 3"},
		{r(x), r(member("x", build.Int64)), "x: Text became Int64"},
		{r(x), r(member("x", build.Optional(text))), "x: Text became Optional of Text"},
		{in(build.Numeric(10)), in(build.Numeric(9)), "x: Numeric 10 became Numeric 9"},
		{in(build.ContractID(local("M:R"))), in(build.ContractID(local("M:S"))), "x: ContractId of M:R became ContractId of M:S"},
		{in(build.Optional(text)), in(build.Optional(build.Party)), "x: Text became Party"},
		{in(build.List(local("M:S")), s(x)), in(build.List(local("M:S")), s(x, z)), ""},
		{in(build.List(local("M:S")), s(x)), in(build.List(local("M:S")), s(x, y)), "x[].y: the field was added and is not Optional"},
		{in(build.TextMap(local("M:S")), s(x)), in(build.TextMap(local("M:S")), s(y)), "x[].x: the field is gone"},
		{in(build.GenMap(text, y.Type)), in(build.GenMap(y.Type, y.Type)), "x[key]: Text became Int64"},
		{in(build.GenMap(text, text)), in(build.GenMap(text, y.Type)), "x[]: Text became Int64"},
		{in(build.GenMap(text, text)), in(build.TextMap(text)), "x: GenMap from Text to Text became TextMap of Text"},
		{in(local("M:S"), s(x)), in(local("M:Q"), build.Record("Q", x)), "x: Record M:S became Record M:Q"},
		{in(local("M:S", text), params(s(member("v", a)), "a")), in(local("M:S", y.Type), params(s(member("v", a)), "a")),
			"x.v: Text became Int64"},
		{in(local("M:E"), build.Enum("E", "A", "B")), in(local("M:E"), build.Enum("E", "A", "B", "C")), ""},
		{in(local("M:E"), build.Enum("E", "A", "B")), in(local("M:E"), build.Enum("E", "A")), "x.B: the constructor is gone"},
		{in(local("M:E"), build.Enum("E", "A", "B")), in(local("M:E"), build.Enum("E", "B", "A")), "x.A: the constructor was number 1"},
		{in(local("M:V"), build.Variant("V", x)), in(local("M:V"), build.Variant("V", x, y)), ""},
		{in(local("M:V"), build.Variant("V", x, y)), in(local("M:V"), build.Variant("V", x)), "x.y: the constructor is gone"},
		{in(local("M:V"), build.Variant("V", x)), in(local("M:V"), build.Variant("V", member("x", y.Type))), "x.x: Text became Int64"},
		{in(local("M:V"), build.Variant("V", x)), in(local("M:V"), build.Enum("V", "x")), "x: Variant M:V became Enum M:V"},
		{in(build.Optional(local("M:R"))), in(build.Optional(local("M:R"))), ""},
		{in(build.Optional(local("M:R"))), in(build.Optional(local("M:S")), s()), "x: Recursive M:R became Record M:S"},
		{[]build.DataType{build.Record("R")}, []build.DataType{build.Enum("R")}, "the type itself: Record M:R became Enum M:R"},
	} {
		resolve := func(n int, all []build.DataType) *Type {
			typ, err := resolver(decoded(t, id(n), types(all...))).Resolve(named(id(n), "M:R"))
			require.NoError(t, err)
			return typ
		}
		err := Compatible(resolve(1, test.older), resolve(2, test.newer))
		if test.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, test.says)
		}
	}
}
