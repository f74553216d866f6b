package typed

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf/build"
	"ledgerindexer/internal/tools/recorded"
	"ledgerindexer/ledger"
)

func TestFold(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"owner": "owner", "initialAmount": "initial_amount", "DSO": "dso", "dsoParty": "dso_party", "optAmuletID": "opt_amulet_id", "HTTPServer": "http_server",
		"_1": "_1", "a$b": "a_b", "x2Y": "x2_y", "already_folded": "already_folded", "splice-amulet": "splice_amulet", "Ünïcode": "ünïcode",
	} {
		require.Equal(t, want, Fold(name), name)
	}
	for want, path := range map[string][]string{
		"amount_initial_amount": {"amount", "initialAmount"}, "parties_1": {"parties", "_1"}, "_1": {"1"}, "value": {"$"}, "source_tag": {"source", "#tag"},
		"source_received": {"source", "=Received"}, "contract_id": {"@contract_id"},
	} {
		require.Equal(t, want, columnName(path))
	}
}

// recordOf is the subject of a template with these fields.
func recordOf(t *testing.T, s shelf, versions map[string][]build.Field, more ...build.DataType) (*Packages, *Subject) {
	t.Helper()
	var ids []string
	for version, fields := range versions {
		ids = append(ids, s.put(build.Package{Name: "p", Version: version, Modules: []build.Module{{
			Name: "M", Types: append([]build.DataType{build.Record("T", fields...)}, more...), Templates: []build.Template{{Name: "T"}},
		}}}))
	}
	slices.Sort(ids)
	p := s.packages()
	subjects, err := p.Subjects(ids)
	require.NoError(t, err)
	require.Len(t, subjects, 1)
	return p, subjects[0]
}

func viewOf(t *testing.T, p *Packages, s *Subject, published []Column) (View, []string) {
	t.Helper()
	shape, err := p.Shape(s)
	require.NoError(t, err)
	return NewView("typed", "v", s, shape, published)
}

// fromValue are the columns that come from the value.
func fromValue(v View) (list []string) {
	for _, c := range v.Columns {
		if !strings.HasPrefix(c.Path[0], "@") {
			list = append(list, c.Name+" "+c.Type)
		}
	}
	return list
}

func TestColumnsOfEveryType(t *testing.T) {
	t.Parallel()
	local := func(name string) build.Type { return build.Local("M:" + name) }
	p, s := recordOf(t, shelf{}, map[string][]build.Field{"1": {
		member("unit", build.Unit), member("bool", build.Bool), member("int", build.Int64), member("date", build.Date), member("time", build.Timestamp),
		member("n0", build.Numeric(0)), member("n37", build.Optional(build.Numeric(37))), member("party", build.Party), member("cid", build.ContractID(local("T"))),
		member("enum", local("E")), member("maybe", build.Optional(build.Optional(build.Text))), member("maybeUnit", build.Optional(build.Unit)),
		member("list", build.List(build.Text)), member("map", build.TextMap(build.Text)), member("gen", build.GenMap(build.Text, build.Text)),
		member("r", build.Optional(local("R"))), member("v", local("V")), member("tree", local("Tree")), member("none", local("Empty")),
	}}, build.Enum("E", "A"), build.Record("R", member("x", build.Text), member("y", local("R2"))), build.Record("R2", member("z", build.Int64)),
		build.Variant("V", member("A", build.Unit), member("B", build.Text), member("C", local("V.C"))), build.Record("V.C", member("q", build.Bool)),
		build.Record("Tree", member("value", build.Text), member("kid", build.Optional(local("Tree")))), build.Record("Empty"))
	v, changes := viewOf(t, p, s, nil)
	require.Empty(t, changes)
	require.Equal(t, []string{
		"bool boolean", "int bigint", "date date", "time timestamp with time zone", "n0 numeric(38,0)", "n37 numeric(38,37)", "party text", "cid text", "enum text",
		"maybe jsonb", "maybe_unit jsonb", "list jsonb", "map jsonb", "gen jsonb", "r_x text", "r_y_z bigint", "v_tag text", "v_b text", "v_c_q boolean",
		"tree_value text", "tree_kid jsonb",
	}, fromValue(v))
	sql := v.SQL("ledger")[0]
	require.Contains(t, sql, `CASE WHEN e.payload -> 'v' ->> 'tag' = 'C' THEN "ledger".as_boolean(e.payload -> 'v' -> 'value' ->> 'q') END AS "v_c_q"`)
	require.Contains(t, sql, `WHERE e.package_name = 'p' AND e.module_name = 'M' AND e.entity_name = 'T'`)
}

