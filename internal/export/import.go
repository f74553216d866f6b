package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

const (
	// A page has at most this many updates, and about this much of their JSON.
	pageUpdates = 1_000
	pageBytes   = 2 << 20
)

// Import reads an export. It checks the SHA-256 of each file before it uses anything of it. Only Pages and Package are safe for concurrent
// use.
type Import struct {
	catalog
	Scope ledger.Scope

	snapshot *snapshotReader    // the last one; nil: none
	reading  *Manifest          // the last range
	opened   map[string]Content // its open files, by their names; their digests were checked, and they don't change
}

// BeginImport reads the manifests of an export, of a network's updates or of a participant's. What can't be imported is a *ledger.Problem.
func BeginImport(ctx context.Context, place Place, ofNetwork bool) (*Import, error) {
	i := &Import{catalog: catalog{place: place}}
	if err := i.load(ctx); err != nil {
		return nil, err
	}
	if len(i.done) == 0 {
		return nil, &ledger.Problem{What: fmt.Sprintf("there is no manifest in %s", place), Do: "name what was given to `indexer export --to`"}
	}
	if err := i.refuseOtherKind(ofNetwork); err != nil {
		return nil, err
	}
	var end ledger.Offset
	for n := range i.done {
		if err := i.fits(&i.done[n], end); err != nil {
			return nil, err
		}
		end = i.done[n].To
	}
	err := json.Unmarshal(i.done[0].ScopeDefinition, &i.Scope)
	if err != nil || i.Scope.Hash() != i.done[0].Scope {
		return nil, &ledger.Problem{
			What: fmt.Sprintf("%s has a scope that this version does not understand: %s", i.done[0].Name(), i.done[0].ScopeDefinition),
			Do:   "use the release of the indexer that wrote it", Err: err,
		}
	}
	if err := i.refuseFilled(ctx); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// refuseFilled refuses a part of the history below the floor: the snapshot has no entries of contracts that were created in it.
func (i *Import) refuseFilled(ctx context.Context) error {
	first := &i.done[0]
	if first.CompleteFrom == 0 {
		return nil
	}
	updates, err := i.relation(ctx, first, "updates", nil, -1)
	if err != nil {
		return err
	}
	defer updates.close()
	if !updates.has || updates.at > first.CompleteFrom {
		return nil
	}
	return &ledger.Problem{
		What: fmt.Sprintf("%s in %s has a part of the history below offset %d, which was being filled in", first.Name(), i.place, first.CompleteFrom),
		Do:   "let `backfill history` fill in the rest, and export again",
	}
}

// fits refuses a range that does not follow the one before, which ends at an offset, one of another database, and one that can't be
// imported.
func (i *Import) fits(m *Manifest, end ledger.Offset) error {
	first := &i.done[0]
	switch {
	case m.Participant != first.Participant || m.Scope != first.Scope || m.Network != "" && m.Network != i.Network():
		return &ledger.Problem{
			What: fmt.Sprintf("%s in %s is of the ledger of %s in scope %s, and %s of that of %s in scope %s",
				m.Name(), i.place, ledgerOf(m.Participant, m.Network), m.Scope, first.Name(), ledgerOf(first.Participant, i.Network()), first.Scope),
			Do: "export each of them into a place of its own",
		}
	case m.Narrowed:
		return &ledger.Problem{
			What: fmt.Sprintf("%s in %s has updates of an earlier scope, which showed more, and it is not known which contracts are not active any more because of that", m.Name(), i.place),
			Do:   "prune up to where the scope was changed, and export into another place; or index into a new database",
		}
	case m.From > end:
		return &ledger.Problem{
			What: fmt.Sprintf("no manifest in %s has the updates after offset %d up to %d", i.place, end, m.From),
			Do:   "bring manifest and files back from a copy, or, if none of these updates were pruned, export them again",
		}
	case m.CompleteFrom > m.From && m.From > 0:
		return &ledger.Problem{
			What: fmt.Sprintf("%s in %s has no updates after offset %d up to %d: they were pruned before", m.Name(), i.place, m.From, m.CompleteFrom),
			Do:   "bring manifest and files of before back from a copy, or export into another place",
		}
	case m == first && m.CompleteFrom > 0 && m.StateFrom != nil && *m.StateFrom > m.CompleteFrom:
		return &ledger.Problem{
			What: fmt.Sprintf("%s in %s has history that was filled in from offset %d on, below the snapshot at offset %d: what was active there is not known",
				m.Name(), i.place, m.CompleteFrom, *m.StateFrom),
			Do: "fill in the history down to the beginning of the ledger (backfill history), or down to another snapshot (--with-snapshot), or prune up to the " +
				"snapshot, and export again",
		}
	}
	return nil
}

// Participant returns the participant whose ledger it is, or the party that operates the network.
func (i *Import) Participant() string { return i.done[0].Participant }

// Network returns the party that operates the network of the ledger; empty: the export does not say.
func (i *Import) Network() string {
	for n := range i.done {
		if m := &i.done[n]; m.OfNetwork {
			return m.Participant
		} else if m.Network != "" {
			return m.Network
		}
	}
	return ""
}

// SchemaVersion is the newest of the ranges', with the manifest that has it.
func (i *Import) SchemaVersion() (version int64, manifest string) {
	newest := slices.MaxFunc(i.done, func(a, b Manifest) int { return cmp.Compare(a.SchemaVersion, b.SchemaVersion) })
	return newest.SchemaVersion, newest.Name()
}

// Floor returns the offset after which the updates begin. state reports whether it is known what was active there.
func (i *Import) Floor() (at ledger.Offset, state bool) {
	first := &i.done[0]
	return first.CompleteFrom, first.CompleteFrom == 0 || first.StateFrom != nil
}

// Pruned returns the snapshot that pruning made at the floor, and the offset up to which the database was pruned. ok is false if the
// snapshot was read from a participant, or there is none.
func (i *Import) Pruned() (carried store.ExportSnapshotMark, to ledger.Offset, ok bool) {
	first := &i.done[0]
	if first.CompleteFrom == 0 || first.Carried == nil || !first.Carried.Pruned {
		return carried, 0, false
	}
	return *first.Carried, first.PrunedTo, true
}

// latest returns the manifest that was written last: its packages and redactions are the newest.
func (i *Import) latest() *Manifest {
	latest := &i.done[0]
	for n := range i.done {
		if m := &i.done[n]; m.Change > latest.Change || m.Change == latest.Change && len(m.Packages) >= len(latest.Packages) {
			latest = m
		}
	}
	return latest
}

// Redactions returns what was redacted in the database.
func (i *Import) Redactions() []store.ExportRedaction { return i.latest().Redactions }

// Seals returns the sealed windows, in order. Of windows that overlap, or that are in several manifests, it returns the newest. It leaves out
// a window of which a part was exported again since and is not sealed there with the same digest.
func (i *Import) Seals() (list []store.ExportSeal) {
	byChange := slices.SortedFunc(slices.Values(i.done), func(a, b Manifest) int {
		return cmp.Or(cmp.Compare(b.Change, a.Change), cmp.Compare(b.To, a.To))
	})
	for n := range byChange {
		for _, seal := range byChange[n].Seals {
			overlaps := func(other store.ExportSeal) bool {
				return other.Stream == seal.Stream && other.From < seal.To && other.To > seal.From
			}
			outdated := slices.ContainsFunc(byChange[:n], func(m Manifest) bool {
				return m.Change > byChange[n].Change && m.From < seal.To && m.To > seal.From &&
					!slices.ContainsFunc(m.Seals, func(other store.ExportSeal) bool { return bytes.Equal(other.Digest, seal.Digest) })
			})
			if !outdated && seal.To <= i.End() && (seal.Stream == findings.SealedSnapshot || seal.From >= i.done[0].CompleteFrom) && !slices.ContainsFunc(list, overlaps) {
				list = append(list, seal)
			}
		}
	}
	slices.SortFunc(list, func(a, b store.ExportSeal) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.From, b.From))
	})
	return list
}

