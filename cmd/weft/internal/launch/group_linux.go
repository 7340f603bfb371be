package launch

import "syscall"

// ownGroup makes a process the leader of a group, and lets it end with the launcher. The operating
// system sends the signal when the thread that started the process ends; the supervisor is locked
// to its thread.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
