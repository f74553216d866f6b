// Package resident tells how much memory other processes take, for tests and benchmarks.
package resident

import (
	"os"
	"strconv"
	"strings"
)

// Peak is the highest resident memory of a process so far, in bytes, as the system counts it (VmHWM); 0 where the process has
// ended, or the system does not tell. It leaves out what ru_maxrss counts too: the memory of the process that started this one.
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
