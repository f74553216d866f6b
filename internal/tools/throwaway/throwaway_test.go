package throwaway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { closeConn(conn) })
	return conn
}

// setting returns the value of a server setting, as SHOW prints it.
func setting(t *testing.T, conn *pgx.Conn, name string) string {
	t.Helper()
	var value string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&value))
	return value
}

func TestLocalServer(t *testing.T) {
	t.Parallel()
	s := LocalServer(t, Options{Settings: map[string]string{"application_name": "it's me"}})
	require.Equal(t, Local, s.Kind())
	require.NoError(t, s.CreateDatabase(t.Context(), `odd "name"`))

	conn := connect(t, s.URL(`odd "name"`))
	require.Equal(t, `odd "name"`, conn.Config().Database)
	require.Equal(t, "UTF8", setting(t, conn, "server_encoding"))
	require.Equal(t, "UTC", setting(t, conn, "TimeZone"))
	require.Equal(t, "off", setting(t, conn, "fsync"))
	require.Equal(t, "on", setting(t, conn, "synchronous_commit"))
	require.Equal(t, "it's me", setting(t, conn, "application_name"))
	require.Empty(t, setting(t, conn, "listen_addresses"))

	folder := s.cluster.folder
	require.DirExists(t, folder)
	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop(), "a second Stop")
	require.NoDirExists(t, folder)
	require.Error(t, s.Restart(t.Context()))
}

func TestLocalServerListensWithPasswordWhereAsked(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a database server of its own")
	s := LocalServer(t, Options{TCP: true, Durable: true})
	conn := connect(t, s.URL(""))
	require.Equal(t, "127.0.0.1", conn.Config().Host)
	require.Equal(t, "on", setting(t, conn, "fsync"))

	config := conn.Config()
	config.Password = "another"
	_, err := pgx.ConnectConfig(t.Context(), config)
	require.ErrorContains(t, err, "password authentication failed")
}

func TestCommittedRowsSurviveKillAndOpenTransactionsDoNot(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a database server of its own")
	s := LocalServer(t, Options{})
	ctx := t.Context()
	conn := connect(t, s.URL(""))
	_, err := conn.Exec(ctx, "CREATE TABLE kept (n int)")
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "INSERT INTO kept VALUES (1)")
	require.NoError(t, err)
	tx, err := conn.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "INSERT INTO kept VALUES (2)")
	require.NoError(t, err)

	require.NoError(t, s.Kill())
	require.NoError(t, s.Kill(), "a second Kill")
	require.Error(t, tx.Commit(ctx))
	require.Error(t, ping(ctx, s.URL("")))
	require.NoError(t, s.Restart(ctx))

	rows, err := connect(t, s.URL("")).Query(ctx, "SELECT n FROM kept")
	require.NoError(t, err)
	kept, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	require.Equal(t, []int{1}, kept)
}

func TestStartShowsTheServersLog(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a database server of its own")
	programs, why := findPrograms(t.Context(), nil)
	if programs == "" {
		t.Skip(why)
	}
	_, err := Start(t.Context(), Options{Kind: Local, Settings: map[string]string{"max_connections": "many"}})
	require.ErrorContains(t, err, "the server ended before it answered")
	require.ErrorContains(t, err, `parameter "max_connections"`)
}

