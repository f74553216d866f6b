package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
)

// relationThemes is the order of docs/relations.md. Those with a picture show how their relations refer to others. A
// relation that is named nowhere comes last in the theme of the first relation that it refers to.
var relationThemes = []relationTheme{
	{"Updates and events", true, []string{
		"updates", "events", "created_events", "archived_events", "exercised_events", "interface_views", "reassignments", "topology_events"}},
	{"Contracts and holdings", true, []string{
		"active_contracts", "active_events", "active_counts", "template_numbers", "contracts", "contract_lifetimes", "holdings", "holding_totals", "holding_lifetimes", "looked_up_contracts"}},
	{"Token movements", false, []string{"token_events", "token_transfers", "pending_instructions"}},
	{"Transaction history", true, []string{
		"transactions", "transfers", "transfer_receivers", "balance_changes", "party_transfers", "mints", "taps", "aborted_transfer_instructions"}},
	{"Amulets minted and burned", false, []string{"rewards", "burns", "traffic_purchases", "mining_rounds", "amulet_sums"}},
	{"Packages, types and parties", true, []string{
		"packages", "templates", "interfaces", "choices", "fields", "typed_views", "vetted_packages", "vetting_changes", "parties", "hosted_parties"}},
	{"Where the data stand", false, []string{"stream_checkpoints", "offset_checkpoints", "synchronizers", "coverage", "rewrites", "redactions", "verifications"}},
	{"What is not known, or fits no column", false, []string{"unknown_updates", "unknown_transactions", "exact_payloads"}},
}

type relationTheme struct {
	title     string
	picture   bool
	relations []string
}

// themes are relationThemes with a place for every relation.
func themes(t *testing.T, described map[string]*relation) (list []relationTheme) {
	t.Helper()
	of := map[string]int{}
	for i, theme := range relationThemes {
		list = append(list, theme)
		for _, name := range theme.relations {
			require.Contains(t, described, name)
			of[name] = i
		}
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		if _, named := of[name]; named {
			continue
		}
		references := described[name].keys.References
		require.NotEmpty(t, references, "ledger.%s has no place in docs/relations.md: name a relation that it refers to in its comment, or put it into relationThemes", name)
		i, named := of[references[0].Table]
		require.True(t, named, "ledger.%s refers to %s, which no theme names", name, references[0].Table)
		list[i].relations = append(slices.Clone(list[i].relations), name)
	}
	return list
}

// relation is a view of schema ledger as the catalog describes it.
type relation struct {
	comment string
	columns []describedColumn
	keys    keys
}

type describedColumn struct{ name, kind, comment string }

// keys is the line that pg_graphql reads at the end of a view's comment.
type keys struct {
	Key        []string    `json:"primary_key_columns"`
	References []reference `json:"foreign_keys"`
}

type reference struct {
	Columns []string `json:"local_columns"`
	Schema  string   `json:"foreign_schema"`
	Table   string   `json:"foreign_table"`
	To      []string `json:"foreign_columns"`
}

// describedRelations reads the catalog's words about schema ledger.
func describedRelations(t *testing.T, conn *pgx.Conn) map[string]*relation {
	t.Helper()
	described := map[string]*relation{}
	rows, err := conn.Query(t.Context(), `
		SELECT c.relname, obj_description(c.oid, 'pg_class'), a.attname, replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'),
		       col_description(c.oid, a.attnum)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'ledger'::regnamespace AND c.relkind = 'v' ORDER BY c.relname, a.attnum`)
	require.NoError(t, err)
	var name, comment string
	var of describedColumn
	_, err = pgx.ForEachRow(rows, []any{&name, &comment, &of.name, &of.kind, &of.comment}, func() error {
		r := described[name]
		if r == nil {
			words, directive, _ := strings.Cut(comment, "\n@graphql(")
			r = &relation{comment: words}
			described[name] = r
			if directive != "" {
				require.NoError(t, json.Unmarshal([]byte(strings.TrimSuffix(directive, ")")), &r.keys), name)
			}
		}
		r.columns = append(r.columns, of)
		return nil
	})
	require.NoError(t, err)
	return described
}

