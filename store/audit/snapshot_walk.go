package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"ledgerindexer/ledger"
)

// tally compares two sets of any size in constant memory. It adds the hashes of one set's keys by bucket, and subtracts
// those of the other: a bucket whose sum is not zero has a key that is in one set only.
type tally struct {
	buckets [tallyBuckets]tallyBucket
}

// tallyBuckets is the number of buckets for the keys of a set.
const tallyBuckets = 1 << 16

// suspectKeys limits the keys that are held in memory while the buckets that differ are compared.
const suspectKeys = 1 << 20

type tallyBucket struct {
	keys      int64 // of the set that was added
	low, high uint64
}

func hashOf(key EntryKey) (bucket int, low, high uint64) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", key.kind, key.offset, key.number, key.contractID))
	return int(binary.LittleEndian.Uint16(sum[16:])), binary.LittleEndian.Uint64(sum[:]),
		binary.LittleEndian.Uint64(sum[8:])
}

func (t *tally) add(key EntryKey) {
	i, low, high := hashOf(key)
	b := &t.buckets[i]
	b.keys++
	b.low += low
	b.high += high
}

func (t *tally) subtract(key EntryKey) {
	i, low, high := hashOf(key)
	b := &t.buckets[i]
	b.low -= low
	b.high -= high
}

// differing returns the buckets in which the sets differ, in groups with at most suspectKeys keys each, or one bucket.
func (t *tally) differing() []map[int]bool {
	var groups []map[int]bool
	var keys int64
	for i := range t.buckets {
		b := &t.buckets[i]
		if b.low == 0 && b.high == 0 {
			continue
		}
		if len(groups) == 0 || keys+b.keys > suspectKeys {
			groups, keys = append(groups, map[int]bool{}), 0
		}
		groups[len(groups)-1][i] = true
		keys += b.keys
	}
	return groups
}

// unseen finds the stored rows without a counterpart in a source. The first pass reads the source, then what is stored,
// and tallies the keys of both. Each group of buckets that differ takes one more such pass. Both sides must stay the
// same meanwhile. A pass may resume after an error.
type unseen struct {
	keys   *tally             // nil: the first pass is over
	groups []map[int]bool     // those that are left; the first is that of this pass
	seen   map[[2]uint64]bool // the source's keys in that group, as hashes because keys are long
}

func newUnseen() *unseen { return &unseen{keys: new(tally)} }

func (u *unseen) first() bool { return u.keys != nil }

func (u *unseen) done() bool { return u.keys == nil && len(u.groups) == 0 }

func (u *unseen) see(key EntryKey) {
	if u.keys != nil {
		u.keys.add(key)
	} else if i, low, high := hashOf(key); u.groups[0][i] {
		u.seen[[2]uint64{low, high}] = true
	}
}

// end ends a pass, after the source was read to its end. stored must call its argument with the key of each stored row;
// found is called for the rows in the current group of buckets whose key was not seen.
func (u *unseen) end(stored func(EachStored) error, found EachStored) error {
	if u.keys != nil {
		rest := *u.keys
		if err := stored(func(key EntryKey, _ Difference) { rest.subtract(key) }); err != nil {
			return err
		}
		u.keys, u.groups = nil, rest.differing()
	} else {
		err := stored(func(key EntryKey, extra Difference) {
			if i, low, high := hashOf(key); u.groups[0][i] && !u.seen[[2]uint64{low, high}] {
				found(key, extra)
			}
		})
		if err != nil {
			return err
		}
		u.groups = u.groups[1:]
	}
	u.seen = map[[2]uint64]bool{}
	return nil
}

// snapshotWalk compares a snapshot page by page with what is stored, and finds what is stored and in no page. After an
// error it continues where it was.
type snapshotWalk struct {
	read func(ctx context.Context, token ledger.Token) (ledger.SnapshotPage, error)
	// compare compares the entries of a page, before of which there are others, and returns the keys of those that are
	// stored. again says that it has done so before: only the keys are wanted.
	compare func(ctx context.Context, before int64, entries []ledger.ContractEntry, again bool) ([]EntryKey, error)
	stored  func(ctx context.Context, each EachStored) error
	extra   EachStored

	unseen *unseen
	token  ledger.Token // of the next page
	before int64        // entries before that page; in the end all
	ended  bool         // the last page was read
}

// step compares the next page or, after the last one, looks for what is stored besides, which may take another pass. It
// reports whether that was all.
func (w *snapshotWalk) step(ctx context.Context) (done bool, err error) {
	if w.unseen == nil {
		w.unseen = newUnseen()
	}
	switch {
	case w.unseen.done():
		return true, nil
	case w.ended:
		stored := func(each EachStored) error { return w.stored(ctx, each) }
		if err := w.unseen.end(stored, w.extra); err != nil || w.unseen.done() {
			return err == nil, err
		}
		w.token, w.before, w.ended = ledger.Token{}, 0, false
		return false, nil
	}
	page, err := w.read(ctx, w.token)
	if err != nil {
		return false, err
	}
	keys, err := w.compare(ctx, w.before, page.Entries, !w.unseen.first())
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		w.unseen.see(key)
	}
	w.token, w.before, w.ended = page.Next, w.before+int64(len(page.Entries)), page.Last
	return false, nil
}

// all walks to the end.
func (w *snapshotWalk) all(ctx context.Context) error {
	for {
		if done, err := w.step(ctx); err != nil || done {
			return err
		}
	}
}
