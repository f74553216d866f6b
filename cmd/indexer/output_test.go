package main

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/sandbox"
)

// Every command that prints a table or a report prints it as JSON too. A new command is one of these, or stands in the
// list of those that do something, and say in a line or two what they did.
func TestReportsHaveAJSONForm(t *testing.T) {
	t.Parallel()
	without := map[string]bool{}
	for _, name := range []string{
		"run", "ledger get", "views create", "views refresh", "views drop", "index create",
		"index drop", "copy-setup", "grant", "revoke", "pqs enable", "pqs disable", "publication enable", "publication disable", "publication schema", "export", "migrate",
		"healthcheck", "completion bash", "completion zsh", "completion fish", "completion words",
	} {
		without[name] = true
	}
	parser, err := kong.New(&grammar{}, kong.Name("indexer"))
	require.NoError(t, err)
	var visit func(node *kong.Node, path string)
	visit = func(node *kong.Node, path string) {
		for _, child := range node.Children {
			visit(child, path+" "+child.Name)
		}
		if len(node.Children) > 0 || path == "" {
			return
		}
		_, has := node.Target.Type().FieldByNameFunc(func(name string) bool { return name == reflect.TypeFor[jsonFlag]().Name() })
		require.NotEqual(t, without[path[1:]], has, path)
	}
	visit(parser.Model.Node, "")
}

// The JSON form of a plan has what the table has, and says whether it was carried out.
func TestPlansAsJSON(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	l := grown(120)
	environ, truth := indexed(t, l, sandbox.ServerOptions{}, nil)
	archived := truth["archived_events"][0]["contract_id"].(string)
	for name, args := range map[string][]string{"roles": {"grants"}, "indexes": {"index", "list"}, "views": {"views", "list"}} {
		stdout, _ := printed(t, config.ExitDone, environ, append(args, "--json")...)
		require.JSONEq(t, fmt.Sprintf(`{%q: []}`, name), stdout)
	}
	before := fmt.Sprint("--before=", l.Offset(40))
	to := fmt.Sprint("--to-offset=", l.Offset(100))
	plan := jsonOf(t, config.ExitDone, environ, "redact", "--contract="+archived, "--reason=asked for")
	require.Equal(t, false, at(t, plan, "applied"))
	require.Equal(t, []any{archived}, at(t, plan, "contracts"))
	require.NotEmpty(t, at(t, plan, "rows", 0, "relation"))
	plan = jsonOf(t, config.ExitDone, environ, "prune", before)
	require.Equal(t, false, at(t, plan, "applied"))
	require.EqualValues(t, l.Offset(40)-1, at(t, plan, "floor"))
	require.Equal(t, "updates", at(t, plan, "tables", 0, "relation"))
	require.Positive(t, at(t, plan, "tables", 0, "rows"))
	for _, more := range [][]string{nil, {"--apply"}} {
		plan = jsonOf(t, config.ExitDone, environ, append([]string{"reset", to}, more...)...)
		require.Equal(t, more != nil, at(t, plan, "applied"))
		require.EqualValues(t, l.End(), at(t, plan, "from"))
		require.Equal(t, map[string]any{"relation": "updates", "rows": 19.0}, at(t, plan, "removed", 0))
	}
	plan = jsonOf(t, config.ExitDone, environ, "reanchor")
	require.Equal(t, false, at(t, plan, "parted"))
	require.Equal(t, []any{}, at(t, plan, "missing"))
}
