package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"ledgerindexer/ledger"
)

// tallyBuckets is how many buckets the keys of a set fall into.
const tallyBuckets = 1 << 16

// suspectKeys is how many keys are held in memory when buckets are looked at more closely.
const suspectKeys = 1 << 20

// tally compares two sets of any size in memory that does not grow: it sums the hashes of their keys by bucket, and a
// bucket whose sums are not zero in the end holds a key that is on one side only.
type tally struct {
	buckets [tallyBuckets]tallyBucket
}

type tallyBucket struct {
	keys      int64 // on the side that was added
	low, high uint64
}

func hashOf(key string) (bucket int, low, high uint64) {
	sum := sha256.Sum256([]byte(key))
	return int(binary.LittleEndian.Uint16(sum[16:])), binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
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

// odd are the buckets whose two sides differ, in groups that hold at most suspectKeys keys where that is possible.
func (t *tally) odd() []map[int]bool {
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

// unmet finds the rows that are stored and have no counterpart in a source. The source is read from its beginning to its end once,
// and once more for each group of buckets in which the two differ; what is stored is read after each time. Both must tell the same
// each time. Nothing is lost where reading fails in between.
type unmet struct {
	keys   *tally             // nil: the source was read to its end once
	groups []map[int]bool     // that are left to be looked at; the first one now
	met    map[[2]uint64]bool // hashes of the source's keys in its buckets: keys are long
}

func newUnmet() *unmet { return &unmet{keys: new(tally)} }

// first tells whether the source is read for the first time.
func (u *unmet) first() bool { return u.keys != nil }

// done tells whether nothing is left to be read.
func (u *unmet) done() bool { return u.keys == nil && len(u.groups) == 0 }

// meet notes a key of the source.
func (u *unmet) meet(key string) {
	if u.keys != nil {
		u.keys.add(key)
	} else if i, low, high := hashOf(key); u.groups[0][i] {
		u.met[[2]uint64{low, high}] = true
	}
}

// end is called when the source was read to its end. stored tells the key of each row that is stored; found is told those in the
// buckets at hand that were not met.
func (u *unmet) end(stored func(each func(key string, extra ledger.Difference) error) error, found func(key string, extra ledger.Difference) error) error {
	if u.keys != nil {
		rest := *u.keys
		if err := stored(func(key string, _ ledger.Difference) error { rest.subtract(key); return nil }); err != nil {
			return err
		}
		u.keys, u.groups = nil, rest.odd()
	} else {
		err := stored(func(key string, extra ledger.Difference) error {
			if i, low, high := hashOf(key); u.groups[0][i] && !u.met[[2]uint64{low, high}] {
				return found(key, extra)
			}
			return nil
		})
		if err != nil {
			return err
		}
		u.groups = u.groups[1:]
	}
	u.met = map[[2]uint64]bool{}
	return nil
}

// extras finds the rows that are stored and have no counterpart. read goes through the source and tells the key of each
// row that it found stored; stored goes through what is stored.
func extras(
	read func(met func(key string)) error, stored func(each func(key string, extra ledger.Difference) error) error,
	found func(key string, extra ledger.Difference) error,
) error {
	for u := newUnmet(); !u.done(); {
		if err := read(u.meet); err != nil {
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
