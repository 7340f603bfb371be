package hostile

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// maxSeedElements is the largest number of elements of an input of a correct program: many small
// programs find more than a few large ones.
const maxSeedElements = 4096

// NewGenerator reads the cases of the kernels below the root of the repository.
func NewGenerator(root string) (*Generator, error) {
	g := &Generator{ops: kernel.Default.Names()}
	files, err := filepath.Glob(filepath.Join(root, "internal/kernels/*/testdata/*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if cases, err := kerneltest.ReadCases(file); err == nil {
			for i := range cases {
				g.addCase(&cases[i])
			}
			continue
		}
		scripts, err := kerneltest.ReadScripts(file)
		if err != nil {
			continue // it is another kind of file
		}
		for _, s := range scripts {
			g.addScript(s)
		}
	}
	if len(g.seeds) == 0 {
		return nil, fmt.Errorf("no cases below %s", root)
	}
	g.addBare()
	return g, nil
}

// addCase adds the program of a case.
func (g *Generator) addCase(c *kerneltest.Case) {
	if c.Kind != "case" || isLarge(c.In) {
		return
	}
	b := &builder{graph: &pb.GraphDef{}}
	inputs := make([]string, len(c.In))
	for i := range c.In {
		inputs[i] = b.constant(&c.In[i])
	}
	op, _ := kernel.Default.LookupOp(c.Op) // reading the case has found it
	types, err := op.InputTypes(c.Attrs)
	for _, i := range c.Vars {
		if err != nil || i >= len(types) {
			return
		}
		inputs[i] = b.variable(inputs[i], &c.In[i], types[i].IsRef())
	}
	attrs, err := pbconv.AttrsToProto(c.Attrs)
	if err != nil || b.failed {
		return
	}
	b.add("y", c.Op, attrs, inputs...)
	g.seeds = append(g.seeds, Program{Graph: b.graph, Init: b.init, Targets: []string{"y"}, Steps: 1})
}

// addScript adds the program of a script, whose steps run one after the other.
func (g *Generator) addScript(s *kerneltest.Script) {
	b := &builder{graph: &pb.GraphDef{}}
	p := Program{Graph: b.graph, Steps: 1}
	last := ""
	for i := range s.Steps {
		step := &s.Steps[i]
		if isLarge(step.In) {
			return
		}
		inputs := make([]string, len(step.In))
		for j := range step.In {
			if inputs[j] = step.Args[j]; inputs[j] == "" {
				inputs[j] = b.constant(&step.In[j])
			}
		}
		attrs, err := pbconv.AttrsToProto(step.Attrs)
		if err != nil || b.failed {
			return
		}
		if last != "" {
			inputs = slices.Concat(inputs, []string{"^" + last})
		}
		last = step.Name
		b.add(step.Name, step.Op, attrs, inputs...)
	}
	if last == "" {
		return
	}
	p.Targets = []string{last}
	g.seeds = append(g.seeds, p)
}

// addBare adds the operations that have no case, without inputs. Changes add some.
func (g *Generator) addBare() {
	seen := map[string]bool{}
	for _, p := range g.seeds {
		for _, n := range p.Graph.Node {
			seen[n.Op] = true
		}
	}
	for _, op := range g.ops {
		if !seen[op] {
			b := &builder{graph: &pb.GraphDef{}}
			b.add("y", op, nil)
			g.seeds = append(g.seeds, Program{Graph: b.graph, Targets: []string{"y"}, Steps: 1})
		}
	}
}

func isLarge(inputs []tensor.Tensor) bool {
	for i := range inputs {
		if inputs[i].Initialized() && inputs[i].NumElements() > maxSeedElements {
			return true
		}
	}
	return false
}

// builder adds nodes to a graph.
type builder struct {
	graph  *pb.GraphDef
	init   []string
	failed bool
}

// name returns a name that no node of the graph has.
func (b *builder) name() string { return fmt.Sprint("n", len(b.graph.Node)) }

func (b *builder) add(name, op string, attrs map[string]*pb.AttrValue, inputs ...string) string {
	if attrs == nil {
		attrs = map[string]*pb.AttrValue{}
	}
	b.graph.Node = append(b.graph.Node, &pb.NodeDef{Name: name, Op: op, Attr: attrs, Input: inputs})
	return name
}

// constant adds a value that the master does not fold, and returns the name of its node.
func (b *builder) constant(t *tensor.Tensor) string {
	value, err := pbconv.TensorToProto(t)
	if err != nil {
		b.failed = true
		return ""
	}
	return b.encoded(value)
}

func (b *builder) encoded(value *pb.TensorProto) string {
	dtype := typeAttr(value.GetDtype())
	c := b.add(b.name(), "Const", map[string]*pb.AttrValue{"dtype": dtype, "value": {Value: &pb.AttrValue_Tensor{Tensor: value}}})
	unknown := &pb.AttrValue{Value: &pb.AttrValue_Shape{Shape: &pb.TensorShapeProto{UnknownRank: true}}}
	return b.add(b.name(), "PlaceholderWithDefault", map[string]*pb.AttrValue{"dtype": dtype, "shape": unknown}, c)
}

// variable adds a variable with an initial value, and returns the name of its node.
func (b *builder) variable(value string, t *tensor.Tensor, isRef bool) string {
	dtype := typeAttr(pb.DataType(t.DType()))
	attrs := map[string]*pb.AttrValue{
		"dtype": dtype, "container": {Value: &pb.AttrValue_S{S: []byte("probe")}},
		"shape": {Value: &pb.AttrValue_Shape{Shape: pbconv.ShapeToProto(t.Shape())}},
	}
	if isRef {
		v := b.add(b.name(), "VariableV2", attrs)
		b.init = append(b.init, b.add(b.name(), "Assign", map[string]*pb.AttrValue{"T": dtype}, v, value))
		return v
	}
	name := b.name()
	attrs["shared_name"] = &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(name)}}
	v := b.add(name, "VarHandleOp", attrs)
	b.init = append(b.init, b.add(b.name(), "AssignVariableOp", map[string]*pb.AttrValue{"dtype": dtype}, v, value))
	return v
}

func typeAttr(t pb.DataType) *pb.AttrValue { return &pb.AttrValue{Value: &pb.AttrValue_Type{Type: t}} }
