package torture

import (
	"os/exec"
	"syscall"
)

// tie has the system kill a program when this process ends, however it ends. What the system watches is the thread that
// starts the program: the caller stays on it.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