func TestColumnsThatFoldToOneName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("aB", 100)
	p, s := recordOf(t, shelf{}, map[string][]build.Field{"1": {
		member("fooBar", build.Text), member("foo_bar", build.Int64), member("FooBar", build.Bool), member("contractId", build.Text), member("payload", build.Text),
		member(long+"x", build.Text), member(long+"X", build.Text), member("order", build.Text), member("config", build.Local("M:Config")),
	}}, build.Record("Config", member("scheduleOfTheFeesThatAreTakenOfTransfersBetweenParties", build.Local("M:Fees"))),
		build.Record("Fees", member("initialRate", build.Numeric(10)), member("createdAt", build.Timestamp)))
	v, _ := viewOf(t, p, s, nil)
	list := fromValue(v)
	require.Equal(t, []string{"foo_bar text", "foo_bar_2 bigint", "foo_bar_3 boolean", "payload_contract_id text", "payload_payload text"}, list[:5])
	require.NotEqual(t, list[5], list[6])
	require.Equal(t, []string{
		"of_the_fees_that_are_taken_of_transfers_between_parties_initial_rate numeric(38,10)"[len("of_the_"):],
		"the_fees_that_are_taken_of_transfers_between_parties_created_at timestamp with time zone",
	}, list[8:], "what is too long has its end")
	names := map[string]bool{}
	for _, c := range v.Columns {
		require.LessOrEqual(t, len(c.Name), nameBytes)
		require.False(t, names[c.Name])
		names[c.Name] = true
	}
	require.Equal(t, []string{
		"field contractId is column payload_contract_id, because contract_id is the event's", "field payload is column payload_payload, because payload is the event's",
	}, v.Shadowed())
	sql := strings.Join(v.SQL("ledger"), "\n")
	require.Contains(t, sql, `"contract_id" IS 'The contract. The field contractId is payload_contract_id.'`)
	require.Contains(t, sql, `"payload_contract_id" IS 'contractId: Text'`)
}

// What was published keeps its place, name and type, whatever the types are now.
func TestPublishedColumnsStay(t *testing.T) {
	t.Parallel()
	s := shelf{}
	p, subject := recordOf(t, s, map[string][]build.Field{"1.9": {member("a", build.Int64), member("b", build.Text), member("gone", build.Text)}})
	first, _ := viewOf(t, p, subject, nil)
	p, subject = recordOf(t, shelf{}, map[string][]build.Field{
		"1.9": {member("a", build.Int64), member("b", build.Text)}, "1.10": {member("a", build.Text), member("b", build.Text), member("new", build.Optional(build.Date))},
	})
	second, changes := viewOf(t, p, subject, first.Columns)
	require.Equal(t, first.Columns, second.Columns[:len(first.Columns)])
	require.Equal(t, []string{"a bigint", "b text", "gone text", "new date"}, fromValue(second))
	require.Len(t, changes, 3)
	require.Contains(t, changes[0], "column a stays bigint, though it would be text now")
	require.Equal(t, "column new came", changes[1])
	require.Contains(t, changes[2], "column gone stays")

	fresh, _ := viewOf(t, p, subject, nil)
	require.Equal(t, []string{"a text", "b text", "new date"}, fromValue(fresh), "in a view that is new it is text")
	require.Contains(t, strings.Join(fresh.SQL("ledger"), "\n"), `"a" IS 'a: Text, or Int64 in version 1.9'`)
	require.Contains(t, strings.Join(second.SQL("ledger"), "\n"), `"a" IS 'a: Text, or Int64 in version 1.9; what is no bigint is NULL'`)
}

