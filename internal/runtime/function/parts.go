package function

import (
	"maps"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/pass/place"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Parts is a function split by device, for a caller that runs the parts itself: all of them in one
// step, in whose rendezvous they exchange tensors.
type Parts struct {
	Args, Rets int // numbers of arguments and results
	Locals     []LocalPart
	Remotes    []RemotePart
	// components that the parts take besides the arguments: their positions follow those of the
	// arguments
	Packed []PackedArg
}

// LocalPart is the part of a function on a device of this task.
type LocalPart struct {
	Device string
	Graph  *graph.Graph // must not be changed

	exec *executor.Executor
	args []int // positions of its arguments in the function
}

// RemotePart is the part of a function on a device of another task.
type RemotePart struct {
	Device string
	Graph  *graph.Graph // its _Arg and _Retval nodes are numbered within the part
	Args   []int        // positions of its arguments in the function
	Rets   []int        // positions of its results in the function
}

// Split places the nodes of a function and splits it by device. Nodes that request no device stay
// on that of the runtime. at has the devices of the arguments that are elsewhere, by position, and
// packed those of the components of packed arguments.
func (r *Runtime) Split(fn opdef.Func, at map[int]string, packed map[int][]string) (*Parts, error) {
	body, err := r.loweredBody(fn)
	if err != nil {
		return nil, err
	}
	prune(body)
	out := &Parts{Args: len(body.Args), Rets: len(body.Rets)}
	parts := map[string]*graph.Graph{r.device.Name: body.Graph}
	if len(at)+len(packed) > 0 || !r.fitsDevice(body.Graph) {
		if err := r.placeParts(body, out, at, packed); err != nil {
			return nil, err
		}
		parts, err = partition.Split(body.Graph, partition.Options{
			Location: func(n *graph.Node) string { return n.Assigned }, NewName: namer(body.Graph), Incarnation: r.set.incarnation,
			ControlFlow: true, OnHost: r.set.hostMemory(),
		})
		if err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		g := parts[name]
		args, rets := terminalsOf(g)
		d := r.set.local(name)
		if d == nil {
			out.Remotes = append(out.Remotes, RemotePart{Device: name, Graph: g, Args: args, Rets: rets})
			renumber(g, args, rets)
			continue
		}
		exec, err := r.set.onDevice(d).compile(fn, g)
		if err != nil {
			return nil, err
		}
		out.Locals = append(out.Locals, LocalPart{d.Name, g, exec, args})
	}
	return out, nil
}

// placeParts places the nodes of a body.
func (r *Runtime) placeParts(body *graph.Body, out *Parts, at map[int]string, packed map[int][]string) error {
	origins := origins(body.Rets)
	for n := range body.Graph.Nodes() {
		if n.Device == "" && n.Op.Name != "_Retval" {
			n.Device = r.device.Name
		}
	}
	for i, n := range body.Args {
		n.Assigned = r.device.Name
		if name, ok := at[i]; ok {
			n.Assigned = name
		}
	}
	uses, err := unpack(body, packed, namer(body.Graph))
	if err != nil {
		return err
	}
	err = place.Place(body.Graph, place.Options{Devices: r.set.devices(), Client: r.device.Name, Kernels: r.kernels, Soft: true})
	if err != nil {
		return err
	}
	follow(body.Rets, origins)
	out.Packed, err = choose(body, uses, packed)
	return err
}

// terminalsOf returns the positions of the arguments and results in a part, sorted.
func terminalsOf(g *graph.Graph) (args, rets []int) {
	for n := range g.Nodes() {
		switch n.Op.Name {
		case "_Arg":
			args = append(args, n.Attrs.Int("index"))
		case "_Retval":
			rets = append(rets, n.Attrs.Int("index"))
		}
	}
	slices.Sort(args)
	slices.Sort(rets)
	return args, rets
}

// renumber numbers the arguments and results of a part by their order.
func renumber(g *graph.Graph, args, rets []int) {
	for n := range g.Nodes() {
		order := args
		switch n.Op.Name {
		case "_Arg":
		case "_Retval":
			order = rets
		default:
			continue
		}
		i, _ := slices.BinarySearch(order, n.Attrs.Int("index"))
		n.SetAttr("index", int64(i))
	}
}

// Start runs the part. args are all arguments of the function; it takes over those of the part.
// rets receives its results by their positions in the function. stats, if it is not nil, receives
// what is executed. done is called once, on this goroutine or another, when the part has ended.
func (p *LocalPart) Start(step *kernel.Step, args, rets []tensor.Tensor, stats executor.Collector, done func(error)) {
	own := make([]tensor.Tensor, len(args))
	for _, i := range p.args {
		own[i], args[i] = args[i], tensor.Tensor{}
	}
	p.exec.RunAsync(step, executor.RunOptions{Args: own, Rets: rets, Stats: stats}, done)
}

// OnDevice returns the runtime for the same functions on another device of the task, or nil.
func (r *Runtime) OnDevice(name string) *Runtime {
	if d := r.set.local(name); d != nil {
		return r.set.onDevice(d)
	}
	return nil
}
