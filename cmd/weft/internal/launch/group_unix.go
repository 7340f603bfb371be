//go:build unix

package launch

import (
	"os"
	"syscall"
)

// signalGroup sends a signal to a process and the others of its group.
func signalGroup(p *os.Process, s syscall.Signal) {
	_ = syscall.Kill(-p.Pid, s) // fails if all have ended
}
