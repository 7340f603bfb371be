package proxy_test

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/cmd/weft/internal/proxy"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/issue"
)

// credentials returns those of a task and of a client.
func credentials(t *testing.T) (task, client *secure.Credentials) {
	t.Helper()
	dir := t.TempDir()
	ca, root, err := issue.NewCA("corp", "train", time.Now(), time.Hour)
	if err == nil {
		err = root.Write(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"))
	}
	if err != nil {
		t.Fatal(err)
	}
	of := func(p trust.Principal) *secure.Credentials {
		pair, err := ca.Issue(p, nil, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, rand.Text())
		if err := pair.Write(name+".pem", name+".key"); err != nil {
			t.Fatal(err)
		}
		c, err := secure.New(secure.Files{Cert: name + ".pem", Key: name + ".key", CA: filepath.Join(dir, "ca.pem")}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return of(trust.Principal{Role: trust.Task, Task: cluster.Task{Job: "worker"}}), of(trust.Principal{Role: trust.Client, Tenant: "a", Name: "b"})
}

// echoTask is a task that sends back what it gets.
func echoTask(t *testing.T, creds *secure.Credentials) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				c := creds.Server(nc)
				defer c.Close()
				if c.Handshake(t.Context()) == nil {
					_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// most is the number of connections that proxies of tests accept.
const most = 2

// start serves a proxy until the end of the test.
func start(t *testing.T, l net.Listener, to string, creds *secure.Credentials, allowed func(uint32) bool) *lines {
	t.Helper()
	log := &lines{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	p := &proxy.Proxy{
		Listener: l, To: to, Task: cluster.Task{Job: "worker"}, Credentials: creds, Allowed: allowed,
		Limiter: proxy.NewLimiter(most, logger), Log: logger,
	}
	done := make(chan error, 1)
	go func() { done <- p.Serve() }()
	t.Cleanup(func() {
		p.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		p.Limiter.Close()
	})
	return log
}

// lines is a log that tests read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func onlyMe(uid uint32) bool { return uid == uint32(os.Geteuid()) }

func TestCarriesBytes(t *testing.T) {
	task, client := credentials(t)
	unix, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{listen(t), unix} {
		start(t, l, echoTask(t, task), client, onlyMe)
		c, err := net.Dial(l.Addr().Network(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		want := make([]byte, 1<<20)
		_, _ = rand.Read(want)
		go func() { _, _ = c.Write(want) }()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != string(want) {
			t.Errorf("%s: other bytes, %v", l.Addr().Network(), err)
		}
	}
}

// A connection beyond the limit ends with GOAWAY, which clients report.
func TestTooManyConnections(t *testing.T) {
	task, client := credentials(t)
	l := listen(t)
	start(t, l, echoTask(t, task), client, onlyMe)
	for range most {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Write([]byte("PRI * HTTP/2.0"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(c); !strings.HasSuffix(string(got), "too many connections (2, set by --max-connections)") {
		t.Errorf("got %q", got)
	}
}

func TestHalfClose(t *testing.T) {
	task, client := credentials(t)
	l := listen(t)
	start(t, l, echoTask(t, task), client, onlyMe)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "last words" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRefusesOtherUsers(t *testing.T) {
	task, client := credentials(t)
	l := listen(t)
	log := start(t, l, echoTask(t, task), client, func(uid uint32) bool { return uid != uint32(os.Geteuid()) })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("the connection is served")
	}
	for !strings.Contains(log.String(), "may not use this proxy") {
		select {
		case <-t.Context().Done():
			t.Fatal(log)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestRefusesAnotherTask(t *testing.T) {
	_, client := credentials(t)
	other, _ := credentials(t) // of another CA
	l := listen(t)
	start(t, l, echoTask(t, other), client, nil)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestUserOf(t *testing.T) {
	if !proxy.CanLookUp {
		t.Skip("the system does not tell the user of a connection")
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Log(err) // a machine without IPv6
			continue
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if uid, err := proxy.UserOf(s); err != nil || uid != uint32(os.Geteuid()) {
			t.Errorf("%s: user %d, %v", address, uid, err)
		}
	}
}
