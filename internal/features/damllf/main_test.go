package damllf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf/build"
	_ "ledgerindexer/internal/tools/hermetic"
)

// otherID is the id of a package that other packages refer to.
var otherID = strings.Repeat("0f", 32)

// archiveChoice is the choice that every template has, with its type in the package itself.
var archiveChoice = build.Choice{Name: "Archive", Consuming: true, Argument: build.Local("A.B:Archive"), Result: build.Unit}

// everything is a package with a definition of every form, and types of every form.
func everything() build.Package {
	holding := build.Ref{Package: otherID, Name: "Api.Holding:Holding"}
	return build.Package{
		Name: "every-thing_1", Version: "1.20.3", Upgrades: strings.Repeat("1", 64),
		Modules: []build.Module{{Name: "Empty"}, {
			Name: "A.B",
			Synonyms: []build.Synonym{
				{Name: "Decimal", Type: build.Numeric(10)},
				{Name: "Listed", Params: []string{"x"}, Type: build.List(build.Var("x"))},
				{Name: "Poly", Type: build.Forall("a", build.Var("a"))},
			},
			Types: []build.DataType{
				build.Record("Archive"),
				build.Record("T", member("owner", build.Party), member("all", build.Local("A.B:All"))),
				build.Record("All",
					member("unit", build.Unit), member("bool", build.Bool), member("int", build.Int64), member("date", build.Date),
					member("time", build.Timestamp), member("numeric0", build.Numeric(0)), member("numeric37", build.Numeric(37)),
					member("decimal", build.Syn(build.Ref{Name: "A.B:Decimal"})), member("party", build.Party), member("text", build.Text),
					member("contract", build.ContractID(build.Local("A.B:T"))), member("maybe", build.Optional(build.Optional(build.Text))),
					member("list", build.Syn(build.Ref{Name: "A.B:Listed"}, build.Int64)), member("textmap", build.TextMap(build.Bool)),
					member("genmap", build.GenMap(build.Party, build.List(build.Text))),
					member("record", build.Local("A.B:Pair", build.Int64, build.Local("A.B:Pair", build.Text, build.Bool))),
					member("variant", build.Local("A.B:V", build.Nat(7))), member("enum", build.Local("A.B:Color")),
					member("tree", build.Local("A.B:Tree", build.Text)),
					member("far", build.Con(build.Ref{Package: otherID, Name: "DA.Types:Tuple2"}, build.Text, build.Int64))),
				params(build.Record("Pair", member("_1", build.Var("a")), member("_2", build.Var("b"))), "a", "b"),
				params(build.Variant("V", member("Empty", build.Unit), member("Amount", build.Numeric(3)),
					member("C", build.Local("A.B:V.C", build.Var("n")))), "n"),
				params(build.Record("V.C", member("amount", build.Builtin(5, build.Var("n")))), "n"),
				build.Enum("Color", "Red", "Green", "Blue"),
				params(build.Record("Tree", member("value", build.Var("a")), member("kids", build.List(build.Local("A.B:Tree", build.Var("a"))))), "a"),
				internal(build.Record("Dictionary", member("m", build.Struct(member("x", build.Text))),
					member("f", build.Forall("a", build.Var("f", build.Var("a")))))),
			},
			Templates: []build.Template{
				{Name: "T", Choices: []build.Choice{archiveChoice,
					{Name: "Peek", Argument: build.Local("A.B:All"), Result: build.Optional(build.Local("A.B:Color"))}},
					Implements: []build.Ref{holding, {Name: "A.B:I"}}},
				{Name: "All", Key: pointer(build.Local("A.B:Pair", build.Party, build.Text)), Choices: []build.Choice{archiveChoice}},
			},
			Interfaces: []build.Interface{{
				Name: "I", View: build.Local("A.B:Pair", build.Text, build.Text), Choices: []build.Choice{archiveChoice},
				Requires: []build.Ref{holding},
			}},
			Values: [][]byte{[]byte("no message at all")},
		}},
	}
}

// other is the package that everything refers to.
func other() build.Package {
	return build.Package{Name: "other", Version: "1.0.0", Modules: []build.Module{{Name: "DA.Types", Types: []build.DataType{
		params(build.Record("Tuple2", member("_1", build.Var("a")), member("_2", build.Var("b"))), "a", "b"),
	}}}}
}

func member(name string, t build.Type) build.Field { return build.Field{Name: name, Type: t} }

func params(t build.DataType, names ...string) build.DataType {
	t.Params = names
	return t
}

func internal(t build.DataType) build.DataType {
	t.Internal = true
	return t
}

func pointer[T any](v T) *T { return &v }

// types is a package whose module M has these types.
func types(types ...build.DataType) build.Package {
	return build.Package{Name: "types", Version: "1.0", Modules: []build.Module{{Name: "M", Types: types}}}
}

// id is an id that a package could have.
func id(n int) string { return fmt.Sprintf("%064x", n) }

// decoded is the package under an id of choice, which packages that refer to each other need.
func decoded(t testing.TB, id string, p build.Package) *Package {
	t.Helper()
	_, payload := p.Encode()
	decoded, err := decode(id, payload)
	require.NoError(t, err)
	return decoded
}

// resolver resolves types of these packages.
func resolver(packages ...*Package) Resolver {
	return Resolver{Package: func(id string) (*Package, error) {
		for _, p := range packages {
			if p.ID == id {
				return p, nil
			}
		}
		return nil, fmt.Errorf("look into the table: %w", ErrNoPackage)
	}}
}

// named is the type expression of a data type without parameters.
func named(pkg, name string) *TypeExpr {
	module, entity, _ := strings.Cut(name, ":")
	return &TypeExpr{Form: Constructor, Ref: Ref{Package: pkg, Name: Name{Module: module, Entity: entity}}}
}