// TestClusterEndsWithItsProcess starts a cluster in another process and kills
// that one with SIGKILL.
func TestClusterEndsWithItsProcess(t *testing.T) {
	brief.Long(t, "starts a database server of its own")
	const isChild = "THROWAWAY_TEST_CHILD"
	if os.Getenv(isChild) != "" {
		s, err := Start(t.Context(), Options{Kind: Local})
		require.NoError(t, err)
		_, err = os.Stdout.WriteString("\nurl " + s.URL("") + "\nfolder " + s.cluster.folder + "\n")
		require.NoError(t, err)
		select {} // until killed
	}
	t.Parallel()
	if programs, why := findPrograms(t.Context(), nil); programs == "" {
		t.Skip(why)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), isChild+"=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var url, folder string
	for lines := bufio.NewScanner(out); folder == "" && lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "url "); ok {
			url = v
		}
		if v, ok := strings.CutPrefix(lines.Text(), "folder "); ok {
			folder = v
		}
	}
	require.DirExists(t, folder)
	conn := connect(t, url)

	require.NoError(t, child.Process.Kill())
	// The session ends when the server does.
	_, err = conn.Exec(t.Context(), "SELECT pg_sleep(3600)")
	require.Error(t, err)
	_, _ = io.Copy(io.Discard, out)
	require.Error(t, child.Wait())
	require.Eventually(t, func() bool {
		_, err := os.Stat(folder)
		return os.IsNotExist(err)
	}, 5*time.Minute, 20*time.Millisecond, "the cluster's folder is still there")
}

func TestGivenServer(t *testing.T) {
	t.Parallel()
	there := Database(t)
	o := Options{URL: there, URLFrom: "--database-url"}
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, Given, s.Kind())
	require.Equal(t, there, s.URL(""))
	require.ErrorIs(t, s.Kill(), ErrNotLocal)
	require.ErrorIs(t, s.Restart(t.Context()), ErrNotLocal)
	require.NoError(t, s.Stop())
	require.NoError(t, ping(t.Context(), there), "Stop leaves a given server alone")

	o.URL = withDatabase(there, "nobody_made_this")
	_, err = Start(t.Context(), o)
	require.ErrorContains(t, err, "connect to the PostgreSQL that --database-url names")
	_, err = Start(t.Context(), Options{Kind: Given})
	require.EqualError(t, err, "no PostgreSQL to use: TEST_DATABASE_URL is not set")
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"postgres://u:p@h:1/old?sslmode=disable": "postgres://u:p@h:1/new?sslmode=disable",
		"postgresql://h":                         "postgresql://h/new",
		"postgres://u@/old?host=/tmp/s":          "postgres://u@/new?host=/tmp/s",
		"postgres://h/old?dbname=older":          "postgres://h/new",
		"host=/tmp/s user=u":                     "host=/tmp/s user=u dbname='new'",
	} {
		got := withDatabase(given, "new")
		require.Equal(t, want, got)
		config, err := pgx.ParseConfig(got)
		require.NoError(t, err)
		require.Equal(t, "new", config.Database)
	}
}

// TestNoneIsThere empties PATH, so it can't run beside other tests.
func TestNoneIsThere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	o := Options{
		folders: []string{t.TempDir()},
		engine:  func(context.Context) error { return errors.New("nobody listens") },
	}
	_, err := Start(t.Context(), o)
	require.EqualError(t, err, "no PostgreSQL to use: TEST_DATABASE_URL is not set, "+
		"no PostgreSQL 15 or later programs (initdb, postgres) are in PATH or the usual folders, "+
		"and no container engine answers (nobody listens); provide one of the three")

	o.Kind = Local
	_, err = Start(t.Context(), o)
	require.EqualError(t, err, "no PostgreSQL to use: "+
		"no PostgreSQL 15 or later programs (initdb, postgres) are in PATH or the usual folders")
	o.Kind = Container
	_, err = Start(t.Context(), o)
	require.EqualError(t, err, "no PostgreSQL to use: no container engine answers: nobody listens")
	o.Kind = "oracle"
	_, err = Start(t.Context(), o)
	require.EqualError(t, err, `unknown kind of PostgreSQL server "oracle": use local or container`)
}

