package statuspage

import (
	"encoding/json"
	"math"
	"time"
)

const (
	sampleEvery = 15 * time.Second
	shownFor    = time.Hour
	samplesKept = int(shownFor / sampleEvery)
)

// Sample is what was measured of a stream at one time. What is not known is null.
type Sample struct {
	At        time.Time `json:"at"`
	Lag       Measured  `json:"lag_seconds"`
	PerSecond Measured  `json:"per_second"` // since the sample before
}

// Measured is a number that may not be known: NaN, in JSON null.
type Measured float64

// MarshalJSON implements json.Marshaler.
func (m Measured) MarshalJSON() ([]byte, error) {
	if !m.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(m))
}

// Known reports whether the number is known.
func (m Measured) Known() bool { return !math.IsNaN(float64(m)) }

var unknown = Measured(math.NaN())

// ring keeps the last samples.
type ring[T any] struct {
	kept []T
	next int
	size int
}

func newRing[T any](size int) *ring[T] { return &ring[T]{size: size} }

func (r *ring[T]) add(value T) {
	if len(r.kept) < r.size {
		r.kept = append(r.kept, value)
		return
	}
	r.kept[r.next] = value
	r.next = (r.next + 1) % r.size
}

// all returns what is kept, the oldest first.
func (r *ring[T]) all() []T {
	return append(append([]T{}, r.kept[r.next:]...), r.kept[:r.next]...)
}
