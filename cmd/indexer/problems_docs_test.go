package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// problem finds where an error with exit code 3 is made.
var problem = regexp.MustCompile(`ledger\.Problem\{|\{act,|verdict: act\b|return act\(`)

// documented are the files that make such errors: how many, and the lines of "When it stops" in docs/operations.md that
// say what to do, each by its beginning, or by a part where the section says it otherwise than in a table.
var documented = map[string]struct {
	problems int
	lines    []string
}{
	"cmd/indexer/check.go":    {1, []string{"`indexer check` ends with 3 where"}},
	"cmd/indexer/ledger.go":   {1, []string{"`ledger get --pages`: the server answers"}},
	"cmd/indexer/packages.go": {3, []string{"the server has no operation that lists packages", "the participant wants a token and none"}},
	"cmd/indexer/update.go":   {1, []string{"Of `indexer contract`, `indexer update` and `indexer verify`"}},

	"ingest/fork_probe.go":         {4, []string{"the ledger ends below the checkpoint", "the ledger has another history"}},
	"ingest/snapshot.go":           {1, []string{"an offset is above the ledger's end, or the participant is pruned above it, with `--change-scope`"}},
	"ingest/served.go":             {3, []string{"the server does not report its ledger end", "the offset of `--start` or `--at-offset`", "`--at-offset` is below"}},
	"ingest/transactions_pages.go": {2, []string{"the last N records of the transaction history", "the service serves the beginning of its history"}},

	"internal/base/access/access.go": {2, []string{"there is no token, or no client secret", "there are no certificates to begin with"}},
	"internal/app/participant.go":    {1, nil}, // of a task, which ends nothing
	"internal/app/transactions.go":   {1, []string{"the Scan service has no transaction history"}},
	"internal/app/network_files.go":  {1, []string{"`backfill network --files`: a snapshot", "a folder, or the database, has another network's"}},
	"internal/app/daemon_types.go":   {1, []string{"The process ends when no stream can continue"}},
	"internal/app/views_flags.go":    {2, []string{"no package is stored, or the types of a template"}},
	"internal/app/lead.go":           {1, []string{"another process writes this database"}},
	"internal/app/stream.go":         {1, []string{"another process writes this database"}},
	"internal/app/pprof.go":          {1, []string{"`--listen`, `--page-listen` or `--pprof`"}},
	"internal/app/earlier_scope.go":  {1, []string{"what was stored before the scope was changed has to be read"}},
	"internal/app/prune.go":          {1, nil}, // of a task, which ends nothing
	"internal/app/reanchor.go":       {1, []string{"`reanchor`: of the updates of a network"}},
	"internal/app/source.go":         {2, []string{"schema network holds the updates of another", "the Scan service does not serve the updates"}},
	"internal/app/updates.go":        {1, []string{"the scope can't be changed: the participant does not know"}},
	"internal/app/verify.go":         {3, []string{"another process repairs the database", "the stored scope is missing", "Of `indexer contract`, `indexer update` and `indexer verify`"}},
	"internal/app/views.go":          {1, []string{"no package is stored", "the types of a template are not known"}},
	"internal/app/copy_setup.go":     {4, []string{"`copy-setup`: a part can't be made", "`copy-setup`: a role gets no rights", "`copy-setup`: the two databases"}},

	"internal/config/config.go": {1, []string{"there are no certificates to begin with"}},

	"internal/features/export/bucket.go":   {3, []string{"`export`, `prune --exported`: the object store"}},
	"internal/features/export/catalog.go":  {5, []string{"`export`, `prune --exported`: a manifest or a file", "`export --check`: a range was written again", "`export`, `prune --exported`: the place of a network", "`export`, `prune --exported`: two manifests", "`export`, `prune --exported`: a manifest is of another"}},
	"internal/features/export/export.go":   {4, []string{"`export`: nothing has been indexed", "`export`, `prune --exported`: the database goes up to", "`export`: no manifest names"}},
	"internal/features/export/held.go":     {1, []string{"`prune --exported`: updates changed"}},
	"internal/features/export/manifest.go": {3, []string{"`export`, `prune --exported`: a manifest or a file", "`export`, `prune --exported`: a manifest is of another"}},
	"internal/features/export/plan.go":     {4, []string{"`export`, `prune --exported`: the database goes up to", "`export`, `prune --exported`: a manifest is of another", "`export`, `prune --exported`: updates changed"}},
	"internal/features/export/role.go":     {1, []string{"`export`, `prune --exported`: the object store"}},

	"participant/codes.go": {19, []string{"the participant is pruned up to offset P", "the ledger ends below the checkpoint", "it does not know a package", "the synchronizer is not known",
		"the request or answer is too large", "the snapshot has more entries", "it refuses the request as invalid", "the server sent N entries of a snapshot", "the vetted packages have another serial",
		"packages would need others", "the participant does not have a package", "no package fits a reference", "a package is no valid upgrade", "two packages of the same name"}},
	"participant/discover.go": {2, []string{"no update stream at the URL", "release 3.3 with ledger-effects"}},
	"participant/identity.go": {1, []string{"the participant behind the URL changed"}},
	"participant/rights.go":   {1, []string{"user X lacks CanReadAs", "the participant does not let the user read", "the participant refuses user X"}},
	"participant/snapshot.go": {2, []string{"the server serves no snapshots", "the server refuses the token, gives none"}},
	"participant/verdict.go": {19, []string{"`ledger get`: the server does not offer", "`ledger get`: the participant refuses", "`ledger get`: the participant does not let", "a server's certificate is not trusted", "a server speaks HTTP/2", "the environment names a proxy", "a server speaks TLS", "the answer to a request is not JSON", "a server refuses access, not as a participant",
		"the participant wants a token and none", "the participant is pruned up to offset P", "the ledger ends below the checkpoint", "reassignments are in flight"}},

	"internal/features/export/bounded.go": {1, []string{"a server answers without end"}},
	"internal/base/jsonhttp/pages.go":     {1, []string{"a server answers without end"}},
	"scan/bulk.go": {5, []string{"a server answers without end", "a folder, or the database, has another network's", "the Scan service offers no bulk files",
		"the bulk files have no snapshot, or the Scan service has none", "the Scan service lists no bulk file of some days"}},
	"scan/creations.go":      {1, []string{"the snapshot of a Scan service has a contract from an earlier migration"}},
	"scan/files.go":          {6, []string{"of the bulk files some are missing", "the Scan service says that a file has another digest", "the digest of a bulk file", "a bulk file has the right digest"}},
	"scan/files_snapshot.go": {3, []string{"the bulk files have no snapshot, or the Scan service has none", "the token of a snapshot is none of bulk files", "the bulk files do not agree"}},
	"scan/quorum.go":         {2, []string{"the Scan services are of two networks", "a snapshot was begun with a Scan service"}},
	"scan/quorum_agree.go":   {1, []string{"no N of the Scan services agree"}},
	"scan/snapshots.go":      {3, []string{"the Scan service has no snapshot there", "the server refuses the token, gives none"}},
	"scan/updates.go":        {2, []string{"the Scan service does not serve the updates", "schema network holds the updates of another"}},
	"scan/verdict.go": {7, []string{"the answer to a request is not JSON", "the Scan service refuses access", "one record of the transaction history is larger",
		"a server's certificate is not trusted"}},

	"store/access.go":                   {3, []string{"there is no such role", "nothing that is stored names a party", "a role can't be limited"}},
	"store/audit/coverage.go":           {3, []string{"the ledger ends below the checkpoint", "updates are stored beyond the ledger's end"}},
	"store/audit/redact.go":             {1, []string{"`redact`: another process"}},
	"store/audit/redact_rows.go":        {3, []string{"`redact`: the database knows no", "`redact`: the contract is active"}},
	"store/audit/take_in.go":            {1, []string{"what the participant shows as active is not taken in"}},
	"store/change_scope.go":             {2, []string{"the scope can't be changed: another form", "the scope can't be changed yet: nothing but a snapshot"}},
	"store/export_lock.go":              {1, []string{"`export`: another export"}},
	"store/field_indexes.go":            {3, []string{"another command is making or dropping", "the role may not change", "too many of a field's last values"}},
	"store/internal/bounds/bounds.go":   {1, []string{"how far the transaction history was read is lost"}},
	"store/internal/rows/carried.go":    {1, []string{"a snapshot has a contract later"}},
	"store/internal/session/errors.go":  {2, []string{"the database can't be used", "the database refuses the rows"}},
	"store/internal/session/session.go": {1, []string{"a pooler gives a connection another session"}},
	"store/migrate.go": {4, []string{"the schemas of tables and views are not a pair", "a schema can't be named so", "the database has another encoding",
		"migrating: something that somebody made"}},
	"store/transactions_network.go": {1, []string{"the transaction history in the database is of another network"}},
	"store/lock_out.go":             {1, []string{"other transactions kept the table locked at each", "other transactions kept the table locked (", "other transactions kept the table locked |"}},
	"store/pqs.go":                  {3, []string{"a schema can't be named so", "`pqs disable`", "`pqs enable`"}},
	"store/prune.go":                {3, []string{"`prune`: the database was reset", "`prune --network`: records", "`prune --exported`: updates changed"}},
	"store/prune_plan.go":           {2, []string{"`prune`: nothing would be left", "`prune`: it is not known what is active"}},
	"store/publication.go":          {2, []string{"`publication enable`: the server", "`publication enable`, `disable`"}},
	"store/reset.go":                {2, []string{"`reset` (and `reanchor`)"}},
	"store/schema_version.go":       {5, []string{"a reader runs a command", "the schema is older", "the schema is newer", "the schemas of tables and views are not a pair"}},
	"store/scope.go":                {1, []string{"Of `indexer contract`, `indexer update` and `indexer verify`"}},
	"store/snapshot.go":             {2, []string{"an unfinished snapshot of another", "the database already holds the ledger"}},
	"store/identity.go":             {2, []string{"the database holds another scope", "the participant behind the URL changed"}},
	"store/transactions.go":         {1, []string{"the transaction history has fewer records"}},
	"store/typed_views.go":          {1, []string{"PostgreSQL refuses a view"}},

	"PostgreSQL, to readers": {0, []string{"a reader gets `permission denied", "`query would be affected by row-level security"}},

	"store/audit/divergence.go":          {2, []string{"`reanchor`: the participant has none", "`reanchor`: the first update"}},
	"store/audit/verify_transactions.go": {4, []string{"`verify --repair`: the Scan service has fewer", "`verify`: the service of the transaction history", "`verify`: the transaction history was cleared", "the transaction history in the database is of another network"}},
	"store/audit/verify.go":              {1, []string{"Of `indexer contract`, `indexer update` and `indexer verify`"}},
	"store/audit/verify_selected.go":     {1, []string{"`verify`: the range has nothing"}},
	"store/audit/verify_derived.go":      {1, []string{"updates are stored beyond the ledger's end"}},
}

