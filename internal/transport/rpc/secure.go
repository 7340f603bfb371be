package rpc

import (
	"context"
	"errors"
	"net"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/status"
)

// principalOf returns what the certificate of a client says, nil for a connection without TLS.
func principalOf(nc net.Conn) *trust.Principal {
	if c, ok := nc.(interface{ Principal() *trust.Principal }); ok {
		return c.Principal()
	}
	return nil
}

// A Guard decides which clients a server serves, and what they may call.
type Guard struct {
	Credentials *secure.Credentials
	Policy      trust.Policy
	// InCluster reports whether the cluster has a task. Other tasks may call nothing.
	InCluster func(cluster.Task) bool
	// ConnectionRefused is called for a client that has no certificate that is accepted; may be
	// nil.
	ConnectionRefused func(peer string, err error)
	// Checked is called for each call, with the error of the table. It returns that of the call. It
	// may be nil.
	Checked func(ctx context.Context, p *trust.Principal, path string, err error) error
}

// Check returns an error if a client may not use a path of the table.
func (g *Guard) Check(ctx context.Context, p *trust.Principal, path string) error {
	_, err := g.Policy.Check(p, path)
	if err == nil && p.Role == trust.Task && !g.InCluster(p.Task) {
		err = status.Errorf(status.PermissionDenied, "%v is not a task of the cluster", p)
	}
	if g.Checked != nil {
		err = g.Checked(ctx, p, path, err)
	}
	return err
}

// plaintextAdvice is what a client learns that speaks HTTP/2 without TLS, such as TensorFlow's.
const plaintextAdvice = "this task asks for TLS. TensorFlow's clients cannot speak it: start \"weft proxy\" " +
	"on the machine of the client and connect to that"

// Guard makes a server ask for certificates and check every call by the table. It must be called
// before Serve.
func (s *Server) Guard(g *Guard) {
	s.Secure = func(nc net.Conn) net.Conn {
		if principalOf(nc) != nil { // a listener for tasks without TLS has accepted it
			return nc
		}
		return g.Credentials.Server(nc)
	}
	s.Refused = func(nc net.Conn, err error) string {
		if g.ConnectionRefused != nil {
			g.ConnectionRefused(nc.RemoteAddr().String(), err)
		}
		if errors.Is(err, secure.ErrPlaintext) {
			return plaintextAdvice
		}
		return ""
	}
	s.NameOf = func(nc net.Conn) string {
		if p := principalOf(nc); p != nil && p.Role != trust.Task {
			return p.String()
		}
		return ""
	}
	s.Authorize = func(c *grpch2.Caller, path string) (code uint32, text string) {
		if err := g.Check(c.Context, trust.FromContext(c.Context), path); err != nil {
			e := status.From(err)
			return uint32(e.Code), e.Message
		}
		return 0, ""
	}
}
