package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"ledgerindexer/sandbox"
)

// serveCommand is the first argument of a process of bench that serves a data set, instead of a command line.
const serveCommand = "serve"

// The kinds of server.
const (
	serveUpdates  = "updates"  // an updates data set
	serveSnapshot = "snapshot" // the data set of a snapshot
	serveHistory  = "history"  // the data set of a transaction history, repeated where there are copies
	serveCopies   = "copies"   // an updates data set, repeated
	serveNetwork  = "network"  // the data set of a network's updates
	serveGrowing  = "growing"  // a ledger that grows on request
	serveScan     = "scan"     // the Scan service of such a ledger
)

// serveOptions configure a serving process.
type serveOptions struct {
	Kind    string
	Data    string        // name of the data set
	Pages   bool          // serve pages of 2,000; else only lists of 200
	Latency time.Duration // before every answer
	Copies  int           // of the data set
	Later   later         // each copy than the one before
}

// handler returns the handler for the options.
func (o serveOptions) handler() (http.Handler, error) {
	if o.Kind == serveGrowing || o.Kind == serveScan {
		return newGrowing(o.Kind), nil
	}
	data, err := openDataset(o.Data)
	if err != nil {
		return nil, err
	}
	options := sandbox.ServerOptions{Latency: o.Latency, Version: "3.4"}
	if o.Pages {
		options.Version = "3.5"
	}
	var next http.Handler
	switch o.Kind {
	case serveUpdates:
		data.index("updateId")
		next = sandbox.NewServer(sandbox.NewPrepared(data, nil), options)
	case serveCopies:
		data.index("updateId")
		next = sandbox.NewServer(sandbox.NewPrepared(newCopies(data, o.Copies, o.Later), nil), options)
	case serveSnapshot:
		next = sandbox.NewServer(sandbox.NewPrepared(nil, data), sandbox.ServerOptions{})
	case serveNetwork:
		data.index("update_id")
		next = sandbox.NewPreparedNetwork(data)
	case serveHistory:
		data.index("event_id")
		next = sandbox.NewPreparedScan(data)
		if o.Copies > 1 {
			next = sandbox.NewPreparedScan(newCopies(data, o.Copies, o.Later))
		}
	default:
		return nil, fmt.Errorf("no server is of the kind %q", o.Kind)
	}
	return newRequestCounter(next), nil
}

// serve is the serving process. It prints its address to stdout and ends when stdin ends, which also happens when its
// parent process is gone.
func serve(ctx context.Context, arg string, stdin io.Reader, stdout io.Writer) error {
	var o serveOptions
	if err := json.Unmarshal([]byte(arg), &o); err != nil {
		return fmt.Errorf("what to serve: %w", err)
	}
	h, err := o.handler()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // until its end, whatever the error
		_ = server.Close()                // nobody waits for an answer
	}()
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// server is a process that serves.
type server struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
}

// startServer starts this program again, to serve.
func startServer(ctx context.Context, o serveOptions) (*server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.CommandContext(ctx, program, serveCommand, string(arg))}
	s.cmd.Stderr = os.Stderr
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s server: %w", o.Kind, err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the address of the %s server: %w", o.Kind, err), s.stop())
	}
	s.url = strings.TrimSpace(line)
	return s, nil
}

// stop ends the process.
func (s *server) stop() error {
	s.stdin.Close()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the server ended with %w", err)
	}
	return nil
}

// get requests one of bench's own paths.
func (s *server) get(ctx context.Context, path string, answer any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s with %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// stats returns the server's requests so far.
func (s *server) stats(ctx context.Context) (asked stats, err error) {
	return asked, s.get(ctx, pathStats, &asked)
}
