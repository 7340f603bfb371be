package data

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/numeric/murmur"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// fingerprint returns TensorFlow's fingerprint of a dataset's graph. It depends on the operations,
// attributes and connections, but not on seeds or the names of nodes and functions.
func fingerprint(g *pb.GraphDef) (uint64, error) {
	h := &hasher{functions: map[string]*pb.FunctionDef{}, hashes: map[string]uint64{}}
	for _, f := range g.GetLibrary().GetFunction() {
		//sizedmake:ok part of a graph
		h.functions[f.GetSignature().GetName()] = f
	}
	i := slices.IndexFunc(g.GetNode(), func(n *pb.NodeDef) bool { return n.GetOp() == "_Retval" })
	if i < 0 {
		return 0, status.Internalf("Cannot find sink node for dataset graph.")
	}
	return h.from(g.GetNode(), g.GetNode()[i])
}

// hasher computes the fingerprints of nodes and functions.
type hasher struct {
	functions map[string]*pb.FunctionDef
	hashes    map[string]uint64 // fingerprints of functions, by name
	active    []string          // functions being hashed, outermost first
}

// combine is TensorFlow's Hash64Combine.
func combine(a, b uint64) uint64 { return a ^ (b + 0x9e3779b97f4a7800 + a<<10 + a>>4) }

// from returns the fingerprint of a node and everything that it depends on.
func (h *hasher) from(nodes []*pb.NodeDef, root *pb.NodeDef) (uint64, error) {
	w := &walk{hasher: h, nodes: map[string]*pb.NodeDef{}, edges: map[*pb.NodeDef]*edges{}, done: map[*pb.NodeDef]uint64{}}
	for _, n := range nodes {
		//sizedmake:ok part of a graph
		w.nodes[n.GetName()] = n
	}
	if err := w.visit(root); err != nil {
		return 0, err
	}
	return w.hash(root)
}

// walk is the traversal of one graph.
type walk struct {
	*hasher
	nodes map[string]*pb.NodeDef
	edges map[*pb.NodeDef]*edges
	done  map[*pb.NodeDef]uint64
}

// edges are the inputs of a node that its fingerprint includes: those not visited before the node,
// so that there are no cycles.
type edges struct {
	inputs   []*pb.NodeDef
	outputs  []string // output of each input; "" for output 0
	controls []*pb.NodeDef
}

func (w *walk) visit(root *pb.NodeDef) error {
	visited := map[string]bool{}
	for queue := []*pb.NodeDef{root}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if visited[n.GetName()] {
			continue
		}
		//sizedmake:ok part of a graph
		visited[n.GetName()] = true
		e := &edges{}
		//sizedmake:ok part of a graph
		w.edges[n] = e
		for i, input := range n.GetInput() {
			if isSeed(n.GetOp(), i) {
				continue
			}
			control := strings.HasPrefix(input, "^")
			name, output, _ := strings.Cut(strings.TrimPrefix(input, "^"), ":")
			from := w.nodes[name]
			switch {
			case from == nil:
				return status.Internalf("Graph node [%s] has input [%s] that doesn't exist in graph", n.GetName(), name)
			case visited[name]:
			case control:
				e.controls = append(e.controls, from)
			default:
				e.inputs, e.outputs = append(e.inputs, from), append(e.outputs, output)
				queue = append(queue, from)
			}
		}
	}
	return nil
}

// isSeed reports whether input i of an operation is a seed.
func isSeed(op string, i int) bool {
	switch strings.TrimSuffix(strings.TrimRight(op, "0123456789"), "V") {
	case "AnonymousRandomSeedGenerator", "ShuffleDataset", "ShuffleAndRepeatDataset":
	default:
		return false
	}
	def, ok := kernel.Default.LookupOp(op)
	return ok && i < len(def.Inputs) && slices.Contains([]string{"seed", "seed2", "seed_generator"}, def.Inputs[i].Name)
}

