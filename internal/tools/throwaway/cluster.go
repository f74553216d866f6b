package throwaway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cluster is a temporary database cluster and its server process.
type cluster struct {
	programs string // folder of initdb, postgres and pg_ctl
	folder   string // data, socket and log
	account  *account
	clock    string // libfaketime, if the server has a clock of its own

	server *exec.Cmd
	exited chan struct{} // closed when server has ended

	watcher *exec.Cmd
	alive   *os.File // the watcher acts when this end of its pipe closes
}

// superuser is the database user of clusters and containers.
const superuser = "postgres"

// socketPathLimit is the longest path of a Unix socket that every system accepts:
// 104 bytes on macOS, 108 on Linux, with the final zero.
const socketPathLimit = 103

// account is the system user that a cluster runs as.
type account struct {
	name     string
	uid, gid int
}

func startLocal(ctx context.Context, programs string, o Options) (*Server, error) {
	c, err := newCluster(programs, o)
	if err != nil {
		return nil, fmt.Errorf("start a temporary PostgreSQL cluster with %s: %w", programs, err)
	}
	connection, err := c.create(ctx, o)
	if err == nil {
		err = c.run(ctx, connection)
	}
	if err != nil {
		err = fmt.Errorf("start a temporary PostgreSQL cluster with %s: %w", programs, err)
		return nil, errors.Join(err, c.remove())
	}
	return &Server{kind: Local, database: connection, cluster: c}, nil
}

// newCluster makes the folder and starts its watcher.
func newCluster(programs string, o Options) (*cluster, error) {
	acc, err := clusterAccount()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(temporaryFolder(acc, o.inMemory()), "pg-")
	if err != nil {
		return nil, err
	}
	c := &cluster{programs: programs, folder: folder, account: acc}
	if acc != nil {
		err = os.Chown(folder, acc.uid, acc.gid)
	}
	if err == nil && o.Clock {
		err = c.beginClock()
	}
	if err == nil {
		err = c.watch()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return c, nil
}

// clusterAccount returns the user to run PostgreSQL as, nil for the user of this
// process. PostgreSQL refuses to run as root.
func clusterAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &account{name: name, uid: uid, gid: gid}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and this machine has neither a user postgres nor nobody; " +
		"run as another user")
}

// memoryFolder is a file system in memory that Linux has, and memoryNeeded what
// must be free there: a cluster takes 40 MB and each database about 10.
const (
	memoryFolder = "/dev/shm"
	memoryNeeded = 2 << 30
)

// temporaryFolder returns the folder to make the cluster's folder in: in memory
// if that is wanted and large enough, else the system's folder for temporary
// files, or /tmp where that one's path is too long for a socket or not open to
// the cluster's user.
func temporaryFolder(acc *account, inMemory bool) string {
	var memory syscall.Statfs_t
	if inMemory && syscall.Statfs(memoryFolder, &memory) == nil &&
		memory.Bavail*uint64(memory.Bsize) >= memoryNeeded {
		return memoryFolder
	}
	folder := os.TempDir()
	longest := filepath.Join(folder, "pg-0123456789", ".s.PGSQL.65535")
	if len(longest) > socketPathLimit {
		return "/tmp"
	}
	if acc == nil {
		return folder
	}
	for dir := folder; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
		if dir == filepath.Dir(dir) {
			return folder
		}
	}
}

// command prepares a program that runs as the cluster's user, in a session of
// its own so that a Ctrl-C in the terminal reaches only this process, which still
// needs the cluster while it shuts down.
func (c *cluster) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = c.folder // the current folder may be closed to the cluster's user
	cmd.Env = append(os.Environ(), "HOME="+c.folder, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.account != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.account.uid), Gid: uint32(c.account.gid)}
	}
	return cmd
}

// watchScript waits until its input ends. The kernel ends it when the process that
// holds the other end is gone, even by SIGKILL. Then it ends the server and removes
// the folder. It tries again because the server, or the initdb before it, may still
// write there.
//
// A parent death signal would be shorter, but Linux only, tied to the thread that
// started the server rather than to the process, and would leave the folder.
const watchScript = `
cat >/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do
	"$1/pg_ctl" stop -D "$2/data" -m immediate -t 10
	cd / && rm -rf "$2" && exit 0
	sleep 1
done
exit 1`

// watch starts the process that outlives this one and cleans up after it.
func (c *cluster) watch() error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	// It must outlive every context.
	c.watcher = c.command(context.Background(), "/bin/sh", "-c", watchScript, "watch", c.programs, c.folder)
	c.watcher.Stdin = theirs
	if err := c.watcher.Start(); err != nil {
		ours.Close()
		return fmt.Errorf("start the cluster's watcher: %w", err)
	}
	c.alive = ours
	return nil
}

