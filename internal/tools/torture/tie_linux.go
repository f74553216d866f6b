package torture

import (
	"os/exec"
	"syscall"
)

// tie makes the system kill a program when this process ends, however it ends. The system watches the thread that
// starts the program, so the caller must stay on it.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
