package sandbox

import "math/bits"

// Everything random of a ledger is derived from its seed. Domains keep the values derived for different things apart.
const (
	domainGenerator uint64 = iota + 1
	domainParty
	domainPackage
	domainUpdateID
	domainUpdate
	domainContractID
	domainContract
	domainPayload
	domainBlob
	domainKeyHash
	domainView
	domainExercise
	domainReassignment
	domainIdentity
	domainMovement
	domainService
	domainShape
	domainElsewhere
)

// mix spreads the bits of x over a whole word (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// rng is a splitmix64 generator: eight bytes of state, so that one can be derived
// for every contract and event on the fly.
type rng struct {
	state uint64
	plain bool // values are what people write (see Options.Believable)
}

// derive returns the generator of thing n in a domain.
func derive(seed, domain, n uint64) rng {
	return rng{state: mix(mix(seed+domain*0x9e3779b97f4a7c15) + n*0xd1342543de82ef95)}
}

// values returns the generator of the values of thing n in a domain.
func (w *world) values(domain, n uint64) rng {
	r := derive(w.seed, domain, n)
	r.plain = w.believable
	return r
}

func (r *rng) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	return mix(r.state)
}

// intn returns a number in [0, n); n must be positive.
func (r *rng) intn(n int) int {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int(hi)
}

// chance is true in about percent of 100 calls.
func (r *rng) chance(percent int) bool { return r.intn(100) < percent }

func (r *rng) bytes(dst []byte, n int) []byte {
	for n > 0 {
		w := r.next()
		for i := 0; i < 8 && n > 0; i, n = i+1, n-1 {
			dst = append(dst, byte(w))
			w >>= 8
		}
	}
	return dst
}

const hexDigits = "0123456789abcdef"

func appendHex(dst []byte, w uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[w>>shift&15])
	}
	return dst
}

// appendID appends words*16 hex digits from which index can be recovered by
// idIndex: no table of ids is needed to look one up.
func appendID(dst []byte, seed, domain, index uint64, words int) []byte {
	r := derive(seed, domain, index)
	second := r.next()
	dst = appendHex(dst, index^mix(second^domain))
	dst = appendHex(dst, second)
	for range words - 2 {
		dst = appendHex(dst, r.next())
	}
	return dst
}

// idIndex recovers the index from the first 32 hex digits of an id made by
// appendID. The caller must make the id again to see whether it is really one.
func idIndex(digits string, domain uint64) (uint64, bool) {
	if len(digits) < 32 {
		return 0, false
	}
	var words [2]uint64
	for i := range 32 {
		var d byte
		switch c := digits[i]; {
		case c >= '0' && c <= '9':
			d = c - '0'
		case c >= 'a' && c <= 'f':
			d = c - 'a' + 10
		default:
			return 0, false
		}
		words[i/16] = words[i/16]<<4 | uint64(d)
	}
	return words[0] ^ mix(words[1]^domain), true
}
