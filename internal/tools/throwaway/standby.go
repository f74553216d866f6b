package throwaway

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// Standby starts a hot standby of a temporary cluster without TCP, for one test, and stops it when the test is done.
// Its data comes by streaming replication, and it answers queries that only read.
func Standby(t testing.TB, of *Server) *Server {
	t.Helper()
	s, err := startStandby(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop the test's standby: %v", err)
		}
	})
	return s
}

func startStandby(ctx context.Context, of *Server) (*Server, error) {
	if of.cluster == nil {
		return nil, fmt.Errorf("start a standby of a %s PostgreSQL server: %w", of.kind, ErrNotLocal)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := newCluster(of.cluster.programs, Options{InMemory: true})
	if err != nil {
		return nil, fmt.Errorf("start a standby: %w", err)
	}
	s := &Server{kind: Local, cluster: c}
	out, err := c.command(ctx, filepath.Join(c.programs, "pg_basebackup"), "--pgdata", c.data(), "--host",
		of.cluster.folder, "--username", superuser,
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("pg_basebackup: %w: %s", err, bytes.TrimSpace(out))
	} else if err = c.appendConf(map[string]string{"unix_socket_directories": c.folder}); err == nil {
		s.database = strings.Replace(of.database, socketFolder(of.cluster.folder), socketFolder(c.folder), 1)
		err = c.run(ctx, s.database)
	}
	if err != nil {
		_ = s.Stop()
		return nil, fmt.Errorf("start a standby: %w", err)
	}
	return s, nil
}

// socketFolder is a folder as the query of a URL has it.
func socketFolder(folder string) string {
	return strings.ReplaceAll(url.QueryEscape(folder), "%2F", "/")
}
