package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/audit"
	"github.com/weft-ml/weft/status"
)

// TLS names the files with the certificates of a task and the rules for those of its peers. The
// files are followed: see [Server.Reload].
type TLS struct {
	Cert, Key string // certificate with its intermediates, and private key, in PEM
	CA        string // certificates that sign those of tasks, and of clients if ClientCA is ""
	ClientCA  string // certificates that sign those of clients, operators and observers
	// Trust maps names in certificates to principals, and tenants to weights; "" if all names are
	// those that "weft cert" gives, and all weights 1.
	Trust   string
	Revoked string // serial numbers and SHA-256 hashes of public keys, one a line; "" for none
}

// WithTLS makes the server accept connections with TLS 1.3 and a client certificate only, use TLS
// for its own, and check every call by the role of its caller. The certificate must name the task.
// Each role may call what docs/reference/access.md says. Clients have their own sessions, and each
// tenant its own variables.
func WithTLS(t TLS) Option { return func(o *options) { o.tls = &t } }

// WithTaskTLS is WithTLS for several servers, such as those of [StartCluster]: it calls of with the
// task of each.
func WithTaskTLS(of func(cluster.Task) TLS) Option { return func(o *options) { o.tlsOf = of } }

// WithOpenHealth makes a server with TLS answer health checks without a client certificate.
func WithOpenHealth() Option { return func(o *options) { o.openHealth = true } }

// WithOpenMetrics makes a server with TLS answer requests for its metrics over HTTP without a
// client certificate.
func WithOpenMetrics() Option { return func(o *options) { o.openMetrics = true } }

// WithPlaintextPeers lists tasks of the cluster that speak no TLS, such as those of TensorFlow. The
// server calls them without TLS, and takes their calls on a listener of their own, where every
// process that reaches it has the rights of these tasks. nil means that they make no calls.
func WithPlaintextPeers(l net.Listener, tasks ...cluster.Task) Option {
	return func(o *options) { o.plainListener, o.plainPeers = l, tasks }
}

// WithClientClusters allows sessions with a cluster of their own if all its addresses are in the
// given networks. Without it, a server with TLS, or one that other machines can reach, allows
// addresses of its own cluster only.
func WithClientClusters(networks ...netip.Prefix) Option {
	return func(o *options) { o.clientClusters = append(o.clientClusters, networks...) }
}

// WithAudit makes the server write a line to an audit log for each connection and call that it
// refuses, and for each session that begins or ends.
func WithAudit(l *AuditLog) Option { return func(o *options) { o.audit = l } }

// AuditLog is an audit log. It may be shared by servers.
type AuditLog = audit.Log

// OpenAuditLog returns an audit log that appends to a file, or writes to stderr if the name is
// "stderr". With required, the server refuses calls that it must note and cannot. Failed writes are
// reported to log. The caller closes the audit log after the servers.
func OpenAuditLog(name string, stderr io.Writer, required bool, log *slog.Logger) (*AuditLog, error) {
	return audit.Open(name, stderr, required, log)
}

// Methods returns the paths of the methods that the server serves, in no particular order.
func (s *Server) Methods() []string { return s.rpc.Paths() }

// secureServer is the part of a server that deals with certificates.
type secureServer struct {
	creds *secure.Credentials
	guard *rpc.Guard
	plain []cluster.Task // tasks without TLS
}

// newSecure returns the certificates of a task; nil without TLS.
func newSecure(o *options, self cluster.Task) (*secureServer, error) {
	if o.tlsOf != nil {
		t := o.tlsOf(self)
		o.tls = &t
	}
	if o.tls == nil {
		return nil, nil //nolint:nilnil // see above
	}
	creds, err := secure.New(secure.Files(*o.tls), o.log)
	if err != nil {
		return nil, status.FailedPreconditionf("the certificates of %v cannot be used: %w", self, err)
	}
	p, err := creds.Self()
	switch {
	case err != nil:
		return nil, status.FailedPreconditionf("the certificate of %v: %w", self, err)
	case p.Role != trust.Task || p.Task != self:
		return nil, status.FailedPreconditionf("the certificate is that of %v, not of %v", p, self)
	}
	if o.openHealth {
		creds.AcceptAnonymous()
	}
	if o.audit != nil {
		creds.OnLoad(func() { o.audit.Write(audit.Event{Event: audit.CertificateLoaded, Principal: p, Task: self.String()}) })
	}
	return &secureServer{creds: creds, plain: o.plainPeers}, nil
}

