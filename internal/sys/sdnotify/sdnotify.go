// Package sdnotify tells the service manager systemd about the state of this process, by the
// protocol of sd_notify(3): datagrams to the socket in the environment variable NOTIFY_SOCKET.
package sdnotify

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Notifier sends states to the service manager. All methods may be called for nil, which is the
// notifier of a process that no service manager waits for.
type Notifier struct{ conn *net.UnixConn }

// New returns the notifier of the process, nil if the environment names no socket. It connects, so
// that a sandbox that the process enters later does not matter.
func New() (*Notifier, error) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil, nil //nolint:nilnil // see Notifier
	}
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		name = "\x00" + rest // an abstract socket
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("cannot tell the service manager (NOTIFY_SOCKET): %w", err)
	}
	return &Notifier{conn}, nil
}

// Ready reports that the process serves, with a line about it for "systemctl status".
func (n *Notifier) Ready(about string) { n.send("READY=1\nSTATUS=" + oneLine(about)) }

// Stopping reports that the process has begun to stop, with a line about it.
func (n *Notifier) Stopping(about string) { n.send("STOPPING=1\nSTATUS=" + oneLine(about)) }

// Close closes the connection to the service manager.
func (n *Notifier) Close() {
	if n != nil {
		n.conn.Close()
	}
}

func (n *Notifier) send(state string) {
	if n != nil {
		_, _ = n.conn.Write([]byte(state)) // the service manager finds out by its own timeouts
	}
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }

// watchdogInterval returns half the time within which the service manager expects a sign of life
// from this process; 0 if it expects none.
func watchdogInterval() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec <= 0 {
		return 0
	}
	return time.Duration(usec) * time.Microsecond / 2
}

// Watch sends a sign of life after each successful check, twice in the time that the service
// manager expects, until the returned function is called. A check gets a context that ends after
// that time. The service manager restarts a process whose checks fail or do not return.
func (n *Notifier) Watch(check func(context.Context) error) (stop func()) {
	interval := watchdogInterval()
	if n == nil || interval == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			within, end := context.WithTimeout(ctx, 2*interval)
			if check(within) == nil {
				n.send("WATCHDOG=1")
			}
			end()
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}
