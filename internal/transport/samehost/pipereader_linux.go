package samehost

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newPipe returns the reading and the writing end of a pipe.
func newPipe() (in, out *os.File, err error) {
	in, out, err = os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	raw, err := out.SyscallConn()
	if err == nil {
		if e := raw.Control(func(fd uintptr) { _, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) }); e != nil {
			err = e
		}
	}
	if err != nil {
		in.Close()
		out.Close()
		return nil, nil, fmt.Errorf("a pipe of %d bytes: %w", pipeSize, err)
	}
	return in, out, nil
}

// sendFile sends a message with an open file.
func sendFile(conn *net.UnixConn, message []byte, end *os.File) error {
	raw, err := end.SyscallConn()
	if err != nil {
		return err
	}
	if e := raw.Control(func(fd uintptr) { _, _, err = conn.WriteMsgUnix(message, unix.UnixRights(int(fd)), nil) }); e != nil {
		return e
	}
	return err
}

// receiveMessage fills message, and returns the file that came with it, or nil.
func receiveMessage(conn *net.UnixConn, message []byte) (*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4)) // for one descriptor; the kernel closes others
	n, k, _, _, err := conn.ReadMsgUnix(message, oob)
	if err != nil {
		return nil, err
	}
	end, err := fileFrom(oob[:k])
	if err == nil && n != len(message) {
		err = fmt.Errorf("a message of %d bytes instead of %d", n, len(message))
	}
	if err != nil && end != nil {
		end.Close()
		end = nil
	}
	return end, err
}

// fileFrom returns the file of a control message, or nil.
func fileFrom(oob []byte) (*os.File, error) {
	if len(oob) == 0 {
		return nil, nil //nolint:nilnil // no file was sent
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("invalid control message: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	if len(fds) == 0 {
		return nil, nil //nolint:nilnil // no file was sent
	}
	for _, fd := range fds[1:] { // the buffer has room for two because of alignment
		unix.Close(fd)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), nil
}

// vmsplice maps pages of memory into a pipe, as many as it has room for. It waits until there is
// room for one.
func vmsplice(pipe syscall.RawConn, mem []byte) (n int, err error) {
	e := pipe.Write(func(fd uintptr) bool {
		iov := unix.Iovec{Base: unsafe.SliceData(mem)}
		iov.SetLen(len(mem))
		for {
			n, err = unix.Vmsplice(int(fd), []unix.Iovec{iov}, unix.SPLICE_F_NONBLOCK)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if e != nil {
		return 0, e
	}
	return n, err
}

// checkOpen returns an error if the other end of a connection has closed it. The other end sends
// nothing.
func checkOpen(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var b [1]byte
	var recvErr error
	if err := raw.Control(func(fd uintptr) { _, _, recvErr = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT) }); err != nil {
		return err
	}
	if errors.Is(recvErr, unix.EAGAIN) {
		return nil
	}
	return errChannelEnd
}
