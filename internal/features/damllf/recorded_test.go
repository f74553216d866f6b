package damllf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/recorded"
)

const (
	recordedShape = "Variant Shape(Circle: Numeric 10, Rect: Record Pair(fst: Int64, snd: Int64), Empty: Unit, " +
		"Tagged: Enum Color(Red, Green, Blue), Rec: Record Shape.Rec(inner: List(Recursive Shape), label: Text), " +
		"Maybe: Optional(Optional(Int64)))"
	recordedFields = "owner: Party, obs: List(Party), i: Int64, n0: Numeric 0, n2: Numeric 2, n10: Numeric 10, " +
		"n37: Numeric 37, t: Text, b: Bool, u: Unit, d: Date, ts: Timestamp, oi: Optional(Int64), " +
		"ooi: Optional(Optional(Int64)), oooi: Optional(Optional(Optional(Int64))), ou: Optional(Unit), " +
		"ol: Optional(List(Int64)), li: List(Int64), lli: List(List(Int64)), lo: List(Optional(Text)), " +
		"loo: List(Optional(Optional(Text))), tm: TextMap(Int64), tmo: TextMap(Optional(Int64)), gm: GenMap(Int64, Text), " +
		"gmp: GenMap(Record Pair(fst: Int64, snd: Text), " + recordedShape + "), gmt: GenMap(Text, TextMap(Numeric 10)), " +
		"p: Record Pair(fst: Int64, snd: Optional(Text)), sh: " + recordedShape + ", c: Enum Color(Red, Green, Blue), " +
		"oc: Optional(ContractId Everything)"
	recordedOld = "Record Everything(" + recordedFields + ")"
	recordedNew = "Record Everything(" + recordedFields + ", extra: Optional(Text), extraNum: Optional(Numeric 10))"
	// archiveOf is where the argument of Archive is defined: a package of Daml's own, which the recording does not have.
	archiveOf = "9e70a8b3510d617f8a136213f33d6a903a10ca0eeec76bb06ba55d1ed9680f69"
)

// Packages of a real participant, as its compiler made them: every kind of value, a choice's argument and result, a
// contract's key, and a version that adds fields, a choice and a template to another.
func TestRecordedPackages(t *testing.T) {
	t.Parallel()
	var all []*Package
	for id, content := range recorded.Packages(t) {
		p, err := Decode(id, content)
		require.NoError(t, err)
		require.Equal(t, id, p.ID)
		all = append(all, p)
	}
	r := resolver(all...)
	types := func(e *TypeExpr) string {
		resolved, err := r.Resolve(e)
		require.NoError(t, err)
		return draw(resolved)
	}
	got := map[string]string{}
	for _, p := range all {
		require.Empty(t, p.Interfaces)
		of := p.Name + " " + p.Version + " in " + p.Language + ", "
		for name, template := range p.Templates {
			require.Empty(t, template.Implements)
			got[of+name.String()] = types(template.Payload)
			if template.Key != nil {
				got[of+name.String()+", key"] = types(template.Key)
			}
			for name, c := range template.Choices {
				if name == "Archive" {
					_, err := r.Resolve(c.Argument)
					var missing *MissingError
					require.ErrorAs(t, err, &missing)
					require.Equal(t, []string{archiveOf}, missing.Packages)
					require.True(t, c.Consuming)
					require.Equal(t, "Unit", types(c.Result))
					continue
				}
				consuming := map[bool]string{true: "consumes, "}[c.Consuming]
				got[of+name] = consuming + types(c.Argument) + " to " + types(c.Result)
			}
		}
	}
	require.Equal(t, map[string]string{
		"allvals 1.0.0 in 2.2, AllVals:Everything": recordedOld,
		"allvals 1.0.0 in 2.2, Deep":               "consumes, Record Deep(depth: Int64) to ContractId Everything",
		"allvals 1.0.0 in 2.2, Echo":               "Record Echo(x: " + recordedOld + ") to " + recordedOld,
		"allvals 1.0.0 in 2.2, Fail":               "Record Fail(msg: Text) to Unit",
		"allvals 1.0.0 in 2.2, Nest":               "Record Nest(depth: Int64) to Int64",
		"allvals 1.0.0 in 2.2, Replace":            "consumes, Record Replace(newText: Text) to ContractId Everything",
		"allvals 2.0.0 in 2.2, AllVals:Everything": recordedNew,
		"allvals 2.0.0 in 2.2, AllVals:Newcomer":   "Record Newcomer(owner: Party, note: Optional(Text))",
		"allvals 2.0.0 in 2.2, Deep":               "consumes, Record Deep(depth: Int64) to ContractId Everything",
		"allvals 2.0.0 in 2.2, Describe":           "Record Describe(why: Optional(Text)) to Optional(Text)",
		"allvals 2.0.0 in 2.2, Echo":               "Record Echo(x: " + recordedNew + ") to " + recordedNew,
		"allvals 2.0.0 in 2.2, Fail":               "Record Fail(msg: Text) to Unit",
		"allvals 2.0.0 in 2.2, Nest":               "Record Nest(depth: Int64) to Int64",
		"allvals 2.0.0 in 2.2, Replace":            "consumes, Record Replace(newText: Text) to ContractId Everything",
		"keyed 1.0.0 in 2.3, Keyed:Acct":           "Record Acct(owner: Party, watcher: Party, id: Text, bal: Int64)",
		"keyed 1.0.0 in 2.3, Keyed:Acct, key":      "Record AcctKey(owner: Party, id: Text)",
		"keyed 1.0.0 in 2.3, Bump":                 "consumes, Record Bump(by: Int64) to ContractId Acct",
	}, got)
}