// create runs initdb, writes the settings and returns the connection URL.
func (c *cluster) create(ctx context.Context, o Options) (string, error) {
	password := rand.Text()
	passwordFile := filepath.Join(c.folder, "password")
	if err := c.write(passwordFile, password+"\n"); err != nil {
		return "", err
	}
	args := []string{
		"-D", c.data(), "-U", superuser, "--pwfile", passwordFile,
		// The folder is open to the cluster's user alone, and so is the socket.
		"--auth-local=trust", "--auth-host=scram-sha-256",
		"--encoding=UTF8", "--no-sync", "--no-instructions",
	}
	out, err := c.initdb(ctx, append(args, "--locale=C.UTF-8")...)
	if err != nil && bytes.Contains(out, []byte("invalid locale")) {
		// macOS has no C.UTF-8. C sorts the same way.
		out, err = c.initdb(ctx, append(args, "--locale=C")...)
	}
	if err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}

	port, listen := 5432, ""
	if o.TCP {
		if port, err = freePort(ctx); err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		listen = "127.0.0.1"
	}
	settings := serverSettings(o)
	settings["port"] = strconv.Itoa(port)
	settings["listen_addresses"] = listen
	settings["unix_socket_directories"] = c.folder
	// Later lines of the file override those of initdb, and ALTER SYSTEM overrides
	// them, which it would not do with command line options.
	if err := c.appendConf(settings); err != nil {
		return "", fmt.Errorf("write the server's settings: %w", err)
	}

	query := "host=" + socketFolder(c.folder) + "&port=" + strconv.Itoa(port)
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/postgres", RawQuery: query}
	if o.TCP {
		u.User = url.UserPassword(superuser, password)
		u.Host = net.JoinHostPort(listen, strconv.Itoa(port))
		u.RawQuery = "sslmode=disable"
	}
	return u.String(), nil
}

// initdb makes the cluster's data folder, from nothing.
func (c *cluster) initdb(ctx context.Context, args ...string) ([]byte, error) {
	return c.command(ctx, filepath.Join(c.programs, "initdb"), args...).CombinedOutput()
}

// serverSettings are the settings of clusters and containers alike.
func serverSettings(o Options) map[string]string {
	settings := map[string]string{
		"max_connections": "200", // packages of tests share a server
		"shared_buffers":  "128MB",
		"timezone":        "UTC",
		"log_timezone":    "UTC",
		// As in our own sessions. Compiling a question about a view takes a test up to ten times as long as its answer.
		"jit": "off",
	}
	if !o.Durable {
		// synchronous_commit stays on: a commit is handed to the operating system
		// before it is reported, so it survives the server's crash.
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, o.Settings)
	return settings
}

func (c *cluster) appendConf(settings map[string]string) error {
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := strings.ReplaceAll(settings[name], "'", "''")
		if _, err := fmt.Fprintf(f, "%s = '%s'\n", name, value); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}

// write makes a file that belongs to the cluster's user.
func (c *cluster) write(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	if c.account == nil {
		return nil
	}
	return os.Chown(path, c.account.uid, c.account.gid)
}

// run starts the server and waits until it answers.
func (c *cluster) run(ctx context.Context, connection string) error {
	log, err := os.OpenFile(c.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// Not ctx: it ends with the start.
	c.server = c.command(context.Background(), filepath.Join(c.programs, "postgres"), "-D", c.data())
	c.server.Env = append(c.server.Env, c.clockEnvironment()...)
	c.server.Stdout, c.server.Stderr = log, log
	if err := c.server.Start(); err != nil {
		return err
	}
	c.exited = make(chan struct{})
	go func(server *exec.Cmd, exited chan struct{}) {
		_ = server.Wait() // a killed server's exit code is meaningless
		close(exited)
	}(c.server, c.exited)
	if err := awaitAnswer(ctx, connection, c.exited); err != nil {
		return fmt.Errorf("%w; the end of its log:\n%s", err, c.logEnd())
	}
	return nil
}

// kill ends the server by an immediate shutdown and waits for its end. Killing
// the first process with SIGKILL instead would let the sessions it leaves behind
// finish, and even commit, what they are doing.
func (c *cluster) kill() error {
	if c.exited == nil {
		return nil
	}
	select {
	case <-c.exited:
		return nil
	default:
	}
	if err := c.server.Process.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the PostgreSQL server: %w", err)
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(30 * time.Second): // it kills its own processes after 5
		return errors.Join(
			fmt.Errorf("the PostgreSQL server in %s did not end and was killed", c.folder),
			c.server.Process.Kill())
	}
}

// remove ends the server and its watcher and removes the folder.
func (c *cluster) remove() error {
	err := errors.Join(c.kill(), os.RemoveAll(c.folder), c.alive.Close())
	if watcherErr := c.watcher.Wait(); watcherErr != nil {
		err = errors.Join(err, fmt.Errorf("remove the cluster's folder %s: %w", c.folder, watcherErr))
	}
	return err
}

func (c *cluster) data() string { return filepath.Join(c.folder, "data") }
func (c *cluster) log() string  { return filepath.Join(c.folder, "log") }

// logEnd returns the last lines of the server's log, for an error.
func (c *cluster) logEnd() string {
	content, err := os.ReadFile(c.log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// freePort returns a loopback port that was free a moment ago.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
