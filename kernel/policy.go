package kernel

import (
	"strings"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Policy says which operations a task runs. A nil Policy allows all of them. It does not change,
// and may be used concurrently.
type Policy struct {
	set     string      // name of the set of operations
	without opdef.Class // classes that do not belong to the set
	denied  map[string]bool
}

// opSets are the names of the sets of operations that [NewPolicy] knows, with the classes that do
// not belong to them.
var opSets = map[string]opdef.Class{
	"all":      0,
	"training": opdef.Prints | opdef.Debug,
	"serving":  opdef.Prints | opdef.Debug | opdef.FilesWrite,
}

// NewPolicy returns the policy that allows a set of operations, except for the denied ones. The
// sets are "all", "training" (without the classes prints and debug) and "serving" (without
// files-write, either). An unknown set or operation is InvalidArgument.
func NewPolicy(set string, denied []string) (*Policy, error) {
	without, ok := opSets[set]
	if !ok {
		return nil, status.InvalidArgumentf("--ops %q: want all, training or serving", set)
	}
	p := &Policy{set: set, without: without, denied: map[string]bool{}}
	for _, name := range denied {
		if _, ok := Default.LookupOp(name); !ok {
			return nil, status.InvalidArgumentf("--deny-op %q: there is no such operation", name)
		}
		p.denied[name] = true
	}
	return p, nil
}

// Check returns PermissionDenied, with the node and the flag, if the operation of a node is not
// allowed.
func (p *Policy) Check(node string, op *opdef.Op) error {
	switch {
	case p == nil:
		return nil
	case p.denied[op.Name]:
		return status.AtNode(status.Errorf(status.PermissionDenied, "This task does not run the operation %s (--deny-op %s).", op.Name, op.Name), node)
	case p.without&op.Class != 0:
		return status.AtNode(status.Errorf(status.PermissionDenied, "This task does not run the operation %s, whose class is %v (--ops %s).",
			op.Name, op.Class, p.set), node)
	}
	return nil
}

// String describes the policy by the flags that set it.
func (p *Policy) String() string {
	if p == nil {
		return "--ops all"
	}
	var b strings.Builder
	b.WriteString("--ops " + p.set)
	for name := range p.denied {
		b.WriteString(" --deny-op " + name)
	}
	return b.String()
}
