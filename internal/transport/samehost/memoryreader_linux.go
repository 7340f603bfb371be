package samehost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// supported reports whether processes can read each other's memory on this system.
const supported = true

// readMemory fills dst with the memory at an address of another process. Process 0 does not exist.
func readMemory(pid int, dst []byte, address uint64) error {
	for len(dst) > 0 {
		local := []unix.Iovec{{Base: unsafe.SliceData(dst)}}
		local[0].SetLen(len(dst))
		n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(dst)}}, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("reading the memory of process %d: %w", pid, err)
		case n <= 0:
			return fmt.Errorf("reading the memory of process %d: %w", pid, io.ErrUnexpectedEOF)
		default:
			dst, address = dst[n:], address+uint64(n)
		}
	}
	return nil
}

// readWord returns the 64-bit number at an address of another process.
func readWord(pid int, address uint64) (uint64, error) {
	var b [8]byte
	err := readMemory(pid, b[:], address)
	return binary.NativeEndian.Uint64(b[:]), err
}

// unmappedUser is the ID under which all users of other user namespaces appear. Two processes with
// it need not belong to the same user.
const unmappedUser = 65534

// peerProcess returns the ID of the process at the other end of a Unix socket, which must belong to
// the same user. The ID is 0 if the process is in a container with process IDs of its own.
func peerProcess(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return 0, e
	}
	switch {
	case err != nil:
		return 0, err
	case cred.Uid == unmappedUser:
		return 0, fmt.Errorf("the user of process %d is unknown in this user namespace, or is user %d", cred.Pid, unmappedUser)
	case int(cred.Uid) != os.Geteuid():
		return 0, fmt.Errorf("process %d belongs to user %d instead of %d", cred.Pid, cred.Uid, os.Geteuid())
	}
	return int(cred.Pid), nil
}