// Keys and results have columns of their own, over all versions, and no field that is to be indexed.
func TestColumnsOfKeysAndResults(t *testing.T) {
	t.Parallel()
	s := shelf{}
	var ids []string
	for version, result := range map[string]build.Type{"1": build.ContractID(build.Local("M:T")), "2": build.Optional(build.Local("M:R")), "3": build.Unit, "4": build.List(build.Text)} {
		key := build.Local("M:K")
		ids = append(ids, s.put(build.Package{Name: "p", Version: version, Modules: []build.Module{{
			Name: "M", Types: []build.DataType{
				build.Record("T", member("owner", build.Party)), build.Record("K", member("owner", build.Party), member("number", build.Int64)),
				build.Record("R", member("owner", build.Party), member("amount", build.Numeric(10))), build.Record("Go", member("owner", build.Party)),
			},
			Templates: []build.Template{{Name: "T", Key: &key, Choices: []build.Choice{{Name: "Go", Argument: build.Local("M:Go"), Result: result}}}},
		}}}))
	}
	p := s.packages()
	subjects, err := p.Subjects(ids)
	require.NoError(t, err)
	v, _ := viewOf(t, p, subjects[0], nil)
	columns := func(v View) (list []string) {
		for _, c := range v.Columns {
			if _, event := c.base(v.Subject.Kind, ""); !event {
				list = append(list, c.Name+" "+c.Type+" "+v.expression(c, "ledger"))
			}
		}
		return list
	}
	require.Equal(t, []string{
		"owner text (e.payload ->> 'owner')", "key_owner text (e.contract_key ->> 'owner')", `key_number bigint "ledger".as_bigint(e.contract_key ->> 'number')`,
	}, columns(v))
	require.Contains(t, strings.Join(v.SQL("ledger"), "\n"), `e.contract_key AS "contract_key"`)
	require.Contains(t, strings.Join(v.SQL("ledger"), "\n"), `."key_number" IS 'key.number: Int64'`)
	v, _ = viewOf(t, p, subjects[1], nil)
	require.Equal(t, []string{
		"owner text (e.choice_argument ->> 'owner')", "result text (e.exercise_result #>> '{}')", "result_owner text (e.exercise_result ->> 'owner')",
		`result_amount numeric(38,10) "ledger".as_numeric(e.exercise_result ->> 'amount', 10)::numeric(38,10)`,
	}, columns(v))
	_, err = v.Shape.Field(subjects[1], "result_owner")
	require.ErrorContains(t, err, "there is no such field")

	gone := build.Con(build.Ref{Package: build.ID([]byte("gone")), Name: "B:Pair"})
	id := s.put(build.Package{Name: "q", Version: "1", Modules: []build.Module{{
		Name: "M", Types: []build.DataType{build.Record("T", member("owner", build.Party))}, Templates: []build.Template{{Name: "T", Key: &gone}},
	}}})
	subjects, err = p.Subjects([]string{id})
	require.NoError(t, err)
	v, _ = viewOf(t, p, subjects[0], nil)
	require.Equal(t, []string{"owner text (e.payload ->> 'owner')"}, columns(v), "what is known is there")
	require.Contains(t, v.Shape.Notes[0], "the key of version 1 is left out: packages that its types are of are not there")
	require.True(t, v.Shape.Keyed)
}

func TestLargeValuesHaveRoom(t *testing.T) {
	t.Parallel()
	var wide, fields []build.Field
	for i := range 60 {
		wide = append(wide, member(fmt.Sprintf("w%d", i), build.Text))
		fields = append(fields, member(fmt.Sprintf("f%d", i), build.Local("M:Wide")))
	}
	p, s := recordOf(t, shelf{}, map[string][]build.Field{"1": fields}, build.Record("Wide", wide...))
	v, _ := viewOf(t, p, s, nil)
	require.Len(t, fromValue(v), 60)
	require.Equal(t, "f0 jsonb", fromValue(v)[0])

	for i := range 2000 {
		fields = append(fields, member(fmt.Sprintf("m%d", i), build.Text))
	}
	p, s = recordOf(t, shelf{}, map[string][]build.Field{"1": fields}, build.Record("Wide", wide...))
	v, _ = viewOf(t, p, s, nil)
	require.LessOrEqual(t, len(fromValue(v)), mostColumns)
	require.NotEmpty(t, fromValue(v))
}

// viewNames returns the names of the views of subjects, each given as package:Module:Entity or with a choice as
// package:Module:Entity:Choice.
func viewNames(subjects ...string) map[string]string {
	var list []*Subject
	for _, text := range subjects {
		words := append(strings.Split(text, ":"), "")
		s := &Subject{Kind: Template, Package: words[0], Module: words[1], Entity: words[2], Choice: words[3]}
		if s.Choice != "" {
			s.Kind = Choice
		}
		list = append(list, s)
	}
	names := map[string]string{}
	for s, name := range ViewNames(list) {
		names[strings.TrimSuffix(s.Owner()+":"+s.Choice, ":")] = name
	}
	return names
}

