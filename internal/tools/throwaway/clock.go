package throwaway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// clockLibraries are where libfaketime is, which gives the servers of tests another clock. Patterns as in
// filepath.Glob.
var clockLibraries = []string{
	"/usr/lib/*/faketime/libfaketime.so.1", // Debian's package faketime
	"/usr/local/lib/faketime/libfaketime.so.1",
}

// clockLibrary returns the path of libfaketime; empty: it is not installed.
func clockLibrary() string {
	for _, pattern := range clockLibraries {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // a wrong pattern is the only error
			return found[0]
		}
	}
	return ""
}

// SetClock sets the clock of a server with Options.Clock ahead of the machine's, or behind it where ahead is negative.
// What the server measures by other clocks goes on, as it does where an administrator sets the machine's.
func (s *Server) SetClock(ahead time.Duration) error {
	if s.cluster == nil || s.cluster.clock == "" {
		return errors.New("set the clock of a PostgreSQL server: only a temporary cluster with Options.Clock has one of " +
			"its own")
	}
	return s.cluster.setClock(ahead)
}

// beginClock gives the cluster a clock of its own, which goes as the machine's.
func (c *cluster) beginClock() error {
	if c.clock = clockLibrary(); c.clock == "" {
		return errors.New("a clock of its own: libfaketime is not installed (Debian's package faketime)")
	}
	return c.setClock(0)
}

// setClock replaces the file that libfaketime reads: half of one would be another time.
func (c *cluster) setClock(ahead time.Duration) error {
	file := c.clockFile()
	if err := c.write(file+".new", fmt.Sprintf("%+d\n", int64(ahead/time.Second))); err != nil {
		return fmt.Errorf("set the server's clock: %w", err)
	}
	return os.Rename(file+".new", file)
}

func (c *cluster) clockFile() string { return filepath.Join(c.folder, "clock") }

// clockEnvironment makes a program read its clock from the file each time.
func (c *cluster) clockEnvironment() []string {
	if c.clock == "" {
		return nil
	}
	return []string{
		"LD_PRELOAD=" + c.clock, "FAKETIME_TIMESTAMP_FILE=" + c.clockFile(), "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DISABLE_SHM=1",
	}
}
