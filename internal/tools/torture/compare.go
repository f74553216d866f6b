package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/sandbox"
)

// truth returns what every relation of the participant must hold. It needs the stored rows to choose between releases.
func (r *round) truth(got map[string][]sandbox.Row) map[string][]sandbox.Row {
	end := r.ledger.End()
	of := func(version string) map[string][]sandbox.Row {
		if r.at > 0 {
			return r.ledger.TruthFromSnapshot(r.plan.scope(version), r.at, end)
		}
		return r.ledger.Truth(r.plan.scope(version), end)
	}
	redacted := func(truth map[string][]sandbox.Row) map[string][]sandbox.Row {
		return sandbox.Redact(truth, r.contracts, r.updates)
	}
	want := redacted(of(r.plan.version))
	if r.participant.version != r.plan.version {
		want = either(want, redacted(of(r.participant.version)), got)
	}
	maps.Copy(want, redacted(r.ledger.Holdings(r.plan.scope(r.plan.version), end)))
	if r.plan.transactions {
		maps.Copy(want, redacted(r.scan.Truth()))
	}
	return want
}

// either returns the truth for a ledger that was read from two releases: for each row the version that is stored, or
// else the older one. Releases return the same rows with different columns, and which release returned a row depends on
// timing.
func either(older, newer, got map[string][]sandbox.Row) map[string][]sandbox.Row {
	want := map[string][]sandbox.Row{}
	for relation, rows := range older {
		there := map[string]bool{}
		for _, row := range got[relation] {
			there[text(row)] = true
		}
		for i, row := range rows {
			if i < len(newer[relation]) && there[text(newer[relation][i])] {
				row = newer[relation][i]
			}
			want[relation] = append(want[relation], row)
		}
	}
	return want
}

// unequal removes the rows that are in both, so that little is left to compare in detail.
func unequal(want, got map[string][]sandbox.Row) (wanted, there map[string][]sandbox.Row) {
	wanted, there = map[string][]sandbox.Row{}, map[string][]sandbox.Row{}
	for relation, rows := range want {
		seen := map[string]int{}
		for _, row := range got[relation] {
			seen[text(row)]++
		}
		wanted[relation] = []sandbox.Row{} // or it is not compared
		for _, row := range rows {
			if t := text(row); seen[t] > 0 {
				seen[t]--
			} else {
				wanted[relation] = append(wanted[relation], row)
			}
		}
		for _, row := range got[relation] {
			if t := text(row); seen[t] > 0 {
				seen[t]--
				there[relation] = append(there[relation], row)
			}
		}
	}
	return wanted, there
}

// text encodes a row; equal rows have equal texts.
func text(row sandbox.Row) string {
	b, err := json.Marshal(row)
	if err != nil {
		panic(err) // can't happen for strings and numbers
	}
	return string(b)
}

// stored reads relations of a schema.
func stored(ctx context.Context, conn *pgx.Conn, schema string,
	relations ...string) (rows map[string][]sandbox.Row, n int, err error) {
	rows = map[string][]sandbox.Row{}
	for _, relation := range relations {
		rows[relation], err = rowsOf(ctx, conn, relation, schema+"."+relation)
		if err != nil {
			return nil, 0, err
		}
		n += len(rows[relation])
	}
	return rows, n, nil
}

