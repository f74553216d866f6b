package torture

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// operator runs commands that erase something beside the daemon, one after the other, and each again whenever it was
// killed.
type operator struct {
	round  *round
	random *rand.Rand
	name   string // of the programs
	pruned bool   // that is done once

	mu      sync.Mutex
	current *program // nil: none
}

// erasure is one of the commands.
type erasure struct {
	args               []string
	contracts, updates []string // that it redacts
	floor              int64    // up to which it prunes; 0: it does not
}

// work runs commands until ctx ends. The last of them gets through, without faults.
func (o *operator) work(ctx context.Context) error {
	for n := 1; ; n++ {
		pause(ctx, time.Duration(o.random.Int64N(int64(500*ms))))
		if ctx.Err() != nil {
			return nil
		}
		e, err := o.choose(ctx)
		if err != nil || e == nil { // the server may be away
			continue
		}
		if err := o.run(ctx, n, e); err != nil {
			return err
		}
	}
}

func (o *operator) run(ctx context.Context, n int, e *erasure) error {
	r := o.round
	p := r.program(fmt.Sprintf("%s-%s-%d", e.args[0], o.name, n), "indexer", killErasure, e.args...)
	forgiven := r.forgiving()
	// 3: another process had a transaction open for long
	p.forgiven = func(code int) bool { return code == 3 || forgiven(code) }
	o.take(p)
	defer o.take(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Longest+finishLimit)
	defer cancel()
	if err := p.keep(ctx); err != nil {
		return err
	}
	for _, id := range e.contracts {
		r.contracts[id] = true
	}
	for _, id := range e.updates {
		r.updates[id] = true
	}
	r.at = max(r.at, e.floor)
	return nil
}

func (o *operator) take(p *program) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.current = p
}

// strike injects a fault of a schedule into the command that runs.
func (o *operator) strike(ctx context.Context, f fault) (bool, error) {
	o.mu.Lock()
	p := o.current
	o.mu.Unlock()
	if p == nil {
		return false, nil
	}
	return p.strike(ctx, f)
}

// What can be redacted: contracts that were created and archived, and updates that created nothing else.
const (
	endedContracts = `SELECT c.contract_id FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
		WHERE NOT EXISTS (SELECT FROM ledger.redactions r WHERE r.id = c.contract_id) GROUP BY 1
			ORDER BY min(c.ledger_offset)`
	endedUpdates = `SELECT u.update_id FROM ledger.updates u WHERE NOT EXISTS (SELECT FROM ledger.redactions r
		WHERE r.id = u.update_id)
			AND NOT EXISTS (SELECT FROM ledger.created_events c WHERE c.ledger_offset = u.ledger_offset
				AND NOT EXISTS (SELECT FROM ledger.archived_events a WHERE a.contract_id = c.contract_id))
		ORDER BY u.ledger_offset`
	createdInUpdate = "SELECT DISTINCT c.contract_id FROM ledger.created_events c WHERE c.update_id = $1"
	storedOffsets   = "SELECT u.ledger_offset::text FROM ledger.updates u ORDER BY u.ledger_offset"
)

// choose chooses the next command; nil: there is nothing to erase yet.
func (o *operator) choose(ctx context.Context) (*erasure, error) {
	conn, err := pgx.Connect(ctx, o.round.postgres.url())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it was only read from
	one := func(query string, share int) (id string, err error) {
		list, err := texts(ctx, conn, query)
		if list = list[:len(list)/share]; err != nil || len(list) == 0 {
			return "", err
		}
		return list[o.random.IntN(len(list))], nil
	}
	plan := o.round.plan
	if plan.prunes && !o.pruned && (!plan.redacts || o.random.IntN(3) == 0) {
		text, err := one(storedOffsets, 2)
		if err != nil || text == "" {
			return nil, err
		}
		floor, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		o.pruned = true
		return &erasure{args: []string{"prune", "--before", strconv.FormatInt(floor+1, 10), "--apply"}, floor: floor}, nil
	}
	if !plan.redacts {
		return nil, nil
	}
	e := &erasure{args: []string{"redact", "--reason", "torture", "--apply"}}
	if o.random.IntN(3) > 0 {
		id, err := one(endedContracts, 1)
		if err != nil || id == "" {
			return nil, err
		}
		e.args, e.contracts = append(e.args, "--contract", id), []string{id}
		return e, nil
	}
	id, err := one(endedUpdates, 1)
	if err != nil || id == "" {
		return nil, err
	}
	e.args, e.updates = append(e.args, "--update", id), []string{id}
	e.contracts, err = texts(ctx, conn, createdInUpdate, id)
	return e, err
}

func texts(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// compareRedactions compares what is noted as redacted with what was.
func (r *round) compareRedactions(ctx context.Context, conn *pgx.Conn) (difference string, rows int, err error) {
	for kind, want := range map[string]map[string]bool{"contract": r.contracts, "update": r.updates} {
		noted, err := texts(ctx, conn, "SELECT id FROM ledger.redactions WHERE kind = $1 ORDER BY 1", kind)
		if err != nil {
			return "", 0, fmt.Errorf("read what is redacted: %w", err)
		}
		rows += len(noted)
		if wanted := slices.Sorted(maps.Keys(want)); !slices.Equal(wanted, noted) {
			difference += fmt.Sprintf("redacted, kind %s: %v are wanted, and there are %v\n", kind, wanted, noted)
		}
	}
	return difference, rows, nil
}