// credentials returns the certificates for connections to a task.
func (s *secureServer) credentials(t cluster.Task) *secure.Credentials {
	if slices.Contains(s.plain, t) {
		return nil
	}
	return s.creds
}

// guard makes the server ask for certificates.
func (s *Server) guard(o *options) {
	if s.secure == nil {
		return
	}
	self := s.def.Self().String()
	lines := &refusals{log: o.log}
	s.secure.guard = &rpc.Guard{
		Credentials: s.secure.creds, Policy: trust.Policy{HealthOpen: o.openHealth, MetricsOpen: o.openMetrics},
		ConnectionRefused: func(peer string, err error) {
			lines.warn(peer, err)
			if o.audit != nil {
				o.audit.Write(audit.Event{Event: audit.ConnectionRefused, Peer: peer, Task: self, Reason: err.Error()})
			}
		},
		InCluster: func(t cluster.Task) bool { return s.def.Cluster.Address(t) != "" },
		Checked: func(_ context.Context, p *trust.Principal, path string, err error) error {
			if err == nil || o.audit == nil {
				return err
			}
			return o.audit.Require(audit.Event{
				Event: audit.CallRefused, Principal: p, Method: path, Task: self, Code: status.CodeOf(err).String(), Reason: err.Error(),
			}, err)
		},
	}
	s.rpc.Guard(s.secure.guard)
}

// refusals logs connections that are refused. The log itself is limited.
type refusals struct{ log *slog.Logger }

func (r *refusals) warn(peer string, err error) {
	r.log.Warn("a connection was refused", "peer", peer, "error", err)
}

// Loopback reports whether only processes on this machine can connect to the server.
func (s *Server) Loopback() bool { return s.loopback }

// Reload reads the files of certificates again, if the server uses TLS. It does so by itself every
// 10 seconds. Files that do not fit together leave the old certificates in use.
func (s *Server) Reload() {
	if s.secure != nil {
		s.secure.creds.Reload()
	}
}

// CertificateExpiry returns the end of the server's certificate, the zero time without TLS.
func (s *Server) CertificateExpiry() time.Time {
	if s.secure == nil {
		return time.Time{}
	}
	return s.secure.creds.Expiry()
}

// checkCluster returns an error if sessions may not bring a cluster.
func (s *Server) checkCluster(spec cluster.Spec) error {
	if s.secure == nil && s.loopback {
		return nil
	}
	known := map[string]bool{}
	for _, t := range s.def.Cluster.Tasks() {
		known[s.def.Cluster.Address(t)] = true
	}
	for _, t := range spec.Tasks() {
		address := spec.Address(t)
		if known[address] || s.inClientCluster(address) {
			continue
		}
		return status.Errorf(status.PermissionDenied, "the cluster_def of the session names %s, which is not an address of the cluster "+
			"of %v (--client-clusters allows others)", address, s.def.Self())
	}
	return nil
}

func (s *Server) inClientCluster(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(s.clientClusters, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
}

// ownName returns the name that a task of a session's own cluster has in the cluster of the server,
// by its address. Its certificate has that name.
func (s *Server) ownName(spec cluster.Spec, t cluster.Task) cluster.Task {
	address := spec.Address(t)
	for _, own := range s.def.Cluster.Tasks() {
		if s.def.Cluster.Address(own) == address {
			return own
		}
	}
	return t
}

// plainConn is a connection without TLS from a task that has none.
type plainConn struct {
	net.Conn
	principal *trust.Principal
}

// Principal returns the task.
func (c *plainConn) Principal() *trust.Principal { return c.principal }

// plainListener accepts connections of tasks without TLS. Nothing distinguishes these tasks: all
// have the name of the first.
type plainListener struct {
	net.Listener
	principal *trust.Principal
}

// Accept implements net.Listener.
func (l *plainListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &plainConn{nc, l.principal}, nil
}
