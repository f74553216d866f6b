package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// tallyBuckets is the number of buckets for the keys of a set.
const tallyBuckets = 1 << 16

// suspectKeys limits the keys that are held in memory while the buckets that differ are compared.
const suspectKeys = 1 << 20

// tally compares two sets of any size in constant memory. It adds the hashes of one set's keys by bucket, and subtracts
// those of the other: a bucket whose sum is not zero has a key that is in one set only.
type tally struct {
	buckets [tallyBuckets]tallyBucket
}

type tallyBucket struct {
	keys      int64 // of the set that was added
	low, high uint64
}

func hashOf(key string) (bucket int, low, high uint64) {
	sum := sha256.Sum256([]byte(key))
	return int(binary.LittleEndian.Uint16(sum[16:])), binary.LittleEndian.Uint64(sum[:]),
		binary.LittleEndian.Uint64(sum[8:])
}

func (t *tally) add(key string) {
	i, low, high := hashOf(key)
	b := &t.buckets[i]
	b.keys++
	b.low += low
	b.high += high
}

func (t *tally) subtract(key string) {
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

func (u *unseen) see(key string) {
	if u.keys != nil {
		u.keys.add(key)
	} else if i, low, high := hashOf(key); u.groups[0][i] {
		u.seen[[2]uint64{low, high}] = true
	}
}

// end ends a pass, after the source was read to its end. stored must call its argument with the key of each stored row;
// found is called for the rows in the current group of buckets whose key was not seen.
func (u *unseen) end(stored func(each func(key string, extra Difference) error) error,
	found func(key string, extra Difference) error) error {
	if u.keys != nil {
		rest := *u.keys
		if err := stored(func(key string, _ Difference) error { rest.subtract(key); return nil }); err != nil {
			return err
		}
		u.keys, u.groups = nil, rest.differing()
	} else {
		err := stored(func(key string, extra Difference) error {
			if i, low, high := hashOf(key); u.groups[0][i] && !u.seen[[2]uint64{low, high}] {
				return found(key, extra)
			}
			return nil
		})
		if err != nil {
			return err
		}
		u.groups = u.groups[1:]
	}
	u.seen = map[[2]uint64]bool{}
	return nil
}

// extras finds the stored rows without a counterpart in the source. read reads the source and calls seen with the key
// of each entry that is stored; stored reads what is stored.
func extras(
	read func(seen func(key string)) error, stored func(each func(key string, extra Difference) error) error,
	found func(key string, extra Difference) error,
) error {
	for u := newUnseen(); !u.done(); {
		if err := read(u.see); err != nil {
			if !u.first() {
				err = fmt.Errorf("read again what is not in the source: %w", err)
			}
			return err
		}
		if err := u.end(stored, found); err != nil {
			return err
		}
	}
	return nil
}
