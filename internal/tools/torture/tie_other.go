//go:build !linux

package torture

import "os/exec"

// tie needs Linux. Elsewhere a program keeps running if this process is killed.
func tie(*exec.Cmd) {}
