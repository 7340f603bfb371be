package trust

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/cluster"
)

// A Role is a kind of principals.
type Role uint8

// The roles, in the order of the columns of the table.
const (
	Client    Role = iota // runs graphs in its own sessions
	Task                  // is a task of the cluster
	Operator              // ends sessions and drops state of any tenant
	Observer              // reads figures
	Anonymous             // has no certificate
	NumRoles
)

var roleNames = [NumRoles]string{"client", "task", "operator", "observer", "anonymous"}

// String returns the name of a role, as in trust files.
func (r Role) String() string {
	if r < NumRoles {
		return roleNames[r]
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// ParseRole returns the role of a name.
func ParseRole(name string) (Role, bool) {
	for r, n := range roleNames {
		if n == name {
			return Role(r), true
		}
	}
	return 0, false
}

// A Principal is what a certificate says about its holder. Principals are comparable: two
// connections belong to the same holder if their principals are equal.
type Principal struct {
	Role    Role
	Domain  string       // trust domain of a SPIFFE ID of this project's form; "" for other names
	Cluster string       // cluster in such an ID; "" for other names
	Task    cluster.Task // of the role Task
	Tenant  string       // of the role Client
	Name    string       // of a client, operator or observer
}

// String returns the role and the name, as in "client research/alice" and "task worker/0".
func (p *Principal) String() string {
	switch p.Role {
	case Task:
		return "task " + p.Task.Short()
	case Client:
		if p.Name == p.Tenant {
			return "client " + p.Tenant
		}
		return "client " + p.Tenant + "/" + p.Name
	case Operator, Observer:
		return p.Role.String() + " " + p.Name
	case Anonymous, NumRoles:
	}
	return p.Role.String()
}

// ID returns the SPIFFE ID of a principal. The domain and cluster must be set.
func (p *Principal) ID() string {
	base := scheme + p.Domain + "/weft/" + p.Cluster + "/"
	switch p.Role {
	case Task:
		return fmt.Sprintf("%sjob/%s/task/%d", base, p.Task.Job, p.Task.Index)
	case Client:
		return base + "client/" + p.Tenant + "/" + p.Name
	case Operator, Observer, Anonymous, NumRoles:
	}
	return base + p.Role.String() + "/" + p.Name
}

type contextKey struct{}

// NewContext returns a context that carries a principal, which must not be modified.
func NewContext(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the caller of a request. It returns nil if the server uses no certificates,
// or if the caller is this process; then everything is allowed.
func FromContext(ctx context.Context) *Principal {
	p, _ := ctx.Value(contextKey{}).(*Principal)
	return p
}

// TenantOf returns the tenant of the caller of a request, "" for none.
func TenantOf(ctx context.Context) string {
	if p := FromContext(ctx); p != nil {
		return p.Tenant
	}
	return ""
}
