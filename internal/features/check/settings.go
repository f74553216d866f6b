package check

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ledgerindexer/store"
)

// checkSettings checks the settings that matter, except those that a daemon sets for its own sessions.
func (c *checker) checkSettings(s section, server store.ServerFacts) {
	role := sqlName(server.User)
	value := func(name string) string { return server.Settings[name].Value }
	found := c.report.Warnings
	for _, name := range []string{"fsync", "full_page_writes"} {
		if value(name) == "off" {
			s.warn("settings", name+" is off: after a crash of the machine the database may be silently corrupt",
				"switch it on", "ALTER SYSTEM SET "+name+" = on;", "SELECT pg_reload_conf();")
		}
	}
	if value("data_checksums") == "off" {
		s.warn("settings", "the database was made without checksums: what a disk damages is read as if it had been written",
			"stop the server and run `pg_checksums --enable` on its data directory, or make a new one with `initdb "+
				"--data-checksums`")
	}
	if value("autovacuum") == "off" {
		s.warn("settings", "autovacuum is off: the table of active contracts is updated all the time and would grow "+
			"without end",
			"switch it on", "ALTER SYSTEM SET autovacuum = on;", "SELECT pg_reload_conf();")
	}
	for _, name := range []string{"statement_timeout", "transaction_timeout"} {
		if limit := milliseconds(server.Settings[name]); limit > 0 && limit < longStatement {
			s.warn("settings", fmt.Sprintf("%s is %v for this user (%s): batches and migrations may be cut off", name, limit,
				server.Settings[name].Source),
				"switch it off for the user", "ALTER ROLE "+role+" SET "+name+" = 0;")
		}
	}
	if isolation := value("default_transaction_isolation"); isolation != "" && isolation != "read committed" {
		s.warn("settings", fmt.Sprintf("default_transaction_isolation is %s for this user (%s): transactions may fail only "+
			"because of it, and are repeated",
			isolation, server.Settings["default_transaction_isolation"].Source),
			"set it back for the user", "ALTER ROLE "+role+" SET default_transaction_isolation = 'read committed';")
	}
	if value("synchronous_commit") == "off" {
		s.note("settings", "synchronous_commit is off: after a crash of the database the last transactions are lost and "+
			"read again; readers may see the watermark go back")
	}
	if c.report.Warnings == found {
		s.ok("settings", "fsync, full_page_writes, checksums, autovacuum, timeouts and isolation are as they should be")
	}
	reportHints(s, server)
}

// longStatement is the longest time that a batch or a step of a migration may need. A shorter limit would interrupt it.
const longStatement = 2 * time.Minute

func milliseconds(setting store.Setting) time.Duration {
	n, err := strconv.ParseInt(setting.Value, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// megabytes converts a setting of memory or disk; 0 for another unit.
func megabytes(setting store.Setting) int64 {
	n, err := strconv.ParseInt(setting.Value, 10, 64)
	bytes := map[string]int64{"kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20}[setting.Unit]
	if err != nil || bytes == 0 {
		return 0
	}
	return n * bytes >> 20
}

// PostgreSQL's defaults, which are for small machines.
const (
	defaultSharedBuffers = 128  // MB
	defaultMaxWALSize    = 1024 // MB
)

// reportHints suggests settings to raise for a long history.
func reportHints(s section, server store.ServerFacts) {
	var hints []string
	if mb := megabytes(server.Settings["shared_buffers"]); mb > 0 && mb <= defaultSharedBuffers {
		hints = append(hints, fmt.Sprintf("shared_buffers (%d MB) to a quarter of the memory", mb))
	}
	if mb := megabytes(server.Settings["max_wal_size"]); mb > 0 && mb <= defaultMaxWALSize {
		hints = append(hints, fmt.Sprintf("max_wal_size (%d MB) to some GB", mb))
	}
	if len(hints) > 0 {
		s.note("tuning", "for a long history raise %s", strings.Join(hints, ", and "))
	}
}

// reportLocks compares the lock slots with the relations that a query over everything locks. Two such queries at once
// should fit.
func reportLocks(s section, server store.ServerFacts, facts store.SchemaFacts) {
	number := func(name string) int {
		n, _ := strconv.Atoi(server.Settings[name].Value)
		return n
	}
	slots := number("max_locks_per_transaction") * (number("max_connections") + number("max_prepared_transactions"))
	if needed := 2 * facts.Relations; slots > 0 && slots < needed {
		s.warn("locks", fmt.Sprintf("there are %d slots for locks and %d tables, partitions and indexes: queries over "+
			"everything may fail", slots, facts.Relations),
			"raise it, and restart the server", fmt.Sprintf("ALTER SYSTEM SET max_locks_per_transaction = %d;",
				number("max_locks_per_transaction")*max(2, needed/slots+1)))
	}
}
