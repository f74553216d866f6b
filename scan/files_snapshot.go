package scan

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

// FilesSnapshot reads snapshots from bulk files. Those of a snapshot say which contracts were active and little more;
// the updates that created them are found in the files of updates, which are read once, from the beginning of the
// history up to the snapshot. It is not safe for concurrent use.
type FilesSnapshot struct {
	files  *Files
	at     ledger.Offset // of the snapshot whose contracts are known; 0: none
	active []contractKey // its contracts, in order
	next   func() (ledger.Page, error, bool)
	stop   func()
	token  ledger.Token // where next continues
}

// contractKey identifies a contract, and the update that created it or brought it to its synchronizer, if the file
// names that.
type contractKey [16]byte

func keyOf(contractID, updateID string) (key contractKey) {
	sum := sha256.Sum256([]byte(contractID + "\x00" + updateID))
	copy(key[:], sum[:])
	return key
}

func (k contractKey) compare(other contractKey) int { return bytes.Compare(k[:], other[:]) }

// Snapshots returns a reader of the snapshots.
func (f *Files) Snapshots() *FilesSnapshot { return &FilesSnapshot{files: f} }

// fileUpTo returns the last file of updates up to a time. found is false if the files don't have all updates up to
// there.
func (f *Files) fileUpTo(at time.Time) (i int, found bool) {
	next := slices.IndexFunc(f.files, func(one file) bool { return one.end.After(at) })
	if next < 0 {
		next = len(f.files)
	}
	// What lies between two folders has no update.
	i = next - 1
	return i, i >= 0 && (f.files[i].end.Equal(at) || next < len(f.files) && !f.files[next].start.Before(at))
}

// offsetAt returns the offset of a time up to which a file and those before it have all updates. found is false if
// there is no update.
func (f *Files) offsetAt(at time.Time, i int) (offset ledger.Offset, found bool, err error) {
	for ; i >= 0; i-- {
		b, err := f.check(i)
		if err != nil {
			return 0, false, err
		}
		if b.last == 0 {
			continue
		}
		// Nothing lies between the last update and the time, so that the migration of the update will do.
		migrationID, last := b.last.NetworkPosition()
		if f.files[i].end.Before(last) {
			return 0, false, filesProblem(fmt.Errorf("file %s: its last update, at %s, comes after its folder's end",
				f.files[i].path, last.Format(time.RFC3339Nano)))
		}
		offset, err := ledger.NetworkOffset(migrationID, ledger.Time{Time: at, Valid: true})
		if err != nil {
			return 0, false, filesProblem(fmt.Errorf("file %s: %w", f.files[i].path, err))
		}
		return offset, true, nil
	}
	return 0, false, nil
}

// LedgerEnd returns the offset up to which the files have all updates.
func (s *FilesSnapshot) LedgerEnd(context.Context) (ledger.Offset, error) {
	last := len(s.files.files) - 1
	if last < 0 {
		return 0, nil
	}
	at, _, err := s.files.offsetAt(s.files.files[last].end, last)
	return at, err
}

// PrunedOffset returns ledger.ErrNotOffered: the files begin with the history.
func (s *FilesSnapshot) PrunedOffset(context.Context) (ledger.Offset, error) {
	return 0, ledger.ErrNotOffered
}

// SnapshotOffset returns the offset of the newest snapshot at or below another one.
//
// Errors: a *ledger.Problem, which wraps ledger.ErrNotOffered where there is none; a *ledger.DecodeError for an update
// that can't be understood.
func (s *FilesSnapshot) SnapshotOffset(_ context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	at, _, err := s.find(upTo)
	return at, err
}

// find returns the newest snapshot at or below an offset: its offset, and its files.
func (s *FilesSnapshot) find(upTo ledger.Offset) (at ledger.Offset, files []file, err error) {
	times := slices.SortedFunc(maps.Keys(s.files.snapshots), time.Time.Compare)
	for _, taken := range slices.Backward(times) {
		i, found := s.files.fileUpTo(taken)
		if !found {
			continue
		}
		if at, found, err = s.files.offsetAt(taken, i); err != nil {
			return 0, nil, err
		}
		if found && at <= upTo {
			files := s.files.snapshots[taken]
			return at, files, arrangeFolder(files, "ACS")
		}
	}
	return 0, nil, noSnapshot(fmt.Sprintf("up to offset %d (%s)", upTo, placeOf(upTo)))
}

func noSnapshot(where string) error {
	return &ledger.Problem{
		What: "the bulk files have no snapshot " + where, Err: ledger.ErrNotOffered,
		Do: "let `backfill network --files --active-only` download one, with --scan-url; a snapshot needs the files of " +
			"updates of the day that ends with it; to begin another one, add --restart",
	}
}

