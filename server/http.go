package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/weft-ml/weft/internal/inspect/dashboard"
	"github.com/weft-ml/weft/internal/inspect/metrics"
	"github.com/weft-ml/weft/internal/inspect/web"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/buildinfo"
	"github.com/weft-ml/weft/internal/transport/httpapi"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/status"
)

// WithHTTP makes the server answer HTTP at an address ("host:port"): /livez, /readyz, /version,
// /metrics and /debug/pprof. With TLS, clients need a certificate of a role that the table in
// docs/reference/access.md names. Without TLS, an address that other machines can reach needs
// [Insecure].
func WithHTTP(address string) Option { return func(o *options) { o.http = address } }

// WithREST makes a server with [WithHTTP] serve sessions as JSON over HTTP below /v1/: the calls of
// TensorFlow's MasterService, for callers that may make them over gRPC. It is described by OpenAPI
// at /v1/openapi.json and /v1/docs/.
func WithREST() Option { return func(o *options) { o.rest = true } }

// newREST returns the handler of sessions over HTTP.
func (s *Server) newREST(m rpc.Master, o *options) http.Handler {
	h := &httpapi.Handler{
		Master: m, Inspector: s.inspection, Authorize: s.authorizeCall, RequestSize: o.limits.RequestSize, GraphSize: o.limits.GraphSize, Quota: s.quota,
		Version: buildinfo.Read().Version, Log: s.log,
	}
	if o.tracer != nil {
		return o.tracer.HTTP(h, h.Route)
	}
	return h
}

// authorizeCall returns the context of a call over HTTP, or an error if the client may not make it.
// The description is for every role.
func (s *Server) authorizeCall(r *http.Request, path string) (context.Context, error) {
	if s.secure == nil {
		return r.Context(), nil
	}
	if path == "" {
		path = trust.Version
	}
	p, err := s.callerOf(r)
	if err != nil {
		return nil, err
	}
	ctx := trust.NewContext(r.Context(), p)
	return ctx, s.secure.guard.Check(ctx, p, path)
}

// listenHTTP opens the listener of HTTP, nil if there is none.
func (s *Server) listenHTTP(o *options) (net.Listener, error) {
	if o.http == "" {
		return nil, nil //nolint:nilnil // see above
	}
	tcp, err := net.ResolveTCPAddr("tcp", o.http)
	if err != nil {
		return nil, status.InvalidArgumentf("cannot serve HTTP at %s: %w", o.http, err)
	}
	if s.secure == nil && !o.insecure && !tcp.IP.IsLoopback() {
		return nil, status.FailedPreconditionf("the address of HTTP %s can be reached from other machines, and it tells what the task does: "+
			"that must be allowed explicitly", o.http)
	}
	l, err := net.ListenTCP("tcp", tcp)
	if err != nil {
		return nil, status.Unavailablef("cannot serve HTTP at %s: %w", o.http, err)
	}
	return l, nil
}

// HTTPAddress returns the address at which the server answers HTTP, "" if it does not.
func (s *Server) HTTPAddress() string {
	if s.httpListener == nil {
		return ""
	}
	return s.httpListener.Addr().String()
}

// HTTPURL returns the URL of the server's HTTP, "" if it has none.
func (s *Server) HTTPURL() string {
	switch {
	case s.httpListener == nil:
		return ""
	case s.secure != nil:
		return "https://" + s.HTTPAddress()
	}
	return "http://" + s.HTTPAddress()
}

// serveHTTP starts to answer HTTP.
func (s *Server) serveHTTP() {
	if s.httpListener == nil {
		return
	}
	var config *tls.Config
	if s.secure != nil {
		config = s.secure.creds.HTTP()
	}
	s.web = web.Serve(s.httpListener, web.Config{
		TLS: config, API: s.rest, Dashboard: &dashboard.Dashboard{Cluster: s.inspection, Self: s.def.Self().Short()},
		Authorize: s.authorizeHTTP, Readiness: s.readiness, Metrics: metrics.NewHandler(s.registry, s.observer, s.metricState),
		AnyHost: s.secure != nil || !isLoopbackAddr(s.httpListener.Addr()), Log: s.log,
	})
}

// closeHTTP ends HTTP, which was served until the steps had ended.
func (s *Server) closeHTTP() {
	switch {
	case s.web != nil:
		s.web.Close()
	case s.httpListener != nil:
		s.httpListener.Close()
	}
}

// authorizeHTTP returns an error if the client of a request may not use a path.
func (s *Server) authorizeHTTP(r *http.Request, path string) error {
	if s.secure == nil {
		return nil
	}
	p, err := s.callerOf(r)
	if err != nil {
		return err
	}
	return s.secure.guard.Check(trust.NewContext(r.Context(), p), p, path)
}

// callerOf returns the client of a request over TLS.
func (s *Server) callerOf(r *http.Request) (*trust.Principal, error) {
	p, err := s.secure.creds.PrincipalOf(r.TLS.PeerCertificates)
	if err != nil {
		s.secure.guard.ConnectionRefused(r.RemoteAddr, err)
		return nil, status.Errorf(status.PermissionDenied, "the certificate is not accepted")
	}
	return p, nil
}

// readiness returns whether the task takes work. With all, the other tasks of the cluster have to
// answer, too.
func (s *Server) readiness(ctx context.Context, all bool) web.Readiness {
	var out web.Readiness
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	if state == stopping {
		reason := "the task is shutting down"
		if n := s.gate.count(); n > 0 {
			reason += fmt.Sprintf("; %d requests are still running", n)
		}
		out.Reasons = append(out.Reasons, reason)
	}
	if end := s.CertificateExpiry(); !end.IsZero() && time.Now().After(end) {
		out.Reasons = append(out.Reasons, "the certificate of the task has ended at "+end.UTC().Format(time.RFC3339))
	}
	if all {
		out.Reasons = append(out.Reasons, s.silentTasks(ctx)...)
	}
	out.Ready = len(out.Reasons) == 0
	out.Waits = s.task.Master.Waits()
	return out
}

// silentTasks says which tasks of the cluster do not answer.
func (s *Server) silentTasks(ctx context.Context) []string {
	info, err := s.inspection.GetCluster(ctx, &pb.GetClusterRequest{})
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, t := range info.GetTasks() {
		if t.GetError() != "" {
			out = append(out, fmt.Sprintf("%s at %s does not answer: %s", t.GetName(), t.GetAddress(), t.GetError()))
		}
	}
	return out
}
