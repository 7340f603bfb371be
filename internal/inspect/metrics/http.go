package metrics

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

const (
	// requestTimeout bounds the time of a request, and maxRequest its size in bytes.
	requestTimeout = 5 * time.Second
	maxRequest     = 16 << 10
	// acceptBackoff is the pause after an accept that failed, for example for lack of descriptors.
	acceptBackoff = 100 * time.Millisecond
)

// Listen listens on a TCP address ("host:port"). Unless open is set, the address must be one of the
// loopback interface.
func Listen(address string, open bool) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-address: %w", err)
	}
	if !open && !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("--metrics-address: other machines can reach %s; --metrics=open allows it, and so does --insecure on a trusted network", address)
	}
	l, err := net.ListenTCP("tcp", tcp)
	if err != nil {
		return nil, fmt.Errorf("--metrics-address: %w", err)
	}
	return l, nil
}

// Serve answers requests one after the other until the listener is closed. limited returns how
// often clients have reached each limit. Serve implements the part
// of HTTP/1.1 that a scrape needs: net/http adds 1.6 MiB to the memory of an idle task.
func Serve(l net.Listener, limited func() map[string]uint64) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			<-time.After(acceptBackoff)
			continue
		}
		if conn.SetDeadline(time.Now().Add(requestTimeout)) == nil {
			_, _ = conn.Write(answer(conn, limited))
		}
		conn.Close()
	}
}

// answer reads a request and returns its response, nil if the request is incomplete.
func answer(conn io.Reader, limited func() map[string]uint64) []byte {
	in := bufio.NewReader(io.LimitReader(conn, maxRequest))
	first, err := in.ReadString('\n')
	for line := first; err == nil && strings.TrimRight(line, "\r\n") != ""; {
		line, err = in.ReadString('\n')
	}
	if err != nil {
		return nil
	}
	method, rest, _ := strings.Cut(first, " ")
	target, _, _ := strings.Cut(rest, " ")
	path, _, _ := strings.Cut(target, "?")
	outcome, body := "404 Not Found", []byte("The metrics are at /metrics.\n")
	switch {
	case method != "GET" && method != "HEAD":
		outcome, body = "405 Method Not Allowed\r\nAllow: GET, HEAD", nil
	case path == "/metrics":
		outcome, body = "200 OK", appendPage(nil, limited)
	}
	head := fmt.Sprintf("HTTP/1.1 %s\r\n"+
		"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		outcome, len(body))
	if method == "HEAD" {
		body = nil
	}
	return append([]byte(head), body...)
}
