package master

import (
	"maps"
	"strings"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/status"
)

// releases are the releases of the tasks of a session.
type releases map[cluster.Task]peer.Release

// any reports whether one of the tasks has a trait.
func (r releases) any(t peer.Trait) bool {
	for _, release := range r {
		if release.Has(t) {
			return true
		}
	}
	return false
}

// defFor returns the definition of a partition for a task, with the attributes and device names
// that the task's release needs.
func (r releases) defFor(g *graph.Graph, task cluster.Task) (*graph.Def, error) {
	def, short := g.Def(), r.any(peer.ShortDeviceNames)
	for i := range def.Nodes {
		n := &def.Nodes[i]
		if err := keepAttrs(n, g.Node(n.Name), r[task], task); err != nil {
			return nil, err
		}
		if short {
			r.shortenDevices(n)
		}
	}
	return def, nil
}

// shortenDevices gives a node the device names that tasks with ShortDeviceNames understand: its own
// device, and those in the key of a tensor that it sends or receives. Both ends of a transfer must
// compute the same key.
func (r releases) shortenDevices(n *graph.NodeDef) {
	n.Device = r.shorten(n.Device)
	for _, name := range []string{"send_device", "recv_device"} {
		if device, ok := n.Attrs[name].(string); ok {
			n.Attrs[name] = r.shorten(device)
		}
	}
}

// shorten returns the name of a device, "/job:ps/replica:0/task:0/cpu:0" for one on a task with
// ShortDeviceNames.
func (r releases) shorten(name string) string {
	task, local, ok := strings.Cut(name, "/device:")
	if !ok {
		return name
	}
	if t, err := cluster.ParseTask(task); err != nil || !r[t].Has(peer.ShortDeviceNames) {
		return name
	}
	return task + "/" + strings.ToLower(local)
}

// keepAttrs removes the attributes of a node that a task need not or must not get.
//
// Attributes with their default value are removed, as TensorFlow's masters do: a worker of an
// earlier release may not know them, and the others add them again. Workers of old releases do not
// add them. They get all attributes that their release has.
func keepAttrs(def *graph.NodeDef, n *graph.Node, release peer.Release, task cluster.Task) error {
	var unknown string
	def.Attrs = maps.Clone(def.Attrs)
	maps.DeleteFunc(def.Attrs, func(name string, v any) bool {
		byDefault := isDefault(n.Op.Attr(name), v)
		if !release.Has(peer.WantsDefaults) {
			return byDefault
		}
		known := release.HasAttr(def.Op, name)
		if !known && !byDefault {
			unknown = name
		}
		return !known && byDefault
	})
	switch {
	case !release.HasOp(def.Op):
		return status.Unimplementedf("%v runs %v, which does not have the operation %s of node {{node %s}}.", task, release, def.Op, n.Name)
	case unknown != "" && release != peer.TF113: // a range that may have it
		return status.Unimplementedf("%v runs %v, whose operation %s does not have the attribute %s of node {{node %s}}.",
			task, release, def.Op, unknown, n.Name)
	}
	return nil
}

// deregisterAll drops the graphs of a closed session on the tasks that have no worker session,
// which would drop them.
func (s *session) deregisterAll() {
	if !s.releases.any(peer.NoWorkerSessions) {
		return
	}
	s.mu.Lock()
	plans := make([]*plan, 0, len(s.plans)+len(s.callables))
	for _, p := range s.plans {
		plans = append(plans, p)
	}
	for _, c := range s.callables {
		plans = append(plans, c.plan)
	}
	s.mu.Unlock()
	for _, p := range plans {
		s.deregister(p, func(pt *planPartition) bool { return !pt.inSession })
	}
}