// What an operator must cure stands in docs/operations.md, and what stands there is made somewhere. Whoever adds such
// an error comes by here.
func TestProblemsAreDocumented(t *testing.T) {
	t.Parallel()
	operations, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(operations), "\n## When it stops\n")
	require.True(t, found)
	made := problems(t, "../..")
	for file, is := range documented {
		assert.Equal(t, is.problems, made[file], "errors with exit code 3 in %s: give each its line in docs/operations.md, and correct this list", file)
		for _, line := range is.lines {
			require.Contains(t, section, line, file)
		}
	}
	for file := range made {
		require.Contains(t, documented, file, "it makes an error with exit code 3")
	}
	var orphans []string
	for line := range strings.Lines(section) {
		row, isRow := strings.CutPrefix(line, "| ")
		if !isRow || strings.HasPrefix(row, "what happened |") {
			continue
		}
		if what, _, _ := strings.Cut(row, " | "); !told(row) {
			orphans = append(orphans, what)
		}
	}
	require.Empty(t, orphans, "no file is said to make these")
}

// told reports whether a row belongs to some file.
func told(row string) bool {
	for _, is := range documented {
		for _, line := range is.lines {
			if strings.HasPrefix(row, line) {
				return true
			}
		}
	}
	return false
}

// problems counts what makes errors with exit code 3, by file. Comments don't count.
func problems(t *testing.T, root string) map[string]int {
	t.Helper()
	made := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, group := range parsed.Comments {
			for i := group.Pos() - 1; i < group.End()-1; i++ {
				text[i] = ' '
			}
		}
		if n := len(problem.FindAll(text, -1)); n > 0 {
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			made[filepath.ToSlash(name)] = n
		}
		return nil
	}))
	return made
}
