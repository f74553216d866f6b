package store

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// busyLedger makes pages like a busy participant's: each update creates two contracts and ends two, by an archival and by a
// choice. A tenth of the contracts live long, the others for some hundred updates.
type busyLedger struct{ at ledger.Offset }

func busyContract(n int64) string { return fmt.Sprintf("00%x%[1]x", sha256.Sum256(fmt.Append(nil, n))) }

func (l *busyLedger) page(updates int) ledger.Page {
	page := ledger.Page{From: l.at}
	parties := []string{strings.Repeat("alice", 20), strings.Repeat("dso::", 20)}
	for range updates {
		l.at++
		u := newUpdate(l.at, "sync::1")
		for node := range int64(2) {
			c := creation(int32(node), busyContract(2*int64(l.at)+node))
			c.Argument = ledger.JSON(fmt.Sprintf(`{"owner": "%s", "note": "%s", "amount": {"initialAmount": "%d.0000000000"}}`, parties[0], strings.Repeat("n", 800), l.at))
			c.Signatories, c.WitnessParties = parties, parties
			u.Created = append(u.Created, c)
		}
		for node := range int64(2) {
			lived := int64(300)
			if l.at%10 == 0 {
				lived = 30_000
			}
			ended := busyContract(2*(int64(l.at)-lived) + node)
			if node == 0 {
				u.Archived = append(u.Archived, archival(2, ended))
			} else {
				u.Exercised = append(u.Exercised, exercise(3, ended, true, ptr(true)))
			}
		}
		page.Updates = append(page.Updates, u)
	}
	page.To = l.at
	return page
}

// BenchmarkWrite writes batches of 2,000 updates ahead: conversion into rows, COPY and commit.
func BenchmarkWrite(b *testing.B) {
	d := newDatabase(b)
	l := d.started()
	const updates = 2_000
	var busy busyLedger
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		pages := []ledger.Page{busy.page(updates)}
		b.StartTimer()
		require.NoError(b, l.Write(b.Context(), testScope, pages))
	}
	b.ReportMetric(float64(b.N)*updates/b.Elapsed().Seconds(), "updates/s")
}

// BenchmarkProject shows 10,000 updates at once, over 200,000 other active contracts: from memory, and read back.
func BenchmarkProject(b *testing.B) {
	for _, remembered := range []bool{true, false} {
		b.Run(map[bool]string{true: "remembered", false: "read back"}[remembered], func(b *testing.B) {
			d := newDatabase(b)
			l := d.started()
			d.exec(`INSERT INTO indexer.active_contracts SELECT '00' || encode(sha256(n::text::bytea), 'hex') || encode(sha256((-n)::text::bytea), 'hex'), 1, 1, n, 1000, 0
				FROM generate_series(1, 200000) n`)
			d.exec("VACUUM ANALYZE indexer.active_contracts")
			const updates = 10_000
			busy := busyLedger{}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				from := busy.at
				for range 5 {
					require.NoError(b, l.Write(b.Context(), testScope, []ledger.Page{busy.page(updates / 5)}))
				}
				if !remembered {
					l.pending = newPending()
				}
				b.StartTimer()
				require.NoError(b, l.Project(b.Context(), testScope, from, busy.at))
			}
			b.ReportMetric(float64(b.N)*updates/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
