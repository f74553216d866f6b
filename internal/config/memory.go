package config

import (
	"runtime/debug"
	"slices"
	"strings"
)

// softMemory is how much memory, in bytes, a program takes before its garbage is collected more eagerly than usual. Where
// nothing is said of a program, it is less than what answers at the limits of the clients would leave lying about. The programs
// that index need 150 MiB, and with the largest pages twice as much; on a machine that is short of processors the collector
// would come too late to keep to that.
func softMemory(program string) int64 {
	switch program {
	case "indexer", "backfill":
		return 300 << 20
	default: // what the sandbox simulates is in its memory
		return 1 << 30
	}
}

// limitMemory sets softMemory, unless the environment has another limit (GOMEMLIMIT, which the runtime has read already).
func limitMemory(program string, environ []string) {
	if !slices.ContainsFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, "GOMEMLIMIT=") }) {
		debug.SetMemoryLimit(softMemory(program))
	}
}