// A wide view takes its value out of the table once. Fields that have an index keep the expression of the index.
func TestWideViewsTakeTheValueOnce(t *testing.T) {
	t.Parallel()
	fields := []build.Field{member("owner", build.Party)}
	for i := range wide {
		fields = append(fields, member(fmt.Sprintf("f%d", i), build.Int64))
	}
	p, s := recordOf(t, shelf{}, map[string][]build.Field{"1": fields})
	v, _ := viewOf(t, p, s, nil)
	v.Indexed = map[string]bool{"owner": true}
	sql := v.SQL("ledger")[0]
	require.Equal(t, 3, strings.Count(sql, "e.payload"), "the whole, the field that has an index, and once for all others")
	require.Contains(t, sql, `(e.payload ->> 'owner') AS "owner"`)
	require.Contains(t, sql, `"ledger".as_bigint(once.value ->> 'f0') AS "f0"`)
	require.Contains(t, sql, "CROSS JOIN LATERAL (SELECT e.payload #> '{}' AS value, e.contract_key #> '{}' AS beside OFFSET 0) once")

	p, s = recordOf(t, shelf{}, map[string][]build.Field{"1": fields[:wide/2]})
	v, _ = viewOf(t, p, s, nil)
	require.NotContains(t, v.SQL("ledger")[0], "LATERAL")
}

func TestViewNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Long", 50)
	names := viewNames("splice-amulet:M:AmuletRules.X", "splice-amulet:M:AmuletRules.X:Transfer", "splice-amulet:M:AmuletRules:AmuletRules_Transfer",
		"p:M:Account", "p:M:Account:AccountClose", "p:M:Account:Account", "p:M:Accounting:Account_", "p:M:"+long, "p:M:T:"+long,
		"splice-api-token-transfer-instruction-v1:M:TransferInstruction:TransferInstruction_Accept")
	for of, want := range map[string]string{
		"splice-amulet:M:AmuletRules.X": "splice_amulet_amulet_rules_x", "splice-amulet:M:AmuletRules.X:Transfer": "splice_amulet_amulet_rules_x_transfer",
		"splice-amulet:M:AmuletRules:AmuletRules_Transfer": "splice_amulet_amulet_rules_transfer", "p:M:Account": "p_account", "p:M:Account:AccountClose": "p_account_close",
		"p:M:Account:Account": "p_account_account", "p:M:Accounting:Account_": "p_accounting_account_",
		"splice-api-token-transfer-instruction-v1:M:TransferInstruction:TransferInstruction_Accept": "api_token_transfer_instruction_v1_transfer_instruction_accept",
	} {
		require.Equal(t, want, names[of], of)
	}
	for of, name := range names {
		require.LessOrEqual(t, len(name), nameBytes, of)
		require.NotEmpty(t, name)
	}

	s := &Subject{Kind: Template, Package: "p", Module: "M", Entity: "T"}
	require.Equal(t, "p_t", s.FreeName("p_t", func(string) bool { return false }))
	require.Regexp(t, "^p_t_[0-9a-f]{8}$", s.FreeName("p_t", func(name string) bool { return name == "p_t" }))
}

