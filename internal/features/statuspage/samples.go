package statuspage

import (
	"encoding/json"
	"math"
	"time"
)

// How often the streams are measured for the page's charts, and how long that is kept.
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

// withLast returns a list with one more value, and at most the last n.
func withLast[T any](list []T, value T, n int) []T {
	list = append(list, value)
	return list[max(0, len(list)-n):]
}
