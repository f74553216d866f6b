package check

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/store"
)

// The settings of a whole server, which tests can't change in a shared one.
func TestSettingsOfTheServer(t *testing.T) {
	t.Parallel()
	usual := map[string]store.Setting{
		"fsync": {Value: "on"}, "full_page_writes": {Value: "on"}, "data_checksums": {Value: "on"}, "synchronous_commit": {Value: "on"}, "autovacuum": {Value: "on"},
		"statement_timeout": {Value: "0", Unit: "ms"}, "default_transaction_isolation": {Value: "read committed"},
		"shared_buffers": {Value: "1048576", Unit: "8kB"}, "max_wal_size": {Value: "8192", Unit: "MB"},
		"max_locks_per_transaction": {Value: "64"}, "max_connections": {Value: "100"}, "max_prepared_transactions": {Value: "0"},
	}
	look := func(relations int, changes map[string]store.Setting) []string {
		facts := store.ServerFacts{User: "indexer", Settings: map[string]store.Setting{}}
		for name, value := range usual {
			facts.Settings[name] = value
		}
		for name, value := range changes {
			facts.Settings[name] = value
		}
		c := &checker{report: &Report{}}
		s := c.section(GroupDatabase)
		c.checkSettings(s, facts)
		reportLocks(s, facts, store.SchemaFacts{Relations: relations})
		return levels(*c.report)
	}
	require.Equal(t, []string{"ok database/settings"}, look(3000, nil))
	require.Equal(t, []string{"warning database/settings"}, look(0, map[string]store.Setting{"fsync": {Value: "off"}}))
	require.Equal(t, []string{"warning database/settings"}, look(0, map[string]store.Setting{"full_page_writes": {Value: "off"}}))
	require.Equal(t, []string{"warning database/settings"}, look(0, map[string]store.Setting{"data_checksums": {Value: "off"}}))
	require.Equal(t, []string{"warning database/settings"}, look(0, map[string]store.Setting{"autovacuum": {Value: "off"}}))
	require.Equal(t, []string{"note database/settings", "ok database/settings"}, look(0, map[string]store.Setting{"synchronous_commit": {Value: "off"}}))
	require.Equal(t, []string{"warning database/settings"}, look(0, map[string]store.Setting{"transaction_timeout": {Value: "1000", Unit: "ms"}}))
	require.Equal(t, []string{"warning database/settings"}, look(0, map[string]store.Setting{"statement_timeout": {Value: "5000", Unit: "ms"}}))
	require.Equal(t, []string{"ok database/settings"}, look(0, map[string]store.Setting{"statement_timeout": {Value: "600000", Unit: "ms"}}))
	require.Equal(t, []string{"warning database/settings"}, look(0, map[string]store.Setting{"default_transaction_isolation": {Value: "serializable"}}))
	require.Equal(t, []string{"ok database/settings", "note database/tuning"}, look(0, map[string]store.Setting{"shared_buffers": {Value: "16384", Unit: "8kB"}}))
	require.Equal(t, []string{"ok database/settings", "note database/tuning"}, look(0, map[string]store.Setting{"max_wal_size": {Value: "1024", Unit: "MB"}}))
	require.Equal(t, []string{"ok database/settings", "warning database/locks"}, look(3201, nil))
	// What can't be read says nothing.
	require.Equal(t, []string{"ok database/settings"}, look(10, map[string]store.Setting{
		"statement_timeout": {Value: "x"}, "shared_buffers": {Value: "x", Unit: "8kB"}, "max_wal_size": {Value: "1", Unit: "?"},
		"max_locks_per_transaction": {Value: ""},
	}))
}

func TestTransports(t *testing.T) {
	t.Parallel()
	for want, transport := range map[Level]store.Transport{
		OK:      {TLS: "TLS 1.3", Verified: true},
		Note:    {TLS: "TLS 1.3"},
		Warning: {},
	} {
		c := &checker{report: &Report{}}
		c.reportTransport(c.section(GroupDatabase), transport)
		require.Equal(t, want, c.report.Findings[0].Level)
	}
	c := &checker{report: &Report{}}
	c.reportTransport(c.section(GroupDatabase), store.Transport{Local: true})
	require.Equal(t, OK, c.report.Findings[0].Level)
}

func TestAdviceAboutRefusals(t *testing.T) {
	t.Parallel()
	for code, says := range map[string]string{
		"28P01": "password", "28000": "pg_hba.conf", "3D000": "CREATE DATABASE", "53300": "up to 11", "57P03": "check again", "42501": "CONNECT", "XX000": "log", "08P01": "leave the parameter out",
	} {
		require.Contains(t, (&checker{cfg: Config{LedgerURL: "http://h"}}).refusalAdvice(&pgconn.PgError{Code: code, Message: "unsupported startup parameter: x"}), says)
	}
	both := &checker{cfg: Config{LedgerURL: "http://h", ScanURL: "http://h", ScanHistory: "transactions"}}
	require.Contains(t, both.refusalAdvice(&pgconn.PgError{Code: "53300"}), "up to 18", "each stream has a leader of its own")
}
