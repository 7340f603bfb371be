//go:build !unix

package launch

import (
	"os"
	"syscall"
)

// ownGroup does nothing on systems without groups of processes.
func ownGroup() *syscall.SysProcAttr { return nil }

// signalGroup kills a process; other signals cannot be sent here.
func signalGroup(p *os.Process, _ syscall.Signal) {
	_ = p.Kill() // fails if it has ended
}
