// Package web serves the HTTP of a task for the people and programs that operate it: whether it
// lives and is ready, its version, its metrics, and profiles of the process.
package web

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/weft-ml/weft/internal/inspect/dashboard"
	"github.com/weft-ml/weft/internal/sys/buildinfo"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/status"
)

const (
	// headerTimeout bounds the time in which the headers of a request must arrive, readTimeout that
	// of a whole request, and idleTimeout the time of a connection without one.
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeader is the size of the headers of a request, in bytes.
	maxHeader = 32 << 10
	// maxConnections bounds the open connections.
	maxConnections = 256
	// closeTimeout bounds the wait for requests when the task stops.
	closeTimeout = time.Second
)

// Config says what is served.
type Config struct {
	// Authorize returns an error if the client of a request may not use a path of the table in
	// package trust.
	Authorize func(r *http.Request, path string) error
	// Readiness returns whether the task takes work. all asks the other tasks of the cluster, too.
	Readiness func(ctx context.Context, all bool) Readiness
	// Metrics serves the metrics.
	Metrics http.Handler
	// API answers the requests below /v1/, and checks their clients itself; nil for none.
	API http.Handler
	// Dashboard is served below /dashboard/; nil for none.
	Dashboard *dashboard.Dashboard
	// AnyHost accepts every name in the header Host. Without it, the host must be an IP address or
	// localhost, so that no page of another site can reach a task on the loopback interface by a
	// name that it controls.
	AnyHost bool
	// TLS is the configuration of TLS; nil for plain HTTP.
	TLS *tls.Config
	Log *slog.Logger
}

// Server serves HTTP on one listener.
type Server struct {
	http *http.Server
	done chan struct{}
}

// page is a path that is served.
type page struct {
	pattern string // of http.ServeMux
	path    string // in the table of package trust
	about   string // one line for the list at /; "" to leave it out
	handler http.HandlerFunc
}

// Serve serves HTTP until Close is called, and closes the listener.
func Serve(l net.Listener, c Config) *Server {
	errs := slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug)
	s := &Server{http: &http.Server{
		Handler: c.handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: errs, TLSConfig: c.TLS,
	}, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		l = netutil.LimitListener(pacedListener{l}, maxConnections)
		var err error
		if c.TLS == nil {
			err = s.http.Serve(l)
		} else {
			err = s.http.ServeTLS(l, "", "")
		}
		if err != http.ErrServerClosed {
			c.Log.Error("HTTP is no longer served", "error", err)
		}
	}()
	return s
}

// Close waits for requests, at most a second, and closes the listener and all connections.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.done
}

func (c Config) pages() []page {
	return append(c.dashboard(), []page{
		{"GET /livez", trust.Livez, "whether the process answers", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") }},
		{"GET /readyz", trust.Readyz, "whether the task takes work, why not, and for which tasks it waits (?all asks the whole cluster, ?format=json)", c.serveReadiness},
		{"GET /version", trust.Version, "commit, date and Go version of the program", serveVersion},
		{"GET /metrics", trust.Metrics, "metrics for Prometheus", c.Metrics.ServeHTTP},
		{"GET /debug/pprof/{$}", trust.Profile, "", serveProfiles},
		{"GET /debug/pprof/{name}", trust.Profile, "profiles of the process, for go tool pprof", serveProfile},
		{"GET /debug/pprof/cmdline", trust.Profile, "", serveCommandLine},
		{"GET /debug/pprof/profile", trust.Profile, "", serveCPU},
		{"GET /debug/pprof/trace", trust.Profile, "", serveTrace},
	}...)
}

// dashboard returns the pages of the dashboard.
func (c Config) dashboard() []page {
	if c.Dashboard == nil {
		return nil
	}
	return []page{
		{"GET /dashboard/", trust.Dashboard, "the cluster in a browser", c.Dashboard.ServeFiles},
		{"GET /dashboard/api/cluster", trust.Dashboard, "", c.Dashboard.ServeCluster},
		{"GET /dashboard/api/log", trust.Dashboard, "", c.Dashboard.ServeLog},
		{"GET /dashboard/api/graph", trust.Dashboard, "", c.Dashboard.ServeGraph},
		{"GET /dashboard/api/scalars", trust.Dashboard, "", c.Dashboard.ServeScalars},
		{"POST /dashboard/api/recordings", trust.Recordings, "", c.Dashboard.ServeRecording},
	}
}

// handler returns the handler of all requests.
func (c Config) handler() http.Handler {
	mux := http.NewServeMux()
	pages := c.pages()
	for _, p := range pages {
		mux.HandleFunc(p.pattern, c.allowed(p))
	}
	mux.HandleFunc("GET /{$}", c.allowed(page{path: trust.Version, handler: func(w http.ResponseWriter, _ *http.Request) {
		var text strings.Builder
		for _, p := range pages {
			if p.about != "" {
				_, path, _ := strings.Cut(p.pattern, " ")
				fmt.Fprintf(&text, "%-16s %s\n", path, p.about)
			}
		}
		if c.API != nil {
			fmt.Fprintf(&text, "%-16s %s\n", "/v1/docs/", "sessions as JSON over HTTP, described by /v1/openapi.json")
		}
		writeText(w, http.StatusOK, text.String())
	}}))
	var protection http.CrossOriginProtection
	return c.checkHost(protection.Handler(c.dispatch(mux)))
}

// dispatch returns the handler that passes the requests for the API on. A ServeMux would redirect
// those with an empty element in their path.
func (c Config) dispatch(pages http.Handler) http.Handler {
	if c.API == nil {
		return pages
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			c.API.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// allowed returns the handler of a page for clients that may use it.
func (c Config) allowed(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := c.Authorize(r, p.path); err != nil {
			writeText(w, http.StatusForbidden, status.From(err).Message+"\n")
			return
		}
		p.handler(w, r)
	}
}

// checkHost refuses requests that name a host other than an IP address or localhost.
func (c Config) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		if !c.AnyHost && !isLocalName(r.Host) {
			writeText(w, http.StatusMisdirectedRequest, "the header Host must be an IP address or localhost\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLocalName(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	_, err = netip.ParseAddr(host)
	return err == nil || host == "localhost" || host == ""
}

func serveVersion(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, buildinfo.Read())
}

// Readiness is whether a task takes work.
type Readiness struct {
	Ready bool `json:"ready"`
	// Reasons says why the task is not ready.
	Reasons []string `json:"reasons,omitempty"`
	// Waits says for which tasks sessions and steps wait. They do not make this task unready.
	Waits []string `json:"waits,omitempty"`
}

func (c Config) serveReadiness(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ready := c.Readiness(r.Context(), query.Has("all"))
	code := http.StatusOK
	if !ready.Ready {
		code = http.StatusServiceUnavailable
	}
	if query.Get("format") == "json" || slices.Contains(r.Header.Values("Accept"), "application/json") {
		writeJSON(w, code, ready)
		return
	}
	writeText(w, code, ready.String())
}

// String returns the text of /readyz.
func (r Readiness) String() string {
	var text strings.Builder
	text.WriteString("ready\n")
	if !r.Ready {
		text.Reset()
		text.WriteString("not ready\n")
	}
	for _, reason := range r.Reasons {
		fmt.Fprintf(&text, "reason: %s\n", reason)
	}
	for _, wait := range r.Waits {
		fmt.Fprintf(&text, "waits: %s\n", wait)
	}
	return text.String()
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // the client may have gone
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}
