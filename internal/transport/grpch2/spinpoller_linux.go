package grpch2

import (
	"syscall"
	"unsafe"
)

// canPoll reports whether readable works on this system.
const canPoll = true

// readable reports whether a socket has data or has been closed. It does not block and takes
// nothing from the socket.
func readable(fd uintptr) bool {
	var b byte
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	return errno != syscall.EAGAIN && errno != syscall.EINTR
}
