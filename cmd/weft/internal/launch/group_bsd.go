//go:build unix && !linux

package launch

import "syscall"

// ownGroup makes a process the leader of a group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