// Those that would have one name all have their module in it, and what does not help has a hash: whichever comes first.
func TestViewNamesDoNotDependOnTheOrder(t *testing.T) {
	t.Parallel()
	subjects := []string{"p:A:T", "p:B:T", "p:B:T:Go", "p:C.D:T", "p:A:U", "a-b:M:V", "a_b:M:V", "p:M:Account:Account_Close", "p:M:AccountClose", "p:M:B_T"}
	names := viewNames(subjects...)
	require.Equal(t, "p_a_t", names["p:A:T"])
	require.Equal(t, "p_c_d_t", names["p:C.D:T"])
	require.Equal(t, "p_u", names["p:A:U"])
	require.Equal(t, "p_t_go", names["p:B:T:Go"])
	require.Equal(t, []string{"p_b_t", "p_m_b_t"}, []string{names["p:B:T"], names["p:M:B_T"]}, "a module can make a name another's, which then has one too")
	require.Equal(t, "p_m_account_account_close", names["p:M:Account:Account_Close"])
	require.Equal(t, "p_m_account_close", names["p:M:AccountClose"])
	require.Regexp(t, "^a_b_m_v_[0-9a-f]{8}$", names["a-b:M:V"])
	require.Regexp(t, "^a_b_m_v_[0-9a-f]{8}$", names["a_b:M:V"])
	seen := map[string]bool{}
	for _, name := range names {
		require.False(t, seen[name], name)
		seen[name] = true
	}
	for range 20 {
		rand.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
		require.Equal(t, names, viewNames(subjects...))
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"short": "short", "exactly_10": "exactly_10", "one_two_three": "two_three", "aone_twothree": "twothree", "a_onetwothr": "onetwothr", "abcdefghijklmnop": "ghijklmnop",
		"abcdefghijklmno_p": "hijklmno_p", "ab_1_two_th": "_1_two_th", "ab_12_two_th": "_12_two_th", "ab_123456789": "_123456789", "ab_1234567890": "_234567890", "aaéééééé": "ééééé", "aaaéééééé_": "éééé_",
	} {
		require.Equal(t, want, cut(name, 10), name)
		require.LessOrEqual(t, len(cut(name, 10)), 10)
	}
}

func TestShapeOfWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	s := shelf{}
	id := s.put(example(build.ID([]byte("gone"))))
	p := s.packages()
	subjects, err := p.Subjects([]string{id, build.ID([]byte("gone"))})
	require.NoError(t, err)
	require.Equal(t, []string{"interface p:M:I", "template p:M:T", "choice Go of p:M:T"}, names(subjects))
	_, err = p.Shape(subjects[1])
	require.ErrorContains(t, err, "the types of template p:M:T are not known: version 1.2.3 is left out: packages that its types are of are not there")
}

func names(subjects []*Subject) (list []string) {
	for _, s := range subjects {
		list = append(list, s.String())
	}
	return list
}

func TestFind(t *testing.T) {
	t.Parallel()
	s := shelf{}
	o := s.put(other())
	id := s.put(example(o))
	p := s.packages()
	subjects, err := p.Subjects([]string{id, o})
	require.NoError(t, err)
	for _, name := range []string{"T", "M:T", "p:M:T", "#p:M:T", id + ":M:T", "p:T", "#p:T", id + ":T"} {
		found, err := Find(subjects, name)
		require.NoError(t, err, name)
		require.Equal(t, []string{"template p:M:T", "choice Go of p:M:T"}, names(found))
	}
	for _, name := range []string{"", "t", "q:M:T", "p:M", "p:M:T:T", "'; --", "\x00", "T\x00", "\x1b[2J", "\u202eX", "T\n", "\xff", ":", "#", strings.Repeat("x", 10_000)} {
		_, err := Find(subjects, name)
		var wrong *NameError
		require.ErrorAs(t, err, &wrong, name)
		require.ElementsMatch(t, []string{"p:M:I", "p:M:T"}, wrong.Candidates, "there are so few that all are named")
		require.False(t, strings.ContainsFunc(wrong.Error(), func(r rune) bool { return !unicode.IsPrint(r) }))
	}
}

// A name that is not there names those like it, also where a letter is missing, wrong or too much.
func TestFindNamesWhatIsAlike(t *testing.T) {
	t.Parallel()
	var subjects []*Subject
	for i := range 20 {
		subjects = append(subjects, &Subject{Kind: Template, Package: "p", Module: "M", Entity: fmt.Sprint("Other", i)})
	}
	subjects = append(subjects, &Subject{Kind: Template, Package: "p", Module: "M", Entity: "Account"}, &Subject{Kind: Template, Package: "p", Module: "M", Entity: "AccountRequest"},
		&Subject{Kind: Template, Package: "p", Module: "M", Entity: "Holding"})
	for name, want := range map[string][]string{
		"account": {"p:M:Account", "p:M:AccountRequest"}, "Acount": {"p:M:Account", "p:M:AccountRequest"}, "Acccount": {"p:M:Account", "p:M:AccountRequest"}, "q:M:Accounts": {"p:M:Account", "p:M:AccountRequest"},
		"AccountReqeust": {"p:M:AccountRequest", "p:M:Account"}, "Holdign": {"p:M:Holding"}, "#p:M:LockedHolding": {"p:M:Holding"}, "M": {}, "Nope": {}, "'; DROP TABLE x": {}, strings.Repeat("x", 10_000): {},
	} {
		_, err := Find(subjects, name)
		var wrong *NameError
		require.ErrorAs(t, err, &wrong, name)
		require.Equal(t, want, wrong.Candidates, name)
	}
}

