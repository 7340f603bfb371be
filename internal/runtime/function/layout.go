package function

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/opdef"
)

// layout holds the parts of a function.
type layout struct {
	args, rets int // numbers of arguments and results
	locals     []localPart
	remotes    []*remotePart
}

// localPart is the part of a function on one device of this task.
type localPart struct {
	exec *executor.Executor
	args []int // indexes of its arguments
}

// location returns the part that a node belongs to: its device if that is on this task, or else its
// task. Another task splits its part by device itself.
func (r *Runtime) location(n *graph.Node) string {
	if r.set.local(n.Assigned) != nil {
		return n.Assigned
	}
	task, _, _ := strings.Cut(n.Assigned, "/device:")
	return task
}

// namer returns a function that generates names for new nodes of g.
func namer(g *graph.Graph) func(prefix string) string {
	last := 0
	return func(prefix string) string {
		for {
			last++
			if name := fmt.Sprintf("%s_F%d", prefix, last); g.Node(name) == nil {
				return name
			}
		}
	}
}

// compileLayout compiles the parts on this task and prepares the others for their tasks.
func (r *Runtime) compileLayout(fn opdef.Func, parts map[string]*graph.Graph, args, rets int) (*layout, error) {
	l := &layout{args: args, rets: rets}
	for _, at := range slices.Sorted(maps.Keys(parts)) {
		g := parts[at]
		d := r.set.local(at)
		if d == nil {
			p, err := newRemotePart(at, g, r.set.cfg.WholeParts)
			if err != nil {
				return nil, err
			}
			l.remotes = append(l.remotes, p)
			r.set.addRemote(p)
			continue
		}
		exec, err := r.set.onDevice(d).compile(fn, g)
		if err != nil {
			return nil, err
		}
		p := localPart{exec: exec}
		for n := range g.Nodes() {
			if n.Op.Name == "_Arg" {
				p.args = append(p.args, n.Attrs.Int("index"))
			}
		}
		l.locals = append(l.locals, p)
	}
	return l, nil
}

// remoteLayout returns the layout of a function that runs on one device of another task.
func (r *Runtime) remoteLayout(fn opdef.Func, at device.Spec) (*layout, error) {
	body, err := r.instantiate(fn)
	if err != nil {
		return nil, err
	}
	prune(body)
	for n := range body.Graph.Nodes() {
		n.Assigned = at.String()
	}
	return r.compileLayout(fn, map[string]*graph.Graph{at.TaskName(): body.Graph}, len(body.Args), len(body.Rets))
}
