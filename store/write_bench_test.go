package store

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/storetest"
)

// busyLedger makes pages like a busy participant's: each update creates two contracts and ends two, by an archival and
// by a choice. A tenth of the contracts live long, the others for some hundred updates.
type busyLedger struct {
	at    ledger.Offset
	users int64 // each contract is one's; 0: all are of the same
}

// user is the party that a contract is of.
func (l *busyLedger) user(contract int64) string {
	name := "alice"
	if l.users > 0 {
		name = fmt.Sprint("user-", contract*7919%l.users)
	}
	return fmt.Sprintf("%s::1220%x", name, sha256.Sum256([]byte(name)))
}

func busyContract(n int64) string { return fmt.Sprintf("00%x%[1]x", sha256.Sum256(fmt.Append(nil, n))) }

func (l *busyLedger) page(updates int) ledger.Page {
	page := ledger.Page{From: l.at}
	for range updates {
		l.at++
		u := storetest.NewUpdate(l.at, "sync::1")
		for node := range int64(2) {
			n := 2*int64(l.at) + node
			c := storetest.Creation(int32(node), busyContract(n))
			parties := []string{l.user(n), "DSO::1220" + strings.Repeat("cd", 32)}
			c.Argument = ledger.JSON(fmt.Sprintf(`{"owner": "%s", "note": "%s", "amount": {"initialAmount": "%d.0000000000"}}`, parties[0], strings.Repeat("n", 800), l.at))
			c.Signatories, c.Observers, c.WitnessParties = parties, []string{}, parties
			u.Created = append(u.Created, c)
		}
		for node := range int64(2) {
			lived := int64(300)
			if l.at%10 == 0 {
				lived = 30_000
			}
			n := 2*(int64(l.at)-lived) + node
			parties := []string{l.user(n), "DSO::1220" + strings.Repeat("cd", 32)}
			if node == 0 {
				a := storetest.Archival(2, busyContract(n))
				a.WitnessParties = parties
				u.Archived = append(u.Archived, a)
			} else {
				e := storetest.Exercise(3, busyContract(n), true, storetest.Ptr(true))
				e.ActingParties, e.WitnessParties = parties[:1], parties
				u.Exercised = append(u.Exercised, e)
			}
		}
		page.Updates = append(page.Updates, u)
	}
	page.To = l.at
	return page
}

// BenchmarkWrite writes batches of 2,000 updates ahead: conversion into rows, COPY and commit. Contracts are all of one
// user, of so many that their lists are not all remembered, or each of another one.
func BenchmarkWrite(b *testing.B) {
	for _, users := range []int64{0, 100_000, 1 << 40} {
		b.Run(fmt.Sprint("users=", users), func(b *testing.B) {
			d := newDatabase(b)
			l := d.started()
			const updates = 2_000
			busy := busyLedger{users: users}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				pages := []ledger.Page{busy.page(updates)}
				b.StartTimer()
				require.NoError(b, l.WriteAhead(b.Context(), storetest.Scope, pages))
			}
			events := float64(b.N) * updates * 4
			b.ReportMetric(float64(b.N)*updates/b.Elapsed().Seconds(), "updates/s")
			b.ReportMetric(d.bytes()/events, "bytes/event")
		})
	}
}

// bytes is what the tables take, with their indexes.
func (d *testDB) bytes() (bytes float64) {
	d.T.Helper()
	err := d.Conn.QueryRow(d.T.Context(), `SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
		WHERE c.relnamespace = 'indexer'::regnamespace AND c.relkind = 'r'`).Scan(&bytes)
	require.NoError(d.T, err)
	return bytes
}

// BenchmarkProject shows 10,000 updates at once, over 200,000 other active contracts: from memory, and read back.
func BenchmarkProject(b *testing.B) {
	for _, remembered := range []bool{true, false} {
		b.Run(map[bool]string{true: "remembered", false: "read back"}[remembered], func(b *testing.B) {
			d := newDatabase(b)
			l := d.started()
			d.Exec(`INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
				SELECT '00' || encode(sha256(n::text::bytea), 'hex') || encode(sha256((-n)::text::bytea), 'hex'), 1, 1, n, 1000, 0
				FROM generate_series(1, 200000) n`)
			d.Exec("VACUUM ANALYZE indexer.active_contracts")
			const updates = 10_000
			busy := busyLedger{}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				from := busy.at
				for range 5 {
					require.NoError(b, l.WriteAhead(b.Context(), storetest.Scope, []ledger.Page{busy.page(updates / 5)}))
				}
				if !remembered {
					l.pending = active.NewPending()
				}
				b.StartTimer()
				require.NoError(b, l.MoveWatermark(b.Context(), storetest.Scope, from, busy.at))
			}
			b.ReportMetric(float64(b.N)*updates/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
