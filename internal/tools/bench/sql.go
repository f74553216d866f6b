package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// The part sql asks an analyst's questions of a large database. It is a ledger of some thousand updates with their
// transaction history, and copies of both that follow it in time. The indexer itself writes it, so it has every table,
// index and projection. sqlName is the part that is run only where it is named.
const sqlName = "sql"

const (
	sqlBase      = 50_000    // updates that are made
	sqlUpdates   = 1_000_000 // of the whole ledger: two million creations
	sqlTransfers = 2_000_000
	sqlEvents    = 4   // of an update
	sqlParties   = 200 // that the participant hosts
	sqlFirst     = 10_000_000
)

// asked is the database that is asked: how it was made.
type asked struct {
	updates, history *dataset
	serve            [2]serveOptions // the updates, and the transaction history
}

// madeAsked makes the data.
func (h *harness) madeAsked(ctx context.Context) (a *asked, err error) {
	wanted := func(n float64) int { return int(math.Ceil(n * h.Scale)) }
	o := updatesOptions{N: min(sqlBase, wanted(sqlUpdates)), Events: sqlEvents, Shape: sandbox.LedgerEffects,
		First: sqlFirst, Parties: sqlParties, Views: true}
	a = &asked{}
	var updates, history string
	if a.updates, updates, err = h.updates(ctx, o); err != nil {
		return nil, err
	}
	a.history, history, err = h.dataset(fmt.Sprintf("records-%d", o.N), func(name string) error {
		l := sandbox.NewLedger(o.ledger())
		l.Grow(o.N)
		options := sandbox.ScanOptions{BalanceChanges: true}
		return buildRecords(ctx, name, l, options, len(sandbox.NewScan(l, options).EventIDs()))
	})
	if err != nil {
		return nil, err
	}
	whole := later{Time: 1, Rounds: 1} // so that times and rounds are found
	updatesEnd, _ := newCopies(a.updates, 1, whole).last()
	recordsEnd, round := newCopies(a.history, 1, whole).last()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // of every simulated ledger
	whole = later{Time: max(updatesEnd.Sub(begin), recordsEnd.Sub(begin)).Truncate(time.Second) + time.Second,
		Rounds: round + 1}
	a.serve[0] = serveOptions{Kind: serveCopies, Data: updates, Pages: true,
		Copies: max(wanted(sqlUpdates)/a.updates.Len(), 1), Later: whole}
	a.serve[1] = serveOptions{Kind: serveHistory, Data: history,
		Copies: wanted(sqlTransfers)/int(max(a.history.Rows["transfers"], 1)) + 1, Later: whole}
	return a, nil
}

// rows returns the rows that the database must have, by table.
func (a *asked) rows() map[string]int64 {
	rows := map[string]int64{}
	for table, n := range a.updates.Rows {
		rows[table] += n * int64(a.serve[0].Copies)
	}
	for table, n := range a.history.Rows {
		rows[table] += n * int64(a.serve[1].Copies)
	}
	return rows
}

// unknownPackagesSQL counts the packages of templates and their interfaces whose types are not known.
const unknownPackagesSQL = `SELECT count(*)::integer FROM (
		SELECT package_id FROM indexer.templates UNION SELECT split_part(interface_id, ':', 1)
			FROM indexer.template_interfaces) x
	WHERE NOT EXISTS (SELECT FROM ledger.packages p WHERE p.package_id = x.package_id AND p.types = 'known')`

// readPackages has the indexer run until all of these are known, and not at all where they already are:
// an indexer that is stopped while it starts hasn't yet asked to be told of signals.
func (h *harness) readPackages(ctx context.Context, url string, args []string) (err error) {
	unknown, err := queryOne[int](ctx, h.db, unknownPackagesSQL)
	if err != nil || unknown == 0 {
		return err
	}
	indexer, err := h.programs.start(ctx, "indexer", url, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, indexer.stop()) }()
	for unknown > 0 {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%d packages are not known: %w", unknown, err)
		}
		if unknown, err = queryOne[int](ctx, h.db, unknownPackagesSQL); err != nil {
			return err
		}
	}
	return nil
}

// write has the indexer write the database, with the types of its packages and the typed views.
func (h *harness) write(ctx context.Context, a *asked) (err error) {
	var urls [2]string
	for i, o := range a.serve {
		server, err := startServer(ctx, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.stop()) }()
		urls[i] = server.url
	}
	url, err := h.prepared(ctx)
	if err != nil {
		return err
	}
	args := []string{"run", "--ledger-url=" + urls[0], "--scan-url=" + urls[1], "--scan-history=transactions", "--listen=",
		"--shape=" + string(ledger.ShapeLedgerEffects)}
	for _, name := range sandbox.InterfaceNames() {
		args = append(args, "--interfaces="+name)
	}
	u, err := h.programs.run(ctx, "indexer", url, append(args, "--until-current", "--verify-rate=0")...)
	if err != nil {
		return err
	}
	h.say("sql: the indexer wrote the database in %v", u.wall.Round(time.Second))
	if err := h.readPackages(ctx, url, args); err != nil { // they are read beside the updates, with which that run ended
		return err
	}
	if _, err := h.db.holds(ctx, a.rows()); err != nil {
		return err
	}
	return nil
}

// askSettings are those of the role of an analyst (docs/operations.md), without workers, whose processor time is
// nobody's.
var askSettings = map[string]string{"jit": "off", "timezone": "UTC", "join_collapse_limit": "16",
	"default_transaction_read_only":   "on",
	"max_parallel_workers_per_gather": "0"}

// sharedBuffers is the one setting of PostgreSQL's that is not its default, which is smaller than the database of
// anybody who asks much.
const sharedBuffers = "2GB"

// sql measures how long questions take.
func (h *harness) sql(ctx context.Context) error {
	a, err := h.madeAsked(ctx)
	if err != nil {
		return err
	}
	if err := h.write(ctx, a); err != nil {
		return err
	}
	if err := h.prepareToAsk(ctx); err != nil {
		return err
	}
	return h.ask(ctx)
}

// prepareToAsk makes what the questions need beside what the indexer wrote.
func (h *harness) prepareToAsk(ctx context.Context) error {
	url := h.db.url()
	for _, args := range [][]string{
		{"views", "create", "--template=bank:Bank.Account:Account"},
		{"index", "create", "bank:Bank.Account:Account", "owner"},
		{"index", "create", "bank:Bank.Account:Account", "limit"},
		{"index", "create", "--of=lifetimes"},
		{"index", "create", "--of=keys"},
		{"index", "create", "--of=exercises"},
		{"index", "create", "bank:Bank.Cash:Holding", "actor", "--choice=Holding_Split", "--anyway"},
	} {
		if _, err := h.programs.run(ctx, "indexer", url, args...); err != nil {
			return err
		}
	}
	for _, file := range []string{"pqs", "fastest"} {
		began := time.Now()
		text, err := questionFiles.ReadFile("questions/" + file + ".sql")
		if err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.PgConn().Exec(ctx, string(text)).ReadAll() // one transaction
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			return fmt.Errorf("%s.sql: %w", file, err)
		}
		h.say("sql: made %s in %v", file, time.Since(began).Round(time.Second))
	}
	return h.db.exec(ctx, "VACUUM (ANALYZE); CHECKPOINT; ALTER SYSTEM SET shared_buffers = '"+sharedBuffers+"'")
}