func (r *relation) kindOf(name string) string {
	return r.columns[slices.IndexFunc(r.columns, func(c describedColumn) bool { return c.name == name })].kind
}

// cell is text in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ", "*", `\*`).Replace(text)
}

// costOf is what the comment of a column says of its cost, and the comment without it.
func costOf(comment string) (cost, rest string) {
	for _, says := range []struct{ words, cost string }{{"Costs a look-up per row", "look-up"}, {"Indexed", "index"}} {
		if before, after, found := strings.Cut(comment, says.words+"."); found {
			return says.cost, strings.TrimSpace(strings.TrimSpace(before) + " " + strings.TrimSpace(after))
		}
		if strings.Contains(comment, says.words) { // with more about it
			return says.cost, comment
		}
	}
	return "", comment
}

// picture draws relations of a theme and what they refer to, with the columns that they are joined by.
func picture(text *strings.Builder, described map[string]*relation, all []relationTheme, names []string) {
	text.WriteString("```mermaid\nerDiagram\n")
	drawn := map[string][]string{} // the columns that are shown of each relation
	show := func(name string, columns []string) {
		for _, c := range columns {
			if !slices.Contains(drawn[name], c) {
				drawn[name] = append(drawn[name], c)
			}
		}
	}
	for _, name := range names {
		show(name, described[name].keys.Key)
		for _, r := range described[name].keys.References {
			show(name, r.Columns)
			show(r.Table, r.To)
			many, by := "o{", strings.Join(r.To, ", ")
			if slices.Equal(r.Columns, described[name].keys.Key) {
				many = "o|"
			}
			if !slices.Equal(r.Columns, r.To) {
				by = strings.Join(r.Columns, ", ") + " = " + by
			}
			fmt.Fprintf(text, "    %s |o--%s %s : \"%s\"\n", r.Table, many, name, by)
		}
	}
	for _, theme := range all {
		for _, name := range theme.relations {
			if len(drawn[name]) == 0 {
				continue
			}
			fmt.Fprintf(text, "    %s {\n", name)
			for _, c := range drawn[name] {
				var marks []string
				if slices.Contains(described[name].keys.Key, c) {
					marks = append(marks, "PK")
				}
				leads := func(r reference) bool { return slices.Contains(r.Columns, c) }
				if slices.Contains(names, name) && slices.ContainsFunc(described[name].keys.References, leads) {
					marks = append(marks, "FK")
				}
				fmt.Fprintln(text, strings.TrimRight("        "+described[name].kindOf(c)+" "+c+" "+strings.Join(marks, ", "), " "))
			}
			text.WriteString("    }\n")
		}
	}
	text.WriteString("```\n")
}

var relationNamed = regexp.MustCompile(`ledger\.(\w+)`)

// linked is text with links to the relations that it names.
func linked(described map[string]*relation, text string) string {
	return relationNamed.ReplaceAllStringFunc(text, func(name string) string {
		if plain := strings.TrimPrefix(name, "ledger."); described[plain] != nil {
			return "[" + name + "](#" + plain + ")"
		}
		return name
	})
}

func firstSentence(comment string) string {
	sentence, _, more := strings.Cut(comment, ". ")
	if more {
		sentence += "."
	}
	return sentence
}

