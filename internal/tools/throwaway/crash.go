package throwaway

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// Crash kills the server's first process (SIGKILL), as a system that is out of memory may. The processes of its
// sessions notice it later, and may still commit; until the last of them is gone, Restart fails. ErrNotLocal where the
// server is not Local.
func (s *Server) Crash() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return fmt.Errorf("crash a %s PostgreSQL server: %w", s.kind, ErrNotLocal)
	}
	if s.cluster.exited == nil {
		return nil
	}
	if err := s.cluster.server.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the PostgreSQL server: %w", err)
	}
	<-s.cluster.exited
	return nil
}

// NeedPrograms skips a test that starts a server of its own, on a machine without PostgreSQL's programs.
func NeedPrograms(t testing.TB) {
	t.Helper()
	if programs, why := findPrograms(t.Context(), nil); programs == "" {
		t.Skipf("this test ends its PostgreSQL server and needs one of its own, but %s", why)
	}
}