// rowsOf reads the rows of a relation, or of a function that returns them.
func rowsOf(ctx context.Context, conn *pgx.Conn, relation, from string, args ...any) (rows []sandbox.Row, err error) {
	result, err := conn.Query(ctx, "SELECT row_to_json(r) FROM "+from+" r", args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	texts, err := pgx.CollectRows(result, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	for _, text := range texts {
		row, err := sandbox.DecodeRow(relation, text)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// compare compares every row with the truth.
func (r *round) compare(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, r.postgres.url())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it was only read from
	got, n, err := stored(ctx, conn, "ledger",
		slices.Concat(sandbox.Relations(), sandbox.HistoryRelations(), []string{"holdings", "holding_totals"})...)
	if err != nil {
		return err
	}
	difference := sandbox.Diff(unequal(r.truth(got), got))
	ofScan := r.compareNetwork
	if r.plan.transactions {
		ofScan = r.compareBalances
	}
	for _, more := range []func(context.Context, *pgx.Conn) (string, int,
		error){r.compareCoverage, r.compareRedactions, r.comparePast, ofScan} {
		found, rows, err := more(ctx, conn)
		if err != nil {
			return err
		}
		difference += found
		n += rows
	}
	r.tally.compared(n, difference == "")
	if difference != "" {
		return errors.New("the database is not what the ledger is:\n" + difference)
	}
	return nil
}

// compareNetwork compares the updates of the network, which are a ledger of their own, and the records that follow from
// them.
func (r *round) compareNetwork(ctx context.Context, conn *pgx.Conn) (difference string, rows int, err error) {
	got, n, err := stored(ctx, conn, "network", append(sandbox.Relations(), sandbox.HistoryRelations()...)...)
	if err != nil {
		return "", 0, err
	}
	want := r.scan.NetworkTruth()
	maps.Copy(want, r.scan.DerivedTruth())
	if difference = sandbox.Diff(unequal(want, got)); difference != "" {
		difference = "of the network: " + difference
	}
	var coverage int
	if err := conn.QueryRow(ctx,
		"SELECT count(*) FROM network_indexer.coverage WHERE from_exclusive = 0").Scan(&coverage); err != nil {
		return "", 0, fmt.Errorf("read the network's coverage: %w", err)
	}
	if coverage != 1 {
		difference += fmt.Sprintf("of the network: one row of coverage from the beginning on is wanted, and there are %d\n",
			coverage)
	}
	return difference, n, nil
}

// compareCoverage checks that all updates are covered, once.
func (r *round) compareCoverage(ctx context.Context, conn *pgx.Conn) (difference string, rows int, err error) {
	var from, to int64
	last := r.ledger.Offset(r.ledger.Len() - 1)
	err = conn.QueryRow(ctx, "SELECT count(*), min(from_exclusive), max(to_inclusive) FROM indexer.coverage").Scan(&rows,
		&from, &to)
	if err != nil {
		return "", 0, fmt.Errorf("read the coverage: %w", err)
	}
	if rows != 1 || from != r.at || to < last {
		difference = fmt.Sprintf("coverage: one row after %d up to %d or more is wanted, and there are %d after %d up to "+
			"%d\n", r.at, last, rows, from, to)
	}
	return difference, rows, nil
}

// comparePast compares what was held at an earlier offset.
func (r *round) comparePast(ctx context.Context, conn *pgx.Conn) (difference string, rows int, err error) {
	then := r.ledger.Offset(r.ledger.Len() * 3 / 4)
	held, err := rowsOf(ctx, conn, "holdings", "ledger.holdings_at($1)", then)
	if err != nil {
		return "", 0, err
	}
	want := sandbox.Redact(r.ledger.Holdings(r.plan.scope(r.plan.version), then), r.contracts, r.updates)["holdings"]
	difference = sandbox.Diff(map[string][]sandbox.Row{"holdings": want}, map[string][]sandbox.Row{"holdings": held})
	if difference != "" {
		difference = fmt.Sprintf("at offset %d: %s", then, difference)
	}
	return difference, len(held), nil
}

// compareBalances compares the sums of the balance changes in the last round, if the service sends any.
func (r *round) compareBalances(ctx context.Context, conn *pgx.Conn) (difference string, rows int, err error) {
	if !r.plan.balanceChanges {
		return "", 0, nil
	}
	var last int64
	if err := conn.QueryRow(ctx, "SELECT coalesce(max(round), 0) FROM ledger.transactions").Scan(&last); err != nil {
		return "", 0, fmt.Errorf("read the last round: %w", err)
	}
	result, err := conn.Query(ctx, "SELECT coalesce(party, ''), coalesce(balance::numeric(100, 10)::text, '') FROM "+
		"ledger.reported_balances_at($1)", last)
	if err != nil {
		return "", 0, fmt.Errorf("read the balances: %w", err)
	}
	got := map[string]string{}
	var party, balance string
	_, err = pgx.ForEachRow(result, []any{&party, &balance}, func() error {
		got[party] = balance
		return nil
	})
	if err != nil {
		return "", 0, fmt.Errorf("read the balances: %w", err)
	}
	if want := r.scan.ReportedBalances(last); !maps.Equal(want, got) {
		difference = fmt.Sprintf("balances in round %d: %v are wanted, and there are %v\n", last, want, got)
	}
	return difference, len(got), nil
}

// verify has the indexer compare the database with the servers, and what it sealed with its digests, by itself.
func (r *round) verify(ctx context.Context) error {
	x, usual := r.participant, r.participant.plan.listLimit
	x.plan.listLimit = wholeSnapshot
	x.release(x.version)
	defer func() {
		x.plan.listLimit = usual
		x.release(x.version)
	}()
	verifications := [][]string{{"verify", "--all"}, {"verify", "--offline"}}
	if !r.plan.transactions {
		verifications = append(verifications, []string{"verify", "--all", "--network"})
	}
	for _, arguments := range verifications {
		cmd := exec.CommandContext(ctx, r.path("indexer"), arguments...)
		cmd.Env = append(cmd.Environ(), r.environment()...)
		out, err := cmd.CombinedOutput()
		if err != nil && !(slices.Contains(arguments, "--offline") && bytes.Contains(out,
			[]byte("no window is sealed yet"))) { // the daemon never came to it
			return fmt.Errorf("indexer %s: %w\n%s", strings.Join(arguments, " "), err, out)
		}
	}
	return nil
}
