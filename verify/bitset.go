package verify

// bitset is a set of numbers from 0, in about one bit of memory each where they stand close together.
type bitset map[int64]*[bitsetChunk / 64]uint64

const bitsetChunk = 1 << 15

func (b bitset) set(n int64) {
	chunk := b[n/bitsetChunk]
	if chunk == nil {
		chunk = new([bitsetChunk / 64]uint64)
		b[n/bitsetChunk] = chunk
	}
	chunk[n%bitsetChunk/64] |= 1 << (n % 64)
}

func (b bitset) clear(n int64) {
	if chunk := b[n/bitsetChunk]; chunk != nil {
		chunk[n%bitsetChunk/64] &^= 1 << (n % 64)
	}
}

func (b bitset) has(n int64) bool {
	chunk := b[n/bitsetChunk]
	return chunk != nil && chunk[n%bitsetChunk/64]&(1<<(n%64)) != 0
}