// fakePrograms makes a folder with programs that say which version they are.
func fakePrograms(t *testing.T, root, folder, version string, names ...string) string {
	t.Helper()
	dir := filepath.Join(root, folder, "bin")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, name := range names {
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

func TestInstalled(t *testing.T) {
	root, all := t.TempDir(), []string{"initdb", "pg_ctl", "postgres"}
	newest, other := fakePrograms(t, root, "newest", "99.1", all...), fakePrograms(t, root, "other", "98beta1", all...)
	again := fakePrograms(t, root, "again", "98.2", all...)
	t.Setenv("PATH", t.TempDir())
	list := func(folders ...string) ([]Programs, error) {
		t.Setenv(binsVariable, strings.Join(folders, string(os.PathListSeparator)))
		return Installed(t.Context())
	}
	usual, err := list()
	require.NoError(t, err)
	found, err := list(newest, other, again)
	require.NoError(t, err)
	require.Equal(t, append(usual, Programs{other, 98}, Programs{newest, 99}), found)

	t.Setenv("PATH", newest)
	found, err = list(other)
	require.NoError(t, err)
	require.Equal(t, append(usual, Programs{other, 98}, Programs{newest, 99}), found)

	_, err = list(root)
	require.ErrorContains(t, err, "PostgreSQL's programs in "+root+", which TEST_POSTGRES_BINS lists: ")
	old := fakePrograms(t, root, "old", "9.6.24", all...)
	_, err = list(old)
	require.EqualError(t, err, "PostgreSQL's programs in "+old+", which TEST_POSTGRES_BINS lists: they are of version 9, and 15 is the oldest")
}

func TestFindPrograms(t *testing.T) {
	root := t.TempDir()
	install := func(folder, version string, names ...string) string {
		return fakePrograms(t, root, folder, version, names...)
	}
	all := []string{"initdb", "pg_ctl", "postgres"}
	old := install("9.6", "9.6.24", all...)
	newest := install("17", "17.2 (Debian 17.2-1)", all...)
	install("16", "16.9", all...)
	install("18", "18.0", "postgres") // the client's package only
	folders := []string{filepath.Join(root, "*", "bin")}

	t.Setenv("PATH", t.TempDir())
	found, why := findPrograms(t.Context(), folders)
	require.Equal(t, newest, found, why)

	t.Setenv("PATH", filepath.Join(root, "16", "bin"))
	found, why = findPrograms(t.Context(), folders)
	require.Equal(t, filepath.Join(root, "16", "bin"), found, why)

	t.Setenv("PATH", old)
	found, why = findPrograms(t.Context(), []string{})
	require.Empty(t, found)
	require.Contains(t, why, "("+old+" has 9)")
}

func TestContainer(t *testing.T) {
	t.Parallel()
	o := OptionsFromEnv()
	o.Kind = Container
	if o.Image == "" {
		o.Image = DefaultImage
	}
	if err := engineAnswers(t.Context()); err != nil {
		t.Skipf("no container engine answers: %v", err)
	}
	if !imageExists(t.Context(), o.Image) {
		t.Skipf("the container engine has no image %s, and a test does not download one", o.Image)
	}
	if os.Getenv("TESTCONTAINERS_RYUK_DISABLED") != "true" && !imageExists(t.Context(), "testcontainers/ryuk") {
		t.Skip("the container engine has no image testcontainers/ryuk, which removes containers of killed tests; " +
			"TESTCONTAINERS_RYUK_DISABLED=true does without")
	}
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	require.Equal(t, Container, s.Kind())
	require.NoError(t, s.CreateDatabase(t.Context(), "made"))
	conn := connect(t, s.URL("made"))
	require.Equal(t, "UTF8", setting(t, conn, "server_encoding"))
	require.Equal(t, "200", setting(t, conn, "max_connections"))
	require.Equal(t, "off", setting(t, conn, "fsync"))
	require.ErrorIs(t, s.Kill(), ErrNotLocal)
	url := s.URL("")
	require.NoError(t, s.Stop())
	require.Error(t, ping(t.Context(), url))
}

// imageExists says whether the engine has the image, in any version where the
// name has none.
func imageExists(ctx context.Context, image string) bool {
	out, err := exec.CommandContext(ctx, "docker", "image", "ls", "--quiet", image).Output()
	return err == nil && len(out) > 0
}
