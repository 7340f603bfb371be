package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
)

// get returns the status and the body of a page.
func get(t testing.TB, c *http.Client, url string) (code int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// httpClient returns a client whose connections end with the test.
func httpClient(t testing.TB, config *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestHTTP requests the pages of a task, also while a session waits for another task.
func TestHTTP(t *testing.T) {
	// nothing listens on port 1
	spec := cluster.Spec{"worker": {0: "127.0.0.1:0", 1: "127.0.0.1:1"}}
	s, err := server.New(cluster.ServerDef{Cluster: spec, Job: "worker"}, server.WithHTTP("127.0.0.1:0"), server.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	c := httpClient(t, nil)
	for path, want := range map[string]string{
		"/livez": "ok\n", "/readyz": "ready\n", "/readyz?format=json": `{"ready":true}` + "\n", "/version": `"go":"go1`, "/debug/pprof/": "goroutine",
		"/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/heap": "\x1f\x8b",
		"/debug/pprof/profile?seconds=0.01": "\x1f\x8b", "/debug/pprof/trace?seconds=0.01": "go 1.", "/": "/readyz ",
	} {
		if code, body := get(t, c, s.HTTPURL()+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := get(t, c, s.HTTPURL()+"/nothing"); code != http.StatusNotFound {
		t.Errorf("an unknown page is answered with %d", code)
	}
	for _, path := range []string{"profile?seconds=301", "trace?seconds=1e9", "trace?seconds=nan", "profile?seconds=0", "profile?seconds=x"} {
		if code, body := get(t, c, s.HTTPURL()+"/debug/pprof/"+path); code != http.StatusBadRequest || !strings.Contains(body, "at most 300") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := get(t, c, s.HTTPURL()+"/readyz?all"); code != http.StatusServiceUnavailable || !strings.Contains(body, "reason: /job:worker/replica:0/task:1 at 127.0.0.1:1 does not answer") {
		t.Errorf("a cluster with a silent task: %d %s", code, body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		sess, err := weft.NewSession(s.Target(), op.NewScope().Graph())
		if err == nil {
			_, err = sess.ListDevices(ctx) // it waits until ctx ends
			_ = sess.Close()
		}
		if err == nil {
			t.Error("a session without a task")
		}
	}()
	want := "waits: a new session has waited"
	for {
		code, body := get(t, c, s.HTTPURL()+"/readyz")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		if strings.Contains(body, want) && strings.Contains(body, "for /job:worker/replica:0/task:1 at 127.0.0.1:1") {
			break
		}
	}
	cancel()
	<-ended
}

// TestHTTPRefuses sends requests that a page of another site could make.
func TestHTTPRefuses(t *testing.T) {
	s, err := server.New(cluster.ServerDef{Cluster: cluster.Spec{"worker": {0: "127.0.0.1:0"}}, Job: "worker"}, server.WithHTTP("127.0.0.1:0"), server.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	c := httpClient(t, nil)
	for _, tt := range []struct {
		method, path, host, origin string
		want                       int
	}{
		{"GET", "/livez", "localhost:1", "", http.StatusOK},
		{"GET", "/livez", "[::1]:1", "", http.StatusOK},
		{"GET", "/livez", "other.example", "", http.StatusMisdirectedRequest},
		{"POST", "/livez", "127.0.0.1", "http://other.example", http.StatusForbidden},
		{"POST", "/livez", "127.0.0.1", "", http.StatusMethodNotAllowed},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, s.HTTPURL()+tt.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%+v: got %d", tt, resp.StatusCode)
		}
	}
}

// TestHTTPAddress tries addresses that need a permission, or are no addresses.
func TestHTTPAddress(t *testing.T) {
	def := cluster.ServerDef{Cluster: cluster.Spec{"worker": {0: "127.0.0.1:0"}}, Job: "worker"}
	for address, want := range map[string]string{"0.0.0.0:0": "must be allowed explicitly", "nonsense": "cannot serve HTTP"} {
		if s, err := server.New(def, server.WithHTTP(address)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
			if err == nil {
				s.Close()
			}
		}
	}
	s, err := server.New(def, server.WithHTTP("0.0.0.0:0"), server.Insecure())
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// TestHTTPWithTLS requests pages with certificates of each role.
func TestHTTPWithTLS(t *testing.T) {
	a := newAuthority(t, "train")
	closed := startSecure(t, a, 1, server.WithHTTP("127.0.0.1:0"))[0]
	open := startSecure(t, a, 1, server.WithHTTP("127.0.0.1:0"), server.WithOpenHealth(), server.WithOpenMetrics())[0]
	pem, err := os.ReadFile(a.path("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	other := newAuthority(t, "other")
	principals := map[string]*trust.Principal{
		"operator": {Role: trust.Operator, Name: "bob"}, "observer": {Role: trust.Observer, Name: "prometheus"},
		"client": {Role: trust.Client, Tenant: "a", Name: "b"}, "other": {Role: trust.Operator, Name: "eve"}, "anonymous": nil,
	}
	const no = http.StatusForbidden
	wants := map[string]map[string]int{
		"/livez":        {"operator": 200, "observer": 200, "client": 200, "other": no, "anonymous": no},
		"/readyz":       {"operator": 200, "observer": 200, "client": no, "other": no, "anonymous": no},
		"/metrics":      {"operator": 200, "observer": 200, "client": no, "other": no, "anonymous": no},
		"/debug/pprof/": {"operator": 200, "observer": no, "client": no, "other": no, "anonymous": no},
	}
	for name, p := range principals {
		config := &tls.Config{InsecureSkipVerify: true}
		if p != nil {
			by := a
			if name == "other" {
				by = other
			}
			files := by.files(t, *p)
			pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		c := httpClient(t, config)
		for path, want := range wants {
			if code, body := get(t, c, closed.HTTPURL()+path); code != want[name] {
				t.Errorf("%s by %s: %d %s", path, name, code, body)
			}
			opened := want[name]
			if name == "anonymous" && path != "/debug/pprof/" {
				opened = http.StatusOK
			}
			if code, body := get(t, c, open.HTTPURL()+path); code != opened {
				t.Errorf("%s by %s, opened: %d %s", path, name, code, body)
			}
		}
	}
}
