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

// extras finds the rows that are stored and have no counterpart. read goes through the source and tells the key of each
// row that it found stored; stored goes through what is stored. Both are called again where they disagree, so they
// must tell the same each time.
func extras(
	read func(met func(key string)) error, stored func(each func(key string, extra ledger.Difference) error) error,
	found func(key string, extra ledger.Difference) error,
) error {
	var t tally
	if err := read(t.add); err != nil {
		return err
	}
	err := stored(func(key string, _ ledger.Difference) error { t.subtract(key); return nil })
	if err != nil {
		return err
	}
	for _, group := range t.odd() {
		met := map[[2]uint64]bool{} // by their hashes: keys are long
		err := read(func(key string) {
			if i, low, high := hashOf(key); group[i] {
				met[[2]uint64{low, high}] = true
			}
		})
		if err != nil {
			return fmt.Errorf("read again what is not in the source: %w", err)
		}
		err = stored(func(key string, extra ledger.Difference) error {
			if i, low, high := hashOf(key); group[i] && !met[[2]uint64{low, high}] {
				return found(key, extra)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
