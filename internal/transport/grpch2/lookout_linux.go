package grpch2

import (
	"syscall"
	"unsafe"
)

const canLook = true

// arrived reports whether a socket has something to be read, or has ended. It does not wait.
func arrived(fd uintptr) bool {
	var b byte
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	return errno != syscall.EAGAIN && errno != syscall.EINTR
}
