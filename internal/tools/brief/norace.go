//go:build !race

package brief

// Race is whether the race detector is on.
const Race = false
