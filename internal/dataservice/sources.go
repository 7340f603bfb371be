package dataservice

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// nodesOf returns the nodes of a graph by name.
func nodesOf(g *pb.GraphDef) map[string]*pb.NodeDef {
	nodes := make(map[string]*pb.NodeDef, len(g.GetNode()))
	for _, n := range g.GetNode() {
		nodes[n.GetName()] = n
	}
	return nodes
}

// sourcesOf returns the nodes of a dataset's graph that read no other dataset, in the order in
// which TensorFlow numbers them: depth first from the result, inputs in their order. nodes has all
// nodes by name.
func sourcesOf(g *pb.GraphDef, nodes map[string]*pb.NodeDef) ([]*pb.NodeDef, error) {
	var last *pb.NodeDef
	for _, n := range g.GetNode() {
		if n.GetOp() == "_Retval" {
			last = n
		}
	}
	if last == nil {
		return nil, status.InvalidArgumentf("the graph of a dataset has no result")
	}
	var out []*pb.NodeDef
	seen := map[string]bool{}
	// The nodes that are still to be visited are in a list, the next one at its end: a chain of a
	// million datasets would take a million calls.
	for next := []*pb.NodeDef{last}; len(next) > 0; {
		n := next[len(next)-1]
		next = next[:len(next)-1]
		if seen[n.GetName()] {
			continue
		}
		seen[n.GetName()] = true
		found := false
		for _, in := range slices.Backward(n.GetInput()) {
			if src := nodes[nodeOf(in)]; src != nil && isDataset(src) {
				found = true
				next = append(next, src)
			}
		}
		if found || !isDataset(n) {
			continue
		}
		if out = append(out, n); len(out) > maxSources {
			return nil, status.ResourceExhaustedf("the dataset has more than %d sources, which is the limit for dynamic sharding; one more is %s",
				maxSources, n.GetName())
		}
	}
	return out, nil
}

// nodeOf returns the name of the node of an input.
func nodeOf(in string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(in, "^"), ":")
	return name
}

func isDataset(n *pb.NodeDef) bool { return strings.Contains(n.GetOp(), "Dataset") }

// splitSources returns the splits of all sources of a dataset.
func splitSources(g *pb.GraphDef) ([]source, error) {
	byName := nodesOf(g)
	nodes, err := sourcesOf(g, byName)
	if err != nil {
		return nil, err
	}
	out := make([]source, len(nodes))
	for i, n := range nodes {
		if out[i], err = splitSource(byName, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// splitSource returns the splits of a source. nodes has all nodes by name.
func splitSource(nodes map[string]*pb.NodeDef, n *pb.NodeDef) (source, error) {
	switch n.GetOp() {
	case "RangeDataset":
		var v [3]int64
		for i := range v {
			p, shape, err := constantInput(nodes, n, i)
			if err != nil {
				return source{}, err
			}
			if p.GetDtype() != pb.DataType_DT_INT64 || shape.NumElements() != 1 {
				return source{}, status.InvalidArgumentf("input %d of %s is not an int64 scalar", i, n.GetName())
			}
			t, err := pbconv.TensorFromProto(p)
			if err != nil {
				return source{}, err
			}
			v[i] = tensor.Value[int64](&t)
			t.Release()
		}
		start, stop, step := v[0], v[1], v[2]
		if step == 0 {
			return source{}, status.InvalidArgumentf("step must be a non-zero integer.")
		}
		count := (stop - start) / step
		if (stop-start)%step != 0 {
			count++
		}
		return source{Start: start, Step: step, Count: max(0, count)}, nil
	case "TensorSliceDataset":
		_, shape, err := constantInput(nodes, n, 0)
		if err != nil {
			return source{}, err
		}
		if len(shape) == 0 {
			return source{}, status.InvalidArgumentf("%s has a scalar component", n.GetName())
		}
		return source{Step: 1, Count: shape[0]}, nil
	case "TensorDataset":
		return source{Step: 1, Count: 1}, nil
	}
	return source{}, status.Unimplementedf("Cannot create a split provider for dataset of type %s", n.GetOp())
}

// constantInput returns an input that is a constant, and its shape. It does not decode the
// elements: a few bytes can stand for a large tensor, which many sources may share.
func constantInput(nodes map[string]*pb.NodeDef, n *pb.NodeDef, i int) (*pb.TensorProto, tensor.Shape, error) {
	if i < len(n.GetInput()) {
		if c := nodes[nodeOf(n.GetInput()[i])]; c.GetOp() == "Const" {
			p := c.GetAttr()["value"].GetTensor()
			shape, err := pbconv.ShapeFromProto(p.GetTensorShape())
			return p, shape, err
		}
	}
	return nil, nil, status.InvalidArgumentf("input %d of %s is not a constant", i, n.GetName())
}
