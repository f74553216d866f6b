package scan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Limits on the search for the creations of a snapshot's contracts.
const (
	// The most requests at once for the updates that created a snapshot's contracts.
	creationsAtOnce = 8
	// A transaction's effective time lies at most so far after its record time, and so far before it.
	effectiveAhead, effectiveBehind = 2 * time.Minute, 25 * time.Hour
)

// creations holds the creations that were found of the contracts of a snapshot page. They are kept after an error, so
// that only the rest is looked for when the page is read again.
type creations struct {
	mu    sync.Mutex
	page  string
	found map[creation]ledger.ContractEntry
}

// creation identifies a creation. A contract that was reassigned may be listed with two updates.
type creation struct{ contractID, updateID string }

func creationOf(c *ledger.NetworkContract) creation { return creation{c.ContractID, c.UpdateID} }

// begin forgets the creations of another page.
func (c *creations) begin(page string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.page != page {
		c.page, c.found = page, map[creation]ledger.ContractEntry{}
	}
}

func (c *creations) get(of creation) (ledger.ContractEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, found := c.found[of]
	return entry, found
}

// add adds the creation of a contract from an update. The error is an *Error where the update does not have it.
func (c *creations) add(update *ledger.Update, of creation) error {
	entry, ok := entryOf(update, of.contractID)
	if !ok {
		return &Error{Failure: jsonhttp.Unusable("snapshot", fmt.Errorf("update %s does not create contract %s",
			ledger.Quoted(update.ID), ledger.Quoted(of.contractID)))}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found[of] = entry
	return nil
}

// entries returns the snapshot entries of the contracts of a page, in the same order.
func (u *Updates) entries(ctx context.Context, migrationID int64,
	contracts []ledger.NetworkContract) ([]ledger.ContractEntry, error) {
	if err := retryBriefly(ctx, func() error { return u.lookUpCreations(ctx, contracts) }); err != nil {
		return nil, err
	}
	s := creationSearch{Updates: u}
	entries := make([]ledger.ContractEntry, 0, len(contracts))
	for i := range contracts {
		of := creationOf(&contracts[i])
		entry, found := u.creations.get(of)
		if !found {
			update, err := s.find(ctx, migrationID, &contracts[i])
			if err == nil && u.lookUp != nil { // only one service has shown it: others have to agree
				*update, _, err = u.lookUp(ctx, update.ID)
			}
			if err == nil {
				err = u.creations.add(update, of)
			}
			if err != nil {
				return nil, err
			}
			entry, _ = u.creations.get(of)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// lookUpCreations reads the updates that created contracts, if the service names them. After a failure the others are
// still read, but not after many.
func (u *Updates) lookUpCreations(ctx context.Context, contracts []ledger.NetworkContract) error {
	of := map[string][]string{} // contract ids by update id
	for i := range contracts {
		c := &contracts[i]
		if _, found := u.creations.get(creationOf(c)); !found && c.UpdateID != "" {
			of[c.UpdateID] = append(of[c.UpdateID], c.ContractID)
		}
	}
	var failures atomic.Int64
	var group errgroup.Group
	group.SetLimit(creationsAtOnce)
	for id, contractIDs := range of {
		if ctx.Err() != nil || failures.Load() >= 2*creationsAtOnce {
			break
		}
		group.Go(func() error {
			update, _, err := u.creator(ctx, id)
			for _, contractID := range contractIDs {
				if err == nil {
					err = u.creations.add(&update, creation{contractID, id})
				}
			}
			if err != nil {
				failures.Add(1)
			}
			if errors.Is(err, ledger.ErrNotFound) { // a node that lags behind
				err = &Error{Failure: jsonhttp.Unusable("snapshot", fmt.Errorf("update %s, which created contracts of the "+
					"snapshot, is not there", ledger.Quoted(id)))}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// creator reads an update that created contracts.
func (u *Updates) creator(ctx context.Context, id string) (ledger.Update, ledger.JSON, error) {
	if u.lookUp != nil {
		return u.lookUp(ctx, id)
	}
	return u.UpdateOfScope(ctx, id)
}

// entryOf returns the entry that a contract has if an update created it; ok reports whether it did.
func entryOf(update *ledger.Update, contractID string) (entry ledger.ContractEntry, ok bool) {
	i := slices.IndexFunc(update.Created, func(c ledger.CreatedEvent) bool { return c.ContractID == contractID })
	if i < 0 {
		return entry, false
	}
	entry = ledger.ContractEntry{
		WorkflowID: update.WorkflowID, Plain: update.Plain,
		Active: &ledger.ActiveContract{Created: update.Created[i], SynchronizerID: *update.SynchronizerID},
	}
	for k := range update.Assigned {
		if a := &update.Assigned[k]; a.ContractID == contractID {
			entry.Active.ReassignmentCounter = a.ReassignmentCounter
		}
	}
	return entry, true
}

// creationSearch looks for the creations of contracts from earlier migrations: the service does not name the updates
// that created these. It reads the updates around the time of the creation. It keeps the last page, because contracts
// created at about the same time are in it.
type creationSearch struct {
	*Updates
	after, to ledger.Offset             // of the page
	created   map[string]*ledger.Update // of the page, by contract id
}

// find returns the update that created a contract before a migration. Its migration is the last that had begun at the
// time of the creation, or, where the times of two overlap, one before.
func (s *creationSearch) find(ctx context.Context, migrationID int64,
	c *ledger.NetworkContract) (*ledger.Update, error) {
	begun := func(at time.Time) bool { return !at.After(c.CreatedAt.Time.Add(effectiveBehind)) }
	for earlier := migrationID; ; {
		var err error
		if earlier, err = s.migrationBefore(ctx, earlier, begun); err != nil {
			return nil, fmt.Errorf("look for the creation of contract %s: %w", ledger.Quoted(c.ContractID), err)
		}
		if earlier < 0 {
			break
		}
		bound := func(by time.Duration) (ledger.Offset, error) {
			return ledger.NetworkOffset(earlier, ledger.Time{Time: c.CreatedAt.Time.Add(by).Truncate(time.Microsecond),
				Valid: true})
		}
		from, err := bound(-effectiveAhead)
		if err != nil {
			return nil, fmt.Errorf("look for the creation of contract %s: %w", ledger.Quoted(c.ContractID), err)
		}
		to, err := bound(effectiveBehind)
		if err != nil {
			return nil, fmt.Errorf("look for the creation of contract %s: %w", ledger.Quoted(c.ContractID), err)
		}
		for at := from; at < to; at = s.to {
			if err := s.read(ctx, at); err != nil {
				return nil, fmt.Errorf("look for the creation of contract %s: %w", ledger.Quoted(c.ContractID), err)
			}
			if update := s.created[c.ContractID]; update != nil {
				return update, nil
			}
			if s.to <= at { // nothing follows
				break
			}
		}
	}
	return nil, &ledger.Problem{
		What: fmt.Sprintf("the snapshot has contract %s, which was created at %s in an earlier migration, and no update "+
			"around that time creates it",
			ledger.Quoted(c.ContractID), c.CreatedAt.Time.Format(time.RFC3339Nano)),
		Do: "read the updates from their beginning instead: `indexer run` with a new database",
	}
}

func (s *creationSearch) read(ctx context.Context, at ledger.Offset) error {
	if s.created != nil && at >= s.after && at < s.to {
		return nil
	}
	page, err := s.Updates.page(ctx, "updates-created", at, MaxPage, s.client.maxBody)
	if err != nil {
		return err
	}
	s.after, s.to, s.created = at, lastOffset(page.updates, at), map[string]*ledger.Update{}
	for i := range page.updates {
		for k := range page.updates[i].Created {
			if c := &page.updates[i].Created[k]; c.Origin != ledger.OriginAssignment && s.created[c.ContractID] == nil {
				s.created[c.ContractID] = &page.updates[i]
			}
		}
	}
	return nil
}