// A package that the name begins with comes first, and then what its last word begins with.
func TestFindBeginsWithWhatTheNameBeginsWith(t *testing.T) {
	t.Parallel()
	var subjects []*Subject
	for _, owner := range []string{"a-wallet:W:AmuletTransfer", "splice-amulet:S:Amulet", "splice-amulet:S:LockedAmulet", "splice-wallet:W:Wallet", "splice-wallet:W:AmuletOffer"} {
		words := strings.Split(owner, ":")
		subjects = append(subjects, &Subject{Kind: Template, Package: words[0], Module: words[1], Entity: words[2]})
	}
	for i := range 10 {
		subjects = append(subjects, &Subject{Kind: Template, Package: "q", Module: "M", Entity: fmt.Sprint("Other", i)})
	}
	for name, want := range map[string][]string{
		"splice-wallet:Amulett": {"splice-wallet:W:AmuletOffer", "splice-wallet:W:Wallet", "a-wallet:W:AmuletTransfer", "splice-amulet:S:Amulet", "splice-amulet:S:LockedAmulet"},
		"splice-amulet:Nothing": {"splice-amulet:S:Amulet", "splice-amulet:S:LockedAmulet"},
		"splice-wallet":         {"splice-wallet:W:Wallet"},
		"amuletT":               {"a-wallet:W:AmuletTransfer", "splice-amulet:S:Amulet", "splice-wallet:W:AmuletOffer", "splice-amulet:S:LockedAmulet"},
	} {
		_, err := Find(subjects, name)
		var wrong *NameError
		require.ErrorAs(t, err, &wrong, name)
		require.Equal(t, want, wrong.Candidates[:min(len(want), len(wrong.Candidates))], name)
	}
	_, err := Find(append(subjects, &Subject{Kind: Template, Package: "splice-amulet", Module: "X", Entity: "Amulet"}), "splice-amulet:Amulet")
	require.ErrorContains(t, err, "the name of several: splice-amulet:S:Amulet, splice-amulet:X:Amulet")
}

func TestVersionsAreComparedByNumber(t *testing.T) {
	t.Parallel()
	list := []string{"1.10", "1.9.0", "", "1.9", "99999999999999999999.1", "2.0.0-rc", "2.0.0", "2"}
	slices.SortFunc(list, CompareVersions)
	require.Equal(t, []string{"", "1.9", "1.9.0", "1.10", "2", "2.0.0", "2.0.0-rc", "99999999999999999999.1"}, list)
}

// What the compiler makes of every kind of value, in a version and its upgrade.
func TestColumnsOfRealPackages(t *testing.T) {
	t.Parallel()
	packages := recorded.Packages(t)
	p := Packages{Content: func(id string) ([]byte, error) {
		if content := packages[id]; content != nil {
			return content, nil
		}
		return nil, fmt.Errorf("package %s: %w", id, ledger.ErrNotFound)
	}}
	subjects, err := p.Subjects(slices.Collect(maps.Keys(packages)))
	require.NoError(t, err)
	names := ViewNames(subjects)
	columns, seen := map[string][]string{}, map[string]bool{}
	for _, s := range subjects {
		shape, err := p.Shape(s)
		require.NoError(t, err)
		require.Empty(t, shape.Notes, "%s", s)
		v, _ := NewView("typed", names[s], s, shape, nil)
		require.False(t, seen[v.Name], v.Name)
		seen[v.Name], columns[v.Name] = true, fromValue(v)
	}
	require.Subset(t, columns["allvals_everything"], []string{
		"i bigint", "n0 numeric(38,0)", "n37 numeric(38,37)", "d date", "ts timestamp with time zone", "oi bigint", "ooi jsonb", "gm jsonb", "p_fst bigint",
		"sh_tag text", "sh_circle numeric(38,10)", "sh_rect_fst bigint", "sh_rec_label text", "c text", "extra_num numeric(38,10)",
	})
	require.Contains(t, columns, "allvals_everything_echo")
}
