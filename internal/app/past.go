package app

import (
	"context"
	"fmt"
	"sync"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// past is a source whose updates are read in the scope in which they are stored: after the scope was changed, what was stored before is
// of an earlier one, and has to be compared in that.
type past struct {
	source
	db    *store.Store
	scope string                             // the hash of the source's scope
	open  func(ledger.Scope) (source, error) // a source of another scope

	mu      sync.Mutex
	earlier map[string]source // by the hash of their scope
}

func newPast(db *store.Store, now source, scope ledger.Scope, open func(ledger.Scope) (source, error)) *past {
	return &past{source: now, db: db, scope: scope.Hash(), open: open, earlier: map[string]source{}}
}

// Close closes the sources of earlier scopes, but not the one of the scope in force.
func (p *past) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.earlier {
		s.Close()
	}
}

// at returns the source of what is stored after an offset, the hash of its scope, and up to where that holds.
func (p *past) at(ctx context.Context, after ledger.Offset) (from source, scope string, upTo ledger.Offset, err error) {
	stored, inForce, upTo, err := p.db.ScopeAt(ctx, after)
	if err != nil || inForce {
		return p.source, p.scope, upTo, err
	}
	scope = stored.Hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.earlier[scope] == nil {
		opened, err := p.open(stored)
		if err != nil {
			return nil, "", 0, fmt.Errorf("read in an earlier scope: %w", err)
		}
		if _, err := opened.identify(ctx); err != nil {
			opened.Close()
			return nil, "", 0, fmt.Errorf("read in an earlier scope: %w", err)
		}
		p.earlier[scope] = opened
	}
	return p.earlier[scope], scope, upTo, nil
}

// ReadUpdates implements source. A page ends where the scope does.
func (p *past) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	from, scope, upTo, err := p.at(ctx, after)
	if err != nil {
		return ledger.Page{}, err
	}
	page, err := from.ReadUpdates(ctx, after, min(to, upTo))
	page.Scope = scope
	return page, err
}

// UpdateOfScope implements source.
func (p *past) UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error) {
	update, text, err := p.source.UpdateOfScope(ctx, updateID)
	if err != nil || update.Offset == 0 {
		return update, text, err
	}
	from, scope, _, err := p.at(ctx, update.Offset-1)
	if err != nil || scope == p.scope {
		return update, text, err
	}
	return from.UpdateOfScope(ctx, updateID)
}