// ReadSnapshot reads a part of the snapshot at an offset, after a token; the zero token reads the first. The entries
// come in the order of their creation. Contracts of which the party is no stakeholder are left out, as by
// [Updates.ReadSnapshot].
//
// Errors: a *ledger.Problem for files that are missing, damaged or do not agree; a *ledger.DecodeError for a line that
// can't be understood; ctx's error.
func (s *FilesSnapshot) ReadSnapshot(ctx context.Context, at ledger.Offset,
	token ledger.Token) (ledger.SnapshotPage, error) {
	page, err := s.readSnapshot(ctx, at, token)
	if err != nil {
		s.Close()
		return ledger.SnapshotPage{}, fmt.Errorf("read the snapshot at offset %d: %w", at, err)
	}
	return page, nil
}

func (s *FilesSnapshot) readSnapshot(ctx context.Context, at ledger.Offset,
	token ledger.Token) (page ledger.SnapshotPage, err error) {
	if err := ctx.Err(); err != nil {
		return page, err
	}
	if err := s.load(ctx, at); err != nil {
		return page, err
	}
	read, found := ledger.Offset(0), 0
	if token.Value != "" {
		if _, err := fmt.Sscanf(token.Value, "%d/%d", &read, &found); err != nil {
			return page, &ledger.Problem{What: fmt.Sprintf("%q is no token of a snapshot in bulk files", token.Value),
				Do: "begin the snapshot again with --restart"}
		}
	}
	if s.next == nil || s.token != token {
		s.Close()
		s.begin(ctx, ledger.Range{From: read, To: min(at, s.files.End())})
	}
	updates, err, ok := s.next()
	if err != nil {
		return page, err
	}
	if !ok {
		if found != len(s.active) {
			return page, s.incomplete(found)
		}
		return ledger.SnapshotPage{Last: true}, nil
	}
	for i := range updates.Updates {
		page.Entries = s.append(page.Entries, &updates.Updates[i])
	}
	if len(updates.Updates) > 0 {
		page.Bytes = updates.Bytes * int64(len(page.Entries)) / int64(len(updates.Updates))
	}
	s.token = ledger.Token{Kind: ledger.TokenPage, Value: fmt.Sprintf("%d/%d", updates.To, found+len(page.Entries))}
	page.Next = s.token
	return page, nil
}

// begin begins to read the updates of a range.
func (s *FilesSnapshot) begin(ctx context.Context, r ledger.Range) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the next page may be read for another context
	pages := func(func(ledger.Page, error) bool) {}
	if r.From < r.To {
		pages = s.files.Pages(ctx, r)
	}
	next, stop := iter.Pull2(pages)
	s.next, s.stop = next, func() { cancel(); stop() }
}

// Close ends the reading.
func (s *FilesSnapshot) Close() {
	if s.next != nil {
		s.stop()
	}
	s.next = nil
}

// append appends the entries of the contracts that an update created and that are in the snapshot.
func (s *FilesSnapshot) append(entries []ledger.ContractEntry, update *ledger.Update) []ledger.ContractEntry {
	for i := range update.Created {
		c := &update.Created[i]
		_, in := slices.BinarySearchFunc(s.active, keyOf(c.ContractID, update.ID), contractKey.compare)
		if !in && c.Origin != ledger.OriginAssignment { // of an earlier migration the file does not name the update
			_, in = slices.BinarySearchFunc(s.active, keyOf(c.ContractID, ""), contractKey.compare)
		}
		if in {
			entry, _ := entryOf(update, c.ContractID)
			entries = append(entries, entry)
		}
	}
	return entries
}

// load reads which contracts are in the snapshot at an offset, all of its files, so that nothing is returned if one is
// damaged.
func (s *FilesSnapshot) load(ctx context.Context, at ledger.Offset) error {
	if s.at == at {
		return nil
	}
	s.Close()
	found, files, err := s.find(at)
	if err != nil {
		return err
	}
	if found != at {
		return noSnapshot(fmt.Sprintf("at offset %d (%s)", at, placeOf(at)))
	}
	var active []contractKey
	form := lines[ledger.NetworkContract]{list: "created_events", blank: true, decode: ledger.DecodeNetworkContracts}
	for i := range files {
		if _, err := files[i].check(); err != nil {
			return err
		}
		err := form.read(ctx, files[i].path, func(b *block[ledger.NetworkContract]) error {
			for k := range b.items {
				if c := &b.items[k]; isStakeholder(c, s.files.party) {
					active = append(active, keyOf(c.ContractID, c.UpdateID))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(active, contractKey.compare)
	if n := len(active); len(slices.Compact(active)) < n {
		return filesProblem(fmt.Errorf("the files of the snapshot at %s name a contract twice", placeOf(at)))
	}
	s.at, s.active = at, active
	return nil
}

// incomplete returns the error for a snapshot with contracts that no update creates.
func (s *FilesSnapshot) incomplete(found int) error {
	return &ledger.Problem{
		What: fmt.Sprintf("the bulk files do not agree: the snapshot at %s has %d contracts, and the updates up to there "+
			"create %d of them", placeOf(s.at), len(s.active), found),
		Do: "take another service's files; or seed from the service itself: `backfill network --restart` without --files",
	}
}
