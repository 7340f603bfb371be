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

// newPipe returns the ends of a pipe, to be read and to be written.
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

// sendPipe sends one end of a pipe with a message.
func sendPipe(conn *net.UnixConn, message []byte, end *os.File) error {
	raw, err := end.SyscallConn()
	if err != nil {
		return err
	}
	if e := raw.Control(func(fd uintptr) { _, _, err = conn.WriteMsgUnix(message, unix.UnixRights(int(fd)), nil) }); e != nil {
		return e
	}
	return err
}

// receive fills a message, and returns the end of a pipe that came with it, or nil.
func receive(conn *net.UnixConn, message []byte) (*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4)) // of one descriptor; the kernel closes others
	n, k, _, _, err := conn.ReadMsgUnix(message, oob)
	if err != nil {
		return nil, err
	}
	end, err := descriptor(oob[:k])
	if err == nil && n != len(message) {
		err = fmt.Errorf("a message of %d bytes, not of %d", n, len(message))
	}
	if err != nil && end != nil {
		end.Close()
		end = nil
	}
	return end, err
}

func descriptor(oob []byte) (*os.File, error) {
	if len(oob) == 0 {
		return nil, nil //nolint:nilnil // none came
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("what came with a message cannot be understood: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	if len(fds) == 0 {
		return nil, nil //nolint:nilnil // none came
	}
	for _, fd := range fds[1:] { // there is room for two
		unix.Close(fd)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), nil
}

// pour has the pages of memory taken for what a pipe holds, as much as there is room for, and waits
// for that.
func pour(pipe syscall.RawConn, mem []byte) (n int, err error) {
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

// stillOpen returns an error if the other end of a connection, which sends nothing, has closed it.
func stillOpen(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var b [1]byte
	var came error
	if err := raw.Control(func(fd uintptr) { _, _, came = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT) }); err != nil {
		return err
	}
	if errors.Is(came, unix.EAGAIN) {
		return nil
	}
	return errChannelEnd
}
