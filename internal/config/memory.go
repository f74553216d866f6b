package config

import (
	"runtime/debug"
	"slices"
	"strings"
)

// softMemory returns the memory limit of a program's garbage collector, in bytes. Other limits: what is read ahead
// (ingest/updates.go), the size of an answer (internal/base/jsonhttp/limits.go). The indexer needs 180 MiB, and twice
// as much with the largest pages. The limit makes the collector run before garbage from the largest answers adds up,
// which happens on machines with few processors.
func softMemory(program string) int64 {
	switch program {
	case "indexer", "backfill":
		return 300 << 20
	default: // the sandbox keeps its ledger in memory
		return 1 << 30
	}
}

// limitMemory sets softMemory, unless GOMEMLIMIT, which the runtime has read already, is set.
func limitMemory(program string, environ []string) {
	if !slices.ContainsFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, "GOMEMLIMIT=") }) {
		debug.SetMemoryLimit(softMemory(program))
	}
}
