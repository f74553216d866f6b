package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// sourceByScope is a source whose updates, and whose carried snapshot, are read in the scope in which they are stored:
// after the scope was changed, what was stored before is of an earlier one, and has to be compared in that.
type sourceByScope struct {
	source
	db    *store.Store
	scope string                             // the hash of the source's scope
	open  func(ledger.Scope) (source, error) // a source of another scope

	mu      sync.Mutex
	earlier map[string]source // by the hash of their scope
}

func newSourceByScope(db *store.Store, now source, scope ledger.Scope,
	open func(ledger.Scope) (source, error)) *sourceByScope {
	return &sourceByScope{source: now, db: db, scope: scope.Hash(), open: open, earlier: map[string]source{}}
}

// Close closes the sources of earlier scopes, but not the one of the scope in force.
func (p *sourceByScope) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.earlier {
		s.Close()
	}
}

func (p *sourceByScope) Changes() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.earlier {
		n += s.Changes()
	}
	return n + p.source.Changes()
}

// at returns the source of what is stored after an offset, the hash of its scope, and up to where that holds.
func (p *sourceByScope) at(ctx context.Context, after ledger.Offset) (from source, scope string, upTo ledger.Offset,
	err error) {
	stored, inForce, upTo, err := p.db.ScopeAt(ctx, after)
	if err != nil || inForce {
		return p.source, p.scope, upTo, err
	}
	from, err = p.in(ctx, stored)
	return from, stored.Hash(), upTo, err
}

func (p *sourceByScope) in(ctx context.Context, scope ledger.Scope) (source, error) {
	hash := scope.Hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	if hash == p.scope {
		return p.source, nil
	}
	if p.earlier[hash] == nil {
		opened, err := p.open(scope)
		if err != nil {
			return nil, unread(scope, err)
		}
		if _, err := opened.identify(ctx); err != nil {
			opened.Close()
			return nil, unread(scope, err)
		}
		p.earlier[hash] = opened
	}
	return p.earlier[hash], nil
}

// unread is the error of reading in an earlier scope, such as one with a party that the user may not read as any more.
func unread(scope ledger.Scope, err error) error {
	problem, ok := errors.AsType[*ledger.Problem](err)
	if !ok {
		return fmt.Errorf("read in scope %s: %w", scope.Canonical(), err)
	}
	return &ledger.Problem{
		What: fmt.Sprintf("what was stored before the scope was changed has to be read in the scope of then, %s",
			scope.Canonical()),
		Do: problem.Do + ": here that is the earlier scope, and not what the flags name now. What was stored then is not " +
			"read any more when it is pruned (`indexer prune`)",
		Err: err,
	}
}

// ReadSnapshot implements source. The snapshot that is carried is read in its scope.
func (p *sourceByScope) ReadSnapshot(ctx context.Context, at ledger.Offset,
	token ledger.Token) (ledger.SnapshotPage, error) {
	carried, scope, err := p.db.CarriedScope(ctx)
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	if carried == nil || carried.At != at {
		return p.source.ReadSnapshot(ctx, at, token)
	}
	from, err := p.in(ctx, scope)
	if err != nil {
		return ledger.SnapshotPage{}, err
	}
	return from.ReadSnapshot(ctx, at, token)
}

// ReadUpdates implements source. A page ends where the scope does.
func (p *sourceByScope) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	from, scope, upTo, err := p.at(ctx, after)
	if err != nil {
		return ledger.Page{}, err
	}
	page, err := from.ReadUpdates(ctx, after, min(to, upTo))
	page.Scope = scope
	return page, err
}

// TailUpdates implements source. A page ends where the scope does. In an earlier scope it is read up to there first:
// that nothing comes in it does not say that the ledger ends.
func (p *sourceByScope) TailUpdates(ctx context.Context, after ledger.Offset, limit int,
	idle time.Duration) (page ledger.Page, full bool, err error) {
	from, scope, upTo, err := p.at(ctx, after)
	if err != nil {
		return ledger.Page{}, false, err
	}
	if scope != p.scope {
		page, err = from.ReadUpdates(ctx, after, upTo)
		if !ingest.Lasting(err) { // else the ledger may end before
			return page, page.To < upTo, err
		}
	}
	page, full, err = from.TailUpdates(ctx, after, limit, idle)
	if page.To > upTo {
		page.To, page.Checkpoints = upTo, nil
		page.Updates = slices.DeleteFunc(page.Updates, func(u ledger.Update) bool { return u.Offset > upTo })
	}
	return page, full, err
}

// UpdateOfScope implements source. An update that is not stored is looked up in the scope in force.
func (p *sourceByScope) UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error) {
	at, _, err := p.db.UpdateOffset(ctx, updateID)
	if err != nil {
		return ledger.Update{}, nil, err
	}
	from, _, _, err := p.at(ctx, at-1)
	if err != nil {
		return ledger.Update{}, nil, err
	}
	return from.UpdateOfScope(ctx, updateID)
}