func (w *walk) hash(n *pb.NodeDef) (uint64, error) {
	if sum, ok := w.done[n]; ok {
		return sum, nil
	}
	own, err := w.own(n, true)
	if err != nil {
		return 0, err
	}
	e := w.edges[n]
	controls, err := w.unordered(e.controls)
	if err != nil {
		return 0, err
	}
	var inputs uint64
	for i, from := range e.inputs {
		sum, err := w.hash(from)
		if err != nil {
			return 0, err
		}
		inputs = combine(inputs, combine(sum, murmur.Sum64(e.outputs[i])))
	}
	sum := combine(own, combine(controls, inputs))
	w.done[n] = sum
	return sum, nil
}

func (h *hasher) unordered(nodes []*pb.NodeDef) (sum uint64, err error) {
	for _, n := range nodes {
		own, err := h.own(n, false)
		if err != nil {
			return 0, err
		}
		sum += own
	}
	return sum, nil
}

// own returns the fingerprint of a node without its inputs. functions includes the functions that
// it uses.
func (h *hasher) own(n *pb.NodeDef, functions bool) (uint64, error) {
	def, sum, err := h.operation(n.GetOp(), functions)
	if err != nil {
		return 0, err
	}
	var attrs uint64
	for i := range def.Attrs {
		name := def.Attrs[i].Name
		v := n.GetAttr()[name]
		if v == nil || name == "metadata" && strings.Contains(def.Name, "Dataset") {
			continue
		}
		value, err := h.attr(v, functions)
		if err != nil {
			return 0, err
		}
		attrs = combine(attrs, combine(murmur.Sum64(name), value))
	}
	return combine(sum, combine(attrs, murmur.Sum64(n.GetDevice()))), nil
}

func (h *hasher) operation(name string, functions bool) (*opdef.Op, uint64, error) {
	if f := h.functions[name]; f != nil {
		def, err := pbconv.OpFromProto(f.GetSignature())
		if err != nil || !functions {
			return def, 0, err
		}
		sum, err := h.function(name)
		return def, sum, err
	}
	def, ok := kernel.Default.LookupOp(name)
	if !ok {
		return nil, 0, status.NotFoundf("Op type not registered '%s'", name)
	}
	return def, murmur.Sum64(name), nil
}

func (h *hasher) attr(v *pb.AttrValue, functions bool) (sum uint64, err error) {
	if f := v.GetFunc(); f != nil {
		if functions {
			sum, err = h.function(f.GetName())
		}
		return sum, err
	}
	if all := v.GetList().GetFunc(); len(all) > 0 {
		for _, f := range all {
			if functions {
				one, err := h.function(f.GetName())
				if err != nil {
					return 0, err
				}
				sum = combine(sum, one)
			}
		}
		return sum, nil
	}
	b, err := pbconv.Marshal(v)
	return murmur.Sum64(string(b)), err
}

// function returns the fingerprint of a function's results.
func (h *hasher) function(name string) (uint64, error) {
	if sum, ok := h.hashes[name]; ok {
		return sum, nil
	}
	f := h.functions[name]
	if f == nil {
		return 0, status.NotFoundf("Function %s is not defined.", name)
	}
	if slices.Contains(h.active, name) { // recursive
		return murmur.Sum64(strconv.Itoa(slices.Index(h.active, name))), nil
	}
	h.active = append(h.active, name)
	defer func() { h.active = h.active[:len(h.active)-1] }()
	b := &body{hasher: h, f: f}
	if err := b.build(); err != nil {
		return 0, err
	}
	var rets uint64
	for _, ret := range b.rets {
		sum, err := h.from(b.nodes, ret)
		if err != nil {
			return 0, err
		}
		rets = combine(rets, sum)
	}
	controls, err := h.unordered(b.controls)
	sum := combine(rets, controls)
	h.hashes[name] = sum
	return sum, err
}
