package throwaway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The pooling modes of PgBouncer.
const (
	PoolSessions     = "session"
	PoolTransactions = "transaction"
	PoolStatements   = "statement"
)

// PgBouncer starts the real PgBouncer before a database, until the test is done, in one
// of its pooling modes, with further lines of its configuration. It authenticates
// nobody. It returns the URL to connect to, and skips the test on a machine without it.
func PgBouncer(t testing.TB, database, mode string, settings ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // not in everybody's PATH
	}
	if err != nil {
		t.Skip("this test needs PgBouncer (Debian's package pgbouncer), which is not installed")
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBouncer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stop)
	if err := b.configure(config, mode, settings); err != nil {
		t.Fatal(err)
	}
	connection := "postgres://somebody@/" + url.PathEscape(config.Database) + "?port=" + bouncerPort + "&host=" +
		url.QueryEscape(b.folder)
	if err := b.start(t, program, connection); err != nil {
		t.Fatalf("start PgBouncer: %v; its log:\n%s", err, b.logged())
	}
	return connection
}

// bouncerPort is in the name of the socket, which is in a folder of its own.
const bouncerPort = "6432"

// bouncer is a PgBouncer and its files.
type bouncer struct {
	folder  string
	account *account
	alive   io.Closer     // it ends when this is closed, also by the end of this process
	ended   chan struct{} // closed when it has ended; nil: it was not started
}

func newBouncer() (*bouncer, error) {
	acc, err := clusterAccount() // it does not run as root either
	if err != nil {
		return nil, err
	}
	b := &bouncer{account: acc}
	if b.folder, err = os.MkdirTemp(temporaryFolder(acc, false), "pgb-"); err != nil {
		return nil, err
	}
	if acc != nil {
		err = os.Chown(b.folder, acc.uid, acc.gid)
	}
	return b, err
}

func (b *bouncer) configure(config *pgx.ConnConfig, mode string, settings []string) error {
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	server := fmt.Sprintf("* = host=%s port=%d user=%s", quoted(config.Host), config.Port, quoted(config.User))
	if config.Password != "" { // it takes no empty one
		server += " password=" + quoted(config.Password)
	}
	lines := []string{
		"[databases]",
		server,
		"[pgbouncer]",
		"pool_mode = " + mode,
		"auth_type = any",
		"listen_addr =",
		"listen_port = " + bouncerPort,
		"unix_socket_dir = " + b.folder,
		"max_client_conn = 200",
		"default_pool_size = 50",
	}
	// It may be another user's.
	return os.WriteFile(b.file("ini"), []byte(strings.Join(append(lines, settings...), "\n")+"\n"), 0o644)
}

// bounceScript runs PgBouncer until its input ends. The kernel ends it when this
// process is gone, even by SIGKILL.
const bounceScript = `
"$1" "$2/ini" </dev/null >"$2/log" 2>&1 &
cat >/dev/null
kill -KILL $!
wait
rm -rf "$2"`

func (b *bouncer) start(t testing.TB, program, connection string) error {
	// With the test's context it would end before the connections through it are closed.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/bin/sh", "-c", bounceScript, "bounce", program,
		b.folder)
	cmd.Dir = b.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if b.account != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(b.account.uid), Gid: uint32(b.account.gid)}
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.alive, b.ended = input, make(chan struct{})
	go func() {
		_ = cmd.Wait() // it was killed, so there is always an error
		close(b.ended)
	}()
	return awaitAnswer(t.Context(), connection, b.ended)
}

// stop ends it and removes its files.
func (b *bouncer) stop() {
	if b.ended == nil {
		_ = os.RemoveAll(b.folder)
		return
	}
	_ = b.alive.Close()
	<-b.ended
}

func (b *bouncer) file(name string) string { return filepath.Join(b.folder, name) }

func (b *bouncer) logged() string {
	text, err := os.ReadFile(b.file("log"))
	if err != nil {
		return errors.Join(errors.New("it has none"), err).Error()
	}
	return string(text)
}