// referenceOfRelations is docs/relations.md.
func referenceOfRelations(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	described := describedRelations(t, conn)
	var text strings.Builder
	text.WriteString(`# Relations and functions of schema ledger

Made by ` + "`make docs`" + ` from the comments in migrations/: change those. How to use them: [sql.md](sql.md); questions and their SQL:
[cookbook.md](cookbook.md). The database has the same words: ` + "`\\d+ ledger.updates`" + ` in psql.

**cost**: *index* means that a condition on the column finds its rows by an index; *look-up* that the column costs another read for
each row, if the query names it. Other columns are read with the row. record_time of updates and events has a small block index. In the pictures PK marks the columns that name a row, FK those
that lead to another relation, where the other row can be missing.
`)
	all := themes(t, described)
	for _, theme := range all {
		fmt.Fprintf(&text, "\n## %s\n\n", theme.title)
		if theme.picture {
			picture(&text, described, all, theme.relations)
			text.WriteString("\n")
		}
		text.WriteString("| relation | |\n|---|---|\n")
		for _, name := range theme.relations {
			fmt.Fprintf(&text, "| [%s](#%s) | %s |\n", name, name, cell(firstSentence(described[name].comment)))
		}
		for _, name := range theme.relations {
			fmt.Fprintf(&text, "\n### %s\n\n%s\n", name, linked(described, cell(described[name].comment)))
			if key := described[name].keys.Key; len(key) > 0 {
				fmt.Fprintf(&text, "\nKey: %s.\n", strings.Join(key, ", "))
			}
			text.WriteString("\n| column | type | cost | |\n|---|---|---|---|\n")
			for _, c := range described[name].columns {
				cost, comment := costOf(c.comment)
				fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", c.name, c.kind, cost, linked(described, cell(comment)))
			}
		}
	}
	text.WriteString("\n## Functions\n\n| function | returns | |\n|---|---|---|\n")
	rows, err := conn.Query(t.Context(), `
		SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ')', pg_get_function_result(p.oid), obj_description(p.oid, 'pg_proc')
		FROM pg_proc p WHERE p.pronamespace = 'ledger'::regnamespace ORDER BY 1`)
	require.NoError(t, err)
	var call, result, comment string
	_, err = pgx.ForEachRow(rows, []any{&call, &result, &comment}, func() error {
		short := strings.NewReplacer("timestamp with time zone", "timestamptz", "SETOF ", "rows of ", "TABLE(", "rows of (", "NULL::text", "NULL", "'00:00:10'::interval", "'10 s'")
		fmt.Fprintf(&text, "| %s | %s | %s |\n", cell(short.Replace(call)), linked(described, cell(short.Replace(result))), linked(described, cell(comment)))
		return nil
	})
	require.NoError(t, err)
	return text.String()
}

// publishedColumn is a row of docs/relations.md about a column.
var publishedColumn = regexp.MustCompile(`^\| (\w+) \| ([^|]+) \|`)

// withdrawn lists what docs/relations.md promises and the catalog does not have any more: relations, and columns with
// their types. Analysts rely on them, so whoever means it takes them out of the document by hand.
func withdrawn(document string, described map[string]*relation) (gone []string) {
	var of string
	for line := range strings.Lines(document) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "### "); found {
			if of = name; described[of] == nil {
				gone = append(gone, of)
			}
		} else if strings.HasPrefix(line, "## ") {
			of = ""
		}
		column := publishedColumn.FindStringSubmatch(line)
		if described[of] == nil || column == nil || column[1] == "column" {
			continue
		}
		if !slices.ContainsFunc(described[of].columns, func(c describedColumn) bool { return c.name == column[1] && c.kind == column[2] }) {
			gone = append(gone, of+"."+column[1]+" "+column[2])
		}
	}
	return gone
}

func TestWhatIsPublishedStays(t *testing.T) {
	t.Parallel()
	described := map[string]*relation{"updates": {columns: []describedColumn{{name: "ledger_offset", kind: "bigint"}, {name: "more", kind: "text[]"}}}}
	const updates = "### updates\n\n| column | type | cost | |\n|---|---|---|---|\n| ledger_offset | bigint | index | Position |\n"
	require.Empty(t, withdrawn(updates, described))
	require.Equal(t, []string{"updates.kind text", "updates.more text", "events"}, withdrawn(updates+
		"| kind | text |  | Kind |\n| more | text |  | More |\n| more | text[] |  | More |\n### events\n| kind | text |  | Kind |\n## Functions\n| f | x | y |\n", described))
}

// docs/relations.md says what the catalog says. It is the contract with analysts: make docs adds to it, and takes
// nothing away.
func TestReferenceOfRelations(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), throwaway.Migrated(t, migrate))
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	const path = "../../docs/relations.md"
	want := referenceOfRelations(t, conn)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, withdrawn(string(got), describedRelations(t, conn)), "analysts rely on these: see docs/relations.md")
	if os.Getenv("WRITE_DOCS") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "docs/relations.md is stale: run make docs")
}
