package master

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/trust"
)

// newHandle returns a handle of a session, which cannot be guessed.
func newHandle() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// origin returns where a request comes from, for the log: the principal or the address of the
// caller, "this process" for a client in the process of the task.
func origin(ctx context.Context, p *trust.Principal) string {
	if p != nil {
		return p.String()
	}
	if ip := peer.Address(ctx); ip.IsValid() {
		return ip.String()
	}
	return "this process"
}

// mayUse reports whether the caller of a request has created the session. An operator may close
// any: the table of package trust says which methods an operator may call.
func (s *session) mayUse(ctx context.Context) bool {
	if s.owner == nil {
		return true
	}
	p := trust.FromContext(ctx)
	return p == nil || p.Role == trust.Operator || p.Role == trust.Observer || *p == *s.owner
}

// concerns reports whether a Reset of the caller ends the session: of its own tenant, or of an
// operator.
func (s *session) concerns(ctx context.Context) bool {
	p := trust.FromContext(ctx)
	return p == nil || p.Role == trust.Operator || s.owner != nil && s.owner.Tenant == p.Tenant
}

// delegate writes into a request to a worker for whom the master makes it.
func delegate(p *trust.Principal, m proto.Message) {
	switch {
	case p == nil:
	case p.Role == trust.Operator:
		peer.Delegate(m, "", p.String())
	default:
		peer.Delegate(m, p.Tenant, p.String())
	}
}
