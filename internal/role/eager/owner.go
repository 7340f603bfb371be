package eager

import (
	"context"

	"github.com/weft-ml/weft/internal/trust"
)

// mayUse reports whether the caller of a request may use the context: the client that has created
// it, and the tasks of its cluster, which run parts of functions for each other. An operator may
// close any: the table of package trust says which methods an operator may call. Clients choose the
// numbers of contexts, so knowing one gives no right.
func (c *Context) mayUse(ctx context.Context) bool {
	p := trust.FromContext(ctx)
	switch {
	case p == nil || c.owner == nil || p.Role == trust.Operator:
		return true
	case p.Role == trust.Task:
		return c.scope.Has(p.Task)
	}
	return *p == *c.owner
}
