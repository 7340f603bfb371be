package optimize

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"unsafe"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/tensor"
)

// mergeSubexpressions merges nodes that compute the same: nodes with the same operation,
// attributes, device, inputs (in any order for commutative operations) and control inputs. The
// first in topological order stays. See Click, "Global code motion, global value numbering", PLDI
// 1995.
func mergeSubexpressions(g *graph.Graph, _ *Options) error {
	order, err := g.InOrder()
	if err != nil {
		return err
	}
	seen, hashes := map[uint64][]expression{}, memoryHashes{}
	for _, n := range order {
		if !mergeable(n) {
			continue
		}
		e := newExpression(n)
		key := e.hash(hashes)
		at := slices.IndexFunc(seen[key], e.equal)
		if at < 0 {
			if len(seen[key]) < maxCompared {
				seen[key] = append(seen[key], e)
			}
			continue
		}
		if err := moveConsumers(g, seen[key][at].node, n); err != nil {
			return err
		}
	}
	return nil
}

// maxCompared bounds the expressions of one hash. A graph can have many that differ in an attribute
// outside the hash, and each would be compared with all others.
const maxCompared = 64

// mergeable reports whether two equal nodes compute the same.
func mergeable(n *graph.Node) bool {
	switch n.Op.Name {
	case "Placeholder", "PlaceholderV2", "PlaceholderWithDefault":
		// Each may be fed with a value of its own.
		return false
	}
	isRef := func(t tensor.DType) bool { return t.IsRef() }
	return !n.Op.Stateful && complete(n) && !slices.ContainsFunc(n.InTypes, isRef) && !slices.ContainsFunc(n.OutTypes, isRef)
}

// complete reports whether all inputs of a node are connected.
func complete(n *graph.Node) bool {
	return !slices.ContainsFunc(n.Inputs(), func(in graph.Output) bool { return in.Node == nil })
}

// moveConsumers connects the consumers of n to an equal node and removes n.
func moveConsumers(g *graph.Graph, equal, n *graph.Node) error {
	for _, e := range slices.Clone(n.OutEdges()) {
		if e.IsControl() {
			g.ConnectControl(equal, e.Dst)
			continue
		}
		if err := g.Connect(equal.Out(e.SrcOut), e.Dst, e.DstIn); err != nil {
			return err
		}
	}
	g.Remove(n)
	return nil
}

// expression is a node with its inputs and control inputs in a canonical order.
type expression struct {
	node     *graph.Node
	device   string
	inputs   []graph.Output
	controls []*graph.Node
}

func newExpression(n *graph.Node) expression {
	e := expression{node: n, device: cmp.Or(n.Assigned, n.Device), inputs: n.Inputs(), controls: slices.Clone(n.ControlInputs())}
	slices.SortFunc(e.controls, func(a, b *graph.Node) int { return cmp.Compare(a.ID, b.ID) })
	if n.Op.Commutative {
		e.inputs = slices.Clone(e.inputs)
		slices.SortFunc(e.inputs, func(a, b graph.Output) int {
			return cmp.Or(cmp.Compare(a.Node.ID, b.Node.ID), cmp.Compare(a.Index, b.Index))
		})
	}
	return e
}

// hash returns a value that is the same for equal expressions. Of the attributes it includes
// tensors, so that large ones are rarely compared, and the kinds in which many nodes differ.
func (e *expression) hash(hashes memoryHashes) uint64 {
	h := fnv.New64a()
	var word [8]byte
	number := func(v int) {
		binary.LittleEndian.PutUint64(word[:], uint64(v))
		h.Write(word[:])
	}
	text := func(s string) {
		if number(len(s)); len(s) < longText {
			h.Write([]byte(s))
		} else {
			number(int(hashes.of(unsafe.Slice(unsafe.StringData(s), len(s)))))
		}
	}
	h.Write([]byte(e.node.Op.Name))
	h.Write([]byte(e.device))
	for _, in := range e.inputs {
		number(in.Node.ID)
		number(in.Index)
	}
	for _, c := range e.controls {
		number(c.ID)
	}
	for _, name := range slices.Sorted(maps.Keys(e.node.Attrs)) {
		switch v := e.node.Attrs[name].(type) {
		case tensor.Tensor:
			number(int(v.DType()))
			number(int(hashes.of(v.Bytes())))
		case string:
			text(v)
		case int64:
			number(int(v))
		case []string:
			number(len(v))
			for _, s := range v {
				text(s)
			}
		}
	}
	return h.Sum64()
}

// longText is the length in bytes from which the hash of a text is kept.
const longText = 1 << 10

// memoryHashes holds the hashes of the elements of tensors and of long texts. After functions were
// inlined, thousands of nodes share the memory of a large one.
type memoryHashes map[memory]uint64

type memory struct {
	start *byte
	size  int
}

func (m memoryHashes) of(b []byte) uint64 {
	at := memory{unsafe.SliceData(b), len(b)}
	sum, ok := m[at]
	if !ok {
		h := fnv.New64a()
		h.Write(b)
		sum = h.Sum64()
		m[at] = sum
	}
	return sum
}

func (e *expression) equal(f expression) bool {
	return e.node.Op == f.node.Op && e.device == f.device && slices.Equal(e.inputs, f.inputs) &&
		slices.Equal(e.controls, f.controls) && maps.EqualFunc(e.node.Attrs, f.node.Attrs, sameAttr)
}

func sameAttr(a, b any) bool {
	x, ok := a.(tensor.Tensor)
	if !ok {
		if _, lists := a.([]tensor.Tensor); lists {
			return false
		}
		return reflect.DeepEqual(a, b)
	}
	y, ok := b.(tensor.Tensor)
	return ok && sameTensor(&x, &y)
}

// sameTensor reports whether two tensors are equal bit for bit, so 0 and -0 differ. Handles and
// variants are never equal.
func sameTensor(a, b *tensor.Tensor) bool {
	if a.DType() != b.DType() || !a.Shape().Equal(b.Shape()) {
		return false
	}
	switch a.DType() {
	case tensor.String:
		return slices.Equal(tensor.Values[string](a), tensor.Values[string](b))
	case tensor.Resource, tensor.Variant:
		return false
	default:
		return bytes.Equal(a.Bytes(), b.Bytes())
	}
}
