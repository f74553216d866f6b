package migrations

import (
	"database/sql"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }

// firstRelease is the number of the last migration of the first release; 0: nothing is released yet.
const firstRelease = 0

// What reads or rewrites a table while readers or writers are locked out. A table that the same file makes is empty.
var (
	lasting = []*regexp.Regexp{
		regexp.MustCompile(`^ALTER TABLE (?:ONLY )?(\w+).*\b(?:SET DATA )?TYPE\b`),
		regexp.MustCompile(`^ALTER TABLE (?:ONLY )?(\w+).*\bSET (?:NOT NULL|LOGGED|UNLOGGED|TABLESPACE|ACCESS METHOD)\b`),
		regexp.MustCompile(`^ALTER TABLE (?:ONLY )?(\w+).*\bADD COLUMN\b.*(?:\bGENERATED\b|\bDEFAULT\b.*\()`),
		regexp.MustCompile(`^ALTER TABLE (?:ONLY )?(\w+).*\bADD (?:CONSTRAINT|PRIMARY KEY|UNIQUE|FOREIGN KEY|CHECK|EXCLUDE)\b`),
		regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX (?:\w+ )?ON (\w+)`),
		regexp.MustCompile(`^(?:UPDATE|DELETE FROM|INSERT INTO|TRUNCATE(?: TABLE)?|LOCK(?: TABLE)?|CLUSTER|REINDEX TABLE) (?:ONLY )?(\w+)`),
		regexp.MustCompile(`^VACUUM FULL (\w+)`),
	}
	harmless = regexp.MustCompile(`\bNOT VALID\b|\bUSING INDEX\b|^CREATE (?:UNIQUE )?INDEX CONCURRENTLY|^CREATE INDEX (?:\w+ )?ON ONLY`)
	makes    = regexp.MustCompile(`\bCREATE TABLE (\w+)`)
	comments = regexp.MustCompile(`(?m)--.*$`)
	bodies   = regexp.MustCompile(`(?s)\$(\w*)\$.*?\$\w*\$`)
	spaces   = regexp.MustCompile(`\s+`)
)

// lastingStatements returns the statements of a migration that could lock readers or writers out for longer than a
// moment.
func lastingStatements(text string) (found []string) {
	alone := strings.Contains(text, "-- +goose NO TRANSACTION")
	text = bodies.ReplaceAllString(comments.ReplaceAllString(text, ""), "")
	made := map[string]bool{}
	for _, table := range makes.FindAllStringSubmatch(text, -1) {
		made[table[1]] = true
	}
	for statement := range strings.SplitSeq(text, ";") {
		statement = strings.TrimSpace(spaces.ReplaceAllString(statement, " "))
		if alone && statement != "" && !strings.Contains(statement, "INDEX CONCURRENTLY") {
			found = append(found, statement) // an older version might write between two of its statements
			continue
		}
		for _, pattern := range lasting {
			if match := pattern.FindStringSubmatch(statement); match != nil && !made[match[1]] && !harmless.MatchString(statement) {
				found = append(found, statement)
				break
			}
		}
	}
	return found
}

// Migrations of later releases run beside readers, who wait for each of their locks.
func TestMigrationsOfLaterReleasesLockForAMoment(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(files, "*.sql")
	require.NoError(t, err)
	checked := 0
	for _, name := range names {
		number, err := strconv.Atoi(name[:5])
		require.NoError(t, err)
		text, err := files.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), upMark), "%s: statements begin behind this line, which is not the first", name)
		if firstRelease == 0 || number <= firstRelease {
			continue
		}
		require.Empty(t, lastingStatements(string(text)), name)
		checked++
	}
	if checked == 0 {
		t.Log("no migration is later than the first release")
	}
}

// Who looks for a relation or function finds all of it where it is made.
func TestARelationStandsInOnePlace(t *testing.T) {
	t.Parallel()
	made := regexp.MustCompile(`(?m)^CREATE (?:TABLE|VIEW|FUNCTION) ([\w.]+)`)
	belongs := regexp.MustCompile(`(?m)^(?:COMMENT ON (?:TABLE|VIEW|FUNCTION)|COMMENT ON COLUMN|CREATE (?:UNIQUE )?INDEX \w+ ON|ALTER TABLE) ` +
		`((?:ledger\.)?\w+)`)
	replaced := regexp.MustCompile(`\b(?:OR REPLACE|DROP|ADD COLUMN)\b`)
	names, err := fs.Glob(files, "*.sql")
	require.NoError(t, err)
	for _, name := range names {
		if number, err := strconv.Atoi(name[:5]); err != nil || firstRelease > 0 && number > firstRelease {
			require.NoError(t, err)
			continue
		}
		text, err := files.ReadFile(name)
		require.NoError(t, err)
		here := map[string]bool{}
		for _, of := range made.FindAllStringSubmatch(string(text), -1) {
			here[of[1]] = true
		}
		for _, of := range belongs.FindAllStringSubmatch(string(text), -1) {
			require.True(t, here[of[1]], "%s: %s is made elsewhere", name, of[1])
		}
		require.Empty(t, replaced.FindString(comments.ReplaceAllString(string(text), "")), name)
	}
}

func TestLastingStatementsAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"ALTER TABLE updates ADD COLUMN size bigint;":                                                                                 0,
		"ALTER TABLE updates ADD COLUMN size bigint NOT NULL DEFAULT 0;":                                                              0,
		"ALTER TABLE updates ADD COLUMN at timestamptz DEFAULT clock_timestamp();":                                                    1,
		"ALTER TABLE updates ALTER COLUMN size TYPE numeric;":                                                                         1,
		"ALTER TABLE updates\n    ALTER COLUMN size SET NOT NULL;":                                                                    1,
		"ALTER TABLE updates ADD CONSTRAINT positive CHECK (size > 0);":                                                               1,
		"ALTER TABLE updates ADD CONSTRAINT positive CHECK (size > 0) NOT VALID;":                                                     0,
		"CREATE INDEX updates_size ON updates (size);":                                                                                1,
		"CREATE INDEX updates_size ON ONLY updates (size);":                                                                           0,
		"-- +goose NO TRANSACTION\nCREATE INDEX CONCURRENTLY updates_size ON updates (size);":                                         0,
		"-- +goose NO TRANSACTION\nALTER TABLE updates ADD COLUMN size bigint;":                                                       1,
		"CREATE TABLE sizes (n int); CREATE INDEX ON sizes (n); INSERT INTO sizes VALUES (1);":                                        0,
		"UPDATE updates SET size = 0;":                                                                                                1,
		"-- UPDATE updates SET size = 0;\nCREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN DELETE FROM updates; END $$;": 0,
	} {
		require.Len(t, lastingStatements(text), want, text)
	}
}

// An index is built concurrently in a file without a transaction, in which no lock can be taken before.
func TestAMigrationWithoutATransaction(t *testing.T) {
	t.Parallel()
	text := func(statements string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("-- Something.\n" + statements)}
	}
	adapted := adapted{fstest.MapFS{
		"00001_tables.sql": text("\n-- +goose Up\nCREATE TABLE sizes (n integer);\n"),
		"00002_column.sql": text("\n-- +goose Up\nALTER TABLE sizes ADD COLUMN m integer;\n"),
		"00003_index.sql":  text(aloneMark + "\n\n-- +goose Up\nCREATE INDEX CONCURRENTLY sizes_n ON sizes (n);\nCREATE INDEX CONCURRENTLY sizes_m ON sizes (m);\n"),
	}, "ledger", func(string) string { return "LOCK TABLE sizes IN EXCLUSIVE MODE;\n" }}
	db, err := sql.Open("pgx", throwaway.Database(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	provider, err := goose.NewProvider(goose.DialectPostgres, db, adapted)
	require.NoError(t, err)
	applied, err := provider.Up(t.Context())
	require.NoError(t, err)
	require.Len(t, applied, 3)
}
