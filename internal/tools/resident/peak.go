// Package resident measures the memory of other processes, for tests and benchmarks.
package resident

import (
	"os"
	"strconv"
	"strings"
)

// Peak returns the highest resident memory of a process so far, in bytes (VmHWM); 0 where the process has ended, or the
// system does not report it. Unlike ru_maxrss it does not include the memory of the parent process.
func Peak(pid int) int64 {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) < 2 {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(fields[0], 10, 64)
	return kilobytes << 10
}
