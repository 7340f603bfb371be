package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// CanLookUp reports whether the system tells the user of a connection.
const CanLookUp = true

// Sizes and offsets of linux/inet_diag.h and linux/netlink.h.
const (
	sockDiagByFamily = 20
	headerSize       = 16 // nlmsghdr
	requestSize      = 56 // inet_diag_req_v2
	answerSize       = 72 // inet_diag_msg
	answerUID        = 64 // offset of idiag_uid
)

// UserOf returns the user at the other end of a connection from this machine.
func UserOf(c net.Conn) (uint32, error) {
	switch c := c.(type) {
	case *net.UnixConn:
		return userOfUnix(c)
	case *net.TCPConn:
		client, err := netip.ParseAddrPort(c.RemoteAddr().String())
		if err != nil {
			return 0, err
		}
		server, err := netip.ParseAddrPort(c.LocalAddr().String())
		if err != nil {
			return 0, err
		}
		return userOfTCP(client, server)
	}
	return 0, fmt.Errorf("a %T has no user", c)
}

func userOfUnix(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return 0, e
	}
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// userOfTCP asks the kernel for the socket of the client, by its exact addresses.
func userOfTCP(client, server netip.AddrPort) (uint32, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, fmt.Errorf("sock_diag: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}); err != nil {
		return 0, err
	}
	if err := unix.Sendto(fd, request(client, server), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("sock_diag: %w", err)
	}
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return 0, fmt.Errorf("sock_diag: %w", err)
	}
	return parseAnswer(b[:n], client)
}

// request returns the question for the socket of a client.
func request(client, server netip.AddrPort) []byte {
	b := make([]byte, headerSize+requestSize)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	q := b[headerSize:]
	from, to := client.Addr().Unmap(), server.Addr().Unmap()
	q[0], q[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if from.Is4() {
		q[0] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(q[4:], ^uint32(0)) // in any state
	id := q[8:]
	binary.BigEndian.PutUint16(id, client.Port())
	binary.BigEndian.PutUint16(id[2:], server.Port())
	copy(id[4:20], from.AsSlice())
	copy(id[20:36], to.AsSlice())
	for i := range 8 {
		id[40+i] = 0xff // no cookie
	}
	return b
}

var errUnknownSocket = errors.New("the kernel does not know the socket of the client")

func parseAnswer(b []byte, client netip.AddrPort) (uint32, error) {
	if len(b) < headerSize {
		return 0, errUnknownSocket
	}
	if kind := binary.NativeEndian.Uint16(b[4:]); kind != sockDiagByFamily || len(b) < headerSize+answerSize {
		if kind == unix.NLMSG_ERROR && len(b) >= headerSize+4 {
			return 0, fmt.Errorf("%w: %w", errUnknownSocket, unix.Errno(-int32(binary.NativeEndian.Uint32(b[headerSize:]))))
		}
		return 0, errUnknownSocket
	}
	m := b[headerSize:]
	if binary.BigEndian.Uint16(m[4:]) != client.Port() {
		return 0, errUnknownSocket
	}
	return binary.NativeEndian.Uint32(m[answerUID:]), nil
}