// Package implements ingest.TypesSource.
func (i *Import) Package(ctx context.Context, id string) ([]byte, error) {
	m := i.latest()
	n := slices.IndexFunc(m.Packages, func(file File) bool { return file.SHA256 == id })
	if n < 0 {
		return nil, fmt.Errorf("package %s: %w", id, ledger.ErrNotFound)
	}
	content, err := i.open(ctx, m, m.Packages[n])
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

// End implements ingest.PageSource.
func (i *Import) End() ledger.Offset { return i.done[len(i.done)-1].To }

// Pages implements ingest.PageSource.
func (i *Import) Pages(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		for n := range i.done {
			m := &i.done[n]
			within := ledger.Range{From: max(r.From, m.CompleteFrom), To: min(r.To, m.To)}
			if within.From >= within.To {
				continue
			}
			more, err := i.pages(ctx, m, within, func(page ledger.Page) bool { return yield(page, nil) })
			if err != nil {
				yield(ledger.Page{}, i.lasting(ctx, err))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// lasting makes a *ledger.Problem of an error of reading: the next import continues there, so this one need not wait for the place.
func (i *Import) lasting(ctx context.Context, err error) error {
	var problem *ledger.Problem
	if err == nil || ctx.Err() != nil || errors.As(err, &problem) {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the export in %s can't be read", i.place), Err: err,
		Do: "see that it can be read, and import again, which continues where it was; if it can be read, export it again",
	}
}

// pages reads the pages of a part of a range. It reports whether the caller wants more.
func (i *Import) pages(ctx context.Context, m *Manifest, within ledger.Range, yield func(ledger.Page) bool) (more bool, err error) {
	f, err := i.openFacts(ctx, m, within.From)
	if err != nil {
		return false, err
	}
	defer f.close()
	page := ledger.Page{From: within.From}
	for f.updates.has && f.updates.at <= within.To {
		page.Updates = append(page.Updates, ledger.Update{})
		u := &page.Updates[len(page.Updates)-1]
		bytes, err := f.update(u)
		if err != nil {
			return false, fmt.Errorf("import the update at offset %d from %s: %w", u.Offset, f.updates.file.Name, err)
		}
		page.Bytes += bytes
		page.To = u.Offset
		if len(page.Updates) < pageUpdates && page.Bytes < pageBytes {
			continue
		}
		if page.Checkpoints, err = f.checkpointsUpTo(page.To); err != nil {
			return false, err
		}
		if !yield(page) {
			return false, nil
		}
		page = ledger.Page{From: page.To}
	}
	page.To = within.To
	if page.Checkpoints, err = f.checkpointsUpTo(page.To); err != nil {
		return false, err
	}
	return page.From >= page.To || yield(page), nil
}

// UpdateID returns the id of the update at an offset; ok is false if there is none. The id is empty if the update has none that can be read.
func (i *Import) UpdateID(ctx context.Context, at ledger.Offset) (id string, ok bool, err error) {
	n := slices.IndexFunc(i.done, func(m Manifest) bool { return at > m.From && at <= m.To })
	if n < 0 {
		return "", false, nil
	}
	updates, err := i.relation(ctx, &i.done[n], "updates", []string{"update_id"}, at-1)
	if err != nil {
		return "", false, err
	}
	defer updates.close()
	if !updates.has || updates.at != at {
		return "", false, nil
	}
	return updates.unique("update_id"), true, nil
}

// relation opens a relation's file of a range, after an offset.
func (i *Import) relation(ctx context.Context, m *Manifest, name string, columns []string, after ledger.Offset) (*rows, error) {
	file, err := m.file(name)
	if err != nil {
		return nil, err
	}
	if i.reading != m {
		i.Close()
		i.reading, i.opened = m, map[string]Content{}
	}
	content, ok := i.opened[file.Name]
	if !ok {
		if content, err = i.open(ctx, m, file); err != nil {
			return nil, err
		}
		i.opened[file.Name] = content
	}
	return openRows(m, content, file, columns, after)
}

// Close closes the files that are open.
func (i *Import) Close() {
	i.closeSnapshot()
	for _, content := range i.opened {
		content.Close()
	}
	i.reading, i.opened = nil, nil
}

// Packages returns the ids of the packages.
func (i *Import) Packages() (ids []string) {
	for _, file := range i.latest().Packages {
		ids = append(ids, file.SHA256)
	}
	return ids
}
