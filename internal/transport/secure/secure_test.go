package secure_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/issue"
)

// authority is a CA in a folder.
type authority struct {
	t   testing.TB
	dir string
	ca  *issue.CA
}

func newAuthority(t testing.TB, domain, clusterName string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	var pair issue.Pair
	var err error
	if a.ca, pair, err = issue.NewCA(domain, clusterName, time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(a.path("ca.pem"), a.path("ca.key")); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// files returns the files of a new certificate, valid from now for a time.
func (a *authority) files(p trust.Principal, now time.Time, life time.Duration) secure.Files {
	a.t.Helper()
	pair, err := a.ca.Issue(p, nil, now, life)
	if err != nil {
		a.t.Fatal(err)
	}
	name := rand.Text()
	f := secure.Files{Cert: a.path(name + ".pem"), Key: a.path(name + ".key"), CA: a.path("ca.pem")}
	if err := pair.Write(f.Cert, f.Key); err != nil {
		a.t.Fatal(err)
	}
	return f
}

func (a *authority) credentials(p trust.Principal) *secure.Credentials {
	a.t.Helper()
	c, err := secure.New(a.files(p, time.Now(), time.Hour), slog.New(slog.DiscardHandler))
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

func task(job string, index int) trust.Principal {
	return trust.Principal{Role: trust.Task, Task: cluster.Task{Job: job, Index: index}}
}

var alice = trust.Principal{Role: trust.Client, Tenant: "research", Name: "alice"}

// pair returns both ends of a TCP connection.
func pair(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server
}

// connect makes the handshake of both ends, and returns both errors.
func connect(t testing.TB, from, to *secure.Credentials, want cluster.Task) (client, server *secure.Conn, clientErr, serverErr error) {
	t.Helper()
	a, b := pair(t)
	server = to.Server(b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if serverErr = server.Handshake(t.Context()); serverErr != nil {
			server.Close()
		}
	}()
	client, clientErr = from.Client(t.Context(), a, want, "localhost:1")
	<-done
	if clientErr == nil && serverErr != nil { // the first read of a client of TLS 1.3 reports that
		_, clientErr = client.Read(make([]byte, 1))
	}
	return client, server, clientErr, serverErr
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

func TestHandshake(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	client, server, clientErr, serverErr := connect(t, a.credentials(alice), a.credentials(task("worker", 1)), cluster.Task{Job: "worker", Index: 1})
	if clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	if got := server.Principal().String(); got != "client research/alice" {
		t.Errorf("the server sees %s", got)
	}
	if got := client.Principal().String(); got != "task worker/1" {
		t.Errorf("the client sees %s", got)
	}
}

func TestHandshakeIsRefused(t *testing.T) {
	a, other, elsewhere := newAuthority(t, "corp", "train"), newAuthority(t, "corp", "train"), newAuthority(t, "corp", "test")
	quiet := slog.New(slog.DiscardHandler)
	with := func(f secure.Files) *secure.Credentials {
		c, err := secure.New(f, quiet)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	foreign := other.files(alice, time.Now(), time.Hour)
	foreign.CA = a.path("ca.pem")
	neighbour := elsewhere.files(task("worker", 0), time.Now(), time.Hour)
	neighbour.CA = a.path("ca.pem")
	future := a.files(alice, time.Now().Add(time.Hour), time.Hour)
	worker := cluster.Task{Job: "worker"}
	for _, tt := range []struct {
		name     string
		from, to *secure.Credentials
		want     cluster.Task
		text     string // in one of the errors
	}{
		{"wrong CA", with(foreign), a.credentials(task("worker", 0)), worker, "unknown authority"},
		{"CA of another cluster", with(neighbour), a.credentials(task("worker", 0)), worker, "belongs to the cluster train of corp"},
		{"not yet valid", with(future), a.credentials(task("worker", 0)), worker, "not yet valid"},
		{"another task answers", a.credentials(alice), a.credentials(task("ps", 0)), worker, "is that of task ps/0, not of task worker/0"},
		{"another number answers", a.credentials(alice), a.credentials(task("worker", 1)), worker, "not of task worker/0"},
		{"a client answers", a.credentials(task("worker", 0)), a.credentials(alice), worker, "incompatible key usage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, clientErr, serverErr := connect(t, tt.from, tt.to, tt.want)
			if clientErr == nil {
				t.Error("the client has connected")
			}
			if err := errors.Join(clientErr, serverErr); err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %s", err, tt.text)
			}
		})
	}
}

// TestHandshakeOfOthers connects with clients that this package would not make.
func TestHandshakeOfOthers(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	f := a.files(alice, time.Now(), time.Hour)
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	certs := []tls.Certificate{cert}
	for _, tt := range []struct {
		name   string
		config *tls.Config
		text   string
	}{
		{"no certificate", &tls.Config{NextProtos: []string{"h2"}}, "didn't provide a certificate"},
		{"TLS 1.2", &tls.Config{NextProtos: []string{"h2"}, Certificates: certs, MaxVersion: tls.VersionTLS12}, "unsupported versions"},
		{"no ALPN", &tls.Config{Certificates: certs}, `"h2"`},
		{"HTTP/1.1", &tls.Config{NextProtos: []string{"http/1.1"}, Certificates: certs}, `"h2"`},
		{"another protocol", &tls.Config{NextProtos: []string{"spdy"}, Certificates: certs}, "unsupported application protocols"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, y := pair(t)
			server := a.credentials(task("worker", 0)).Server(y)
			tt.config.InsecureSkipVerify = true
			go func() { _ = tls.Client(x, tt.config).HandshakeContext(t.Context()) }()
			if err := server.Handshake(t.Context()); err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %s", err, tt.text)
			}
		})
	}
	t.Run("plaintext", func(t *testing.T) {
		x, y := pair(t)
		if _, err := x.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if err := a.credentials(task("worker", 0)).Server(y).Handshake(t.Context()); !errors.Is(err, secure.ErrPlaintext) {
			t.Errorf("got %v", err)
		}
	})
}

func TestExpiredCertificateIsNotLoaded(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	_, err := secure.New(a.files(alice, time.Now().Add(-time.Hour), time.Minute), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("got %v", err)
	}
}

// TestTransfer sends buffers of many sizes in both directions.
func TestTransfer(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	client, server, clientErr, serverErr := connect(t, a.credentials(alice), a.credentials(task("worker", 0)), cluster.Task{})
	if clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	var v net.Buffers
	for _, n := range []int{0, 1, 9, 16<<10 - 10, 16 << 10, 16<<10 + 1, 100_000, 5, 1 << 20, 3} {
		b := make([]byte, n)
		_, _ = rand.Read(b)
		v = append(v, b)
	}
	want := bytes.Join(v, nil)
	done := make(chan error, 1)
	go func() {
		got := make([]byte, len(want))
		_, err := io.ReadFull(client, got)
		if err == nil && !bytes.Equal(got, want) {
			err = errors.New("other bytes have arrived")
		}
		done <- err
	}()
	if err := server.WriteBuffers(v); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestBuffered checks that a reader knows of bytes that have left the socket.
func TestBuffered(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	client, server, clientErr, serverErr := connect(t, a.credentials(alice), a.credentials(task("worker", 0)), cluster.Task{})
	if clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	// two records that arrive together
	if err := server.WriteBuffers(net.Buffers{make([]byte, 16<<10), []byte("second")}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if !client.Buffered() {
		t.Error("the rest of a record is not known")
	}
	rest := make([]byte, 16<<10-1000+6)
	if _, err := io.ReadFull(client, rest); err != nil {
		t.Fatal(err)
	}
	if string(rest[len(rest)-6:]) != "second" {
		t.Errorf("got %q", rest[len(rest)-6:])
	}
}

// TestInterruptedRead checks that a read deadline does not damage a connection.
func TestInterruptedRead(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	client, server, clientErr, serverErr := connect(t, a.credentials(alice), a.credentials(task("worker", 0)), cluster.Task{})
	if clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	for range 3 {
		if err := client.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(make([]byte, 1)); !isTimeout(err) {
			t.Fatal(err)
		}
		if err := client.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReload(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	f := a.files(task("worker", 0), time.Now(), time.Hour)
	f.Revoked = a.path("revoked")
	write(t, f.Revoked, "# none\n")
	var log bytes.Buffer
	c, err := secure.New(f, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	loads := 0
	c.OnLoad(func() { loads++ })
	before := c.Expiry()
	replace := func(p trust.Principal, life time.Duration) {
		t.Helper()
		pair, err := a.ca.Issue(p, nil, time.Now(), life)
		if err == nil {
			err = pair.Write(f.Cert, f.Key)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Reload()
	}
	replace(task("worker", 0), 30*time.Minute)
	if loads != 1 || !c.Expiry().Before(before) {
		t.Errorf("the new certificate is not used: %d, %v", loads, c.Expiry())
	}
	replace(task("worker", 1), 10*time.Minute) // the name of another task
	if loads != 1 || !strings.Contains(log.String(), "another name") {
		t.Errorf("the certificate of another task was taken: %s", &log)
	}
	write(t, f.Cert, "no certificate")
	c.Reload()
	if loads != 1 || !strings.Contains(log.String(), "old ones stay in use") {
		t.Errorf("a damaged certificate was taken: %s", &log)
	}
}

// TestRevoked checks that a list of serial numbers ends open connections and refuses new ones.
func TestRevoked(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	f := a.files(task("worker", 0), time.Now(), time.Hour)
	f.Revoked = a.path("revoked")
	write(t, f.Revoked, "")
	to, err := secure.New(f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	from := a.credentials(alice)
	client, server, clientErr, serverErr := connect(t, from, to, cluster.Task{})
	if clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	write(t, f.Revoked, server.ConnectionState().PeerCertificates[0].SerialNumber.Text(16)+"\n")
	to.Reload()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
	if _, _, clientErr, serverErr = connect(t, from, to, cluster.Task{}); serverErr == nil || !strings.Contains(serverErr.Error(), "is revoked") {
		t.Errorf("got %v and %v", clientErr, serverErr)
	}
}

// TestSlowPeerDoesNotDelayClose closes a connection whose peer reads nothing.
func TestSlowPeerDoesNotDelayClose(t *testing.T) {
	a := newAuthority(t, "corp", "train")
	_, server, clientErr, serverErr := connect(t, a.credentials(alice), a.credentials(task("worker", 0)), cluster.Task{})
	if clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.WriteBuffers(net.Buffers{make([]byte, 32<<20)})
	}()
	start := time.Now()
	server.Close()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("the writer goes on")
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
