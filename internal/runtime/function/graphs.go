package function

import (
	"crypto/sha256"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Library implements kernel.Graphs.
func (r *Runtime) Library(names []string) ([]byte, error) {
	functions, gradient := r.lib.Part(names)
	if !membudget.Take(memoryOf(functions)) {
		return nil, noMemoryFor(functions)
	}
	p, err := pbconv.GraphToProto(&graph.Def{Library: functions, Gradient: gradient})
	if err != nil {
		return nil, err
	}
	return pbconv.Marshal(p.GetLibrary())
}

// memoryOf returns about the memory of a copy of functions in bytes.
func memoryOf(functions []graph.FunctionDef) int64 {
	nodes := len(functions)
	for i := range functions {
		nodes += len(functions[i].Nodes)
	}
	return partition.FootprintOf(nodes)
}

func noMemoryFor(functions []graph.FunctionDef) error {
	return status.ResourceExhaustedf("There is not enough memory for a library of %d functions (--memory-limit).", len(functions))
}

// Load implements kernel.Graphs.
func (r *Runtime) Load(graphDef []byte) (kernel.Function, error) {
	p := &pb.GraphDef{}
	if err := proto.Unmarshal(graphDef, p); err != nil {
		return nil, status.InvalidArgumentf("Could not parse GraphDef")
	}
	def, err := pbconv.GraphFromProto(p)
	if err != nil {
		return nil, err
	}
	if !membudget.Take(partition.FootprintOf(len(def.Nodes))) {
		return nil, status.ResourceExhaustedf("There is not enough memory for a graph of %d nodes (--memory-limit).", len(def.Nodes))
	}
	with, err := r.extended(def)
	if err != nil {
		return nil, err
	}
	def.Library, def.Gradient = nil, nil
	g := graph.New(r.kernels)
	g.Library = with.lib
	if err := g.Extend(def); err != nil {
		return nil, err
	}
	body := &graph.Body{Graph: g}
	sig := &opdef.Op{Name: "graph"}
	for n := range g.Nodes() {
		switch {
		case n.Op.Name == "_Arg":
			return nil, status.InvalidArgumentf("The graph must not have arguments, but has %s", n.Name)
		case n.Op.Name != "_Retval":
		case n.Attrs.Int("index") != len(body.Rets):
			return nil, status.InvalidArgumentf("The results of the graph are out of order")
		default:
			body.Rets = append(body.Rets, n)
			sig.Outputs = append(sig.Outputs, opdef.Arg{Name: n.Name, DType: n.InTypes[0]})
		}
	}
	fn := opdef.Func{Name: sig.Name}
	return &function{runtime: with, fn: fn, op: sig, body: func() (*graph.Body, error) { return body, nil }}, nil
}

// extended returns the runtime on the same device for a library with the additional functions of a
// graph. The runtime for the same functions is reused. It stays as long as the graph of r, so its
// memory is asked for.
func (r *Runtime) extended(def *graph.Def) (*Runtime, error) {
	if len(def.Library)+len(def.Gradient) == 0 {
		return r, nil
	}
	if !membudget.TakeRecord(memoryOf(def.Library)) {
		return nil, noMemoryFor(def.Library)
	}
	p, err := pbconv.GraphToProto(&graph.Def{Library: def.Library, Gradient: def.Gradient})
	if err != nil {
		return nil, err
	}
	b, err := pbconv.Marshal(p)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(b)
	f := r.set
	f.mu.Lock()
	more := f.extended[key]
	if more == nil {
		more = &runtimeSet{lib: f.lib.With(def.Library, def.Gradient), cfg: f.cfg, members: map[*kernel.Device]*Runtime{}, closed: f.closed}
		if f.extended == nil {
			f.extended = map[[sha256.Size]byte]*runtimeSet{}
		}
		f.extended[key] = more
	}
	f.mu.Unlock()
	return more.onDevice(r.device), nil
}
