package names

// recent is a cache with two generations. get moves an entry into the younger one. When that is full, it becomes the
// older one, and the entries of the older one are forgotten. The zero value is empty.
type recent[K comparable, V any] struct {
	younger, older map[K]V
}

// mostOfAGeneration is how many entries each of two generations remembers: twice as many are the most lists of parties,
// and the most positions, in memory. Those of lists take some 100 bytes each.
const mostOfAGeneration = 32_768

// get returns what is remembered of a key.
func (r *recent[K, V]) get(key K) (value V, known bool) {
	if value, known = r.younger[key]; known {
		return value, true
	}
	if value, known = r.older[key]; known {
		r.put(key, value)
	}
	return value, known
}

// put remembers something of a key.
func (r *recent[K, V]) put(key K, value V) {
	if r.younger == nil || len(r.younger) >= mostOfAGeneration {
		r.younger, r.older = map[K]V{}, r.younger
	}
	r.younger[key] = value
}
