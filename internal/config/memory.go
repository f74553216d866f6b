package config

import (
	"runtime/debug"
	"slices"
	"strings"
)

// softMemory is how much memory, in bytes, the program takes before its garbage is collected more eagerly than usual: several
// times what its work takes, and less than what answers at the limits of the clients would leave lying about.
const softMemory = 1 << 30

// limitMemory sets softMemory, unless the environment has another limit (GOMEMLIMIT, which the runtime has read already).
func limitMemory(environ []string) {
	if !slices.ContainsFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, "GOMEMLIMIT=") }) {
		debug.SetMemoryLimit(softMemory)
	}
}
