package hostile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

func vector(dims []int64) *tensor.Tensor {
	t := tensor.Vector(dims...)
	return &t
}

func scalar(v int64) *tensor.Tensor {
	t := tensor.Scalar(v)
	return &t
}

// loop puts the nodes of a program into the body of an endless loop, or of one with many
// iterations.
func (r *random) loop(p *Program) {
	b := &builder{graph: &pb.GraphDef{}}
	integer := map[string]*pb.AttrValue{"T": typeAttr(pb.DataType_DT_INT64)}
	frame := maps.Clone(integer)
	frame["frame_name"] = &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte("f")}}
	if r.oneIn(3) {
		frame["parallel_iterations"] = &pb.AttrValue{Value: &pb.AttrValue_I{I: pick(r, []int64{1, 2, 1000, 1 << 30, -1})}}
	}
	limit := frameConstant(frame)
	zero, most := b.constant(scalar(0)), b.constant(scalar(pick(r, []int64{10, 1000, 1_000_000, 1 << 60})))
	one := b.add("loop_one", "Const", constantAttrs(scalar(1)), "^loop_i")
	b.add("loop_e", "Enter", frame, zero)
	b.add("loop_most", "Enter", limit, most)
	merge := maps.Clone(integer)
	merge["N"] = &pb.AttrValue{Value: &pb.AttrValue_I{I: 2}}
	b.add("loop_m", "Merge", merge, "loop_e", "loop_n")
	b.add("loop_less", "Less", integer, "loop_m", "loop_most")
	b.add("loop_c", "LoopCond", nil, "loop_less")
	b.add("loop_s", "Switch", integer, "loop_m", "loop_c")
	b.add("loop_i", "Identity", integer, "loop_s:1")
	next := b.add("loop_next", "AddV2", integer, "loop_i", one)
	b.add("loop_n", "NextIteration", integer, next)
	b.add("loop_y", "Exit", integer, "loop_s")
	for i, n := range b.graph.Node {
		if strings.HasPrefix(n.Name, "n") {
			n.Name = fmt.Sprint("loop_v", i)
		}
		for j, in := range n.Input {
			if strings.HasPrefix(in, "n") {
				n.Input[j] = "loop_v" + in[1:]
			}
		}
	}
	for _, n := range p.Graph.Node {
		if len(n.Input) == 0 {
			n.Input = []string{"^loop_i"}
		}
	}
	for _, n := range b.graph.Node {
		if n.Name == next {
			for _, t := range p.Targets {
				n.Input = append(n.Input, "^"+t)
			}
		}
	}
	p.Graph.Node = append(p.Graph.Node, b.graph.Node...)
	p.Init, p.Targets = nil, []string{"loop_y"}
}

func frameConstant(frame map[string]*pb.AttrValue) map[string]*pb.AttrValue {
	out := maps.Clone(frame)
	out["is_constant"] = &pb.AttrValue{Value: &pb.AttrValue_B{B: true}}
	return out
}

func constantAttrs(t *tensor.Tensor) map[string]*pb.AttrValue {
	value, _ := pbconv.TensorToProto(t) // a number has a form
	return map[string]*pb.AttrValue{"dtype": typeAttr(value.Dtype), "value": {Value: &pb.AttrValue_Tensor{Tensor: value}}}
}

// multiply adds copies of the node that runs, whose outputs are all kept until the end.
func (r *random) multiply(p *Program) {
	n := p.node(p.Targets[len(p.Targets)-1])
	if n == nil {
		return
	}
	copies := pick(r, []int{10, 100, maxNodes})
	all := &pb.NodeDef{Name: "all", Op: "NoOp"}
	if r.oneIn(2) {
		all = &pb.NodeDef{Name: "all", Op: "AddN", Attr: map[string]*pb.AttrValue{
			"N": {Value: &pb.AttrValue_I{I: int64(copies)}}, "T": n.Attr["T"],
		}}
	}
	for i := range copies {
		c := proto.CloneOf(n)
		c.Name = fmt.Sprint(n.Name, "_copy", i)
		p.Graph.Node = append(p.Graph.Node, c)
		if all.Op == "NoOp" {
			all.Input = append(all.Input, "^"+c.Name)
		} else {
			all.Input = append(all.Input, c.Name)
		}
	}
	p.Graph.Node = append(p.Graph.Node, all)
	p.Targets = []string{"all"}
}

// callers are operations that call the function F, with the attributes that name it.
var callers = map[string][]string{
	"PartitionedCall": {"f"}, "StatefulPartitionedCall": {"f"}, "F": nil, "If": {"then_branch", "else_branch"}, "Case": {"branches"},
	"While": {"cond", "body"}, "RemoteCall": {"f"}, "MapDefun": {"f"}, "SymbolicGradient": {"f"}, "MapDataset": {"f"}, "FilterDataset": {"predicate"},
	"FlatMapDataset": {"f"}, "ParallelMapDatasetV2": {"f"}, "ReduceDataset": {"f"}, "For": {"body"}, "StatelessWhile": {"cond", "body"},
}

// function puts the nodes of a program into functions. F calls itself or another function now and
// then.
func (r *random) function(p *Program) {
	f := &pb.FunctionDef{Signature: &pb.OpDef{Name: "F"}, Ret: map[string]string{}, ControlRet: map[string]string{}}
	for _, n := range p.Graph.Node {
		c := proto.CloneOf(n)
		for i, in := range c.Input {
			c.Input[i] = inBody(p, in)
		}
		f.NodeDef = append(f.NodeDef, c)
	}
	if r.oneIn(3) {
		f.NodeDef = append(f.NodeDef, &pb.NodeDef{Name: "again", Op: pick(r, []string{"F", "G", "StatefulPartitionedCall"}), Attr: map[string]*pb.AttrValue{
			"f":   {Value: &pb.AttrValue_Func{Func: &pb.NameAttrList{Name: pick(r, []string{"F", "G"})}}},
			"Tin": {Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{}}}, "Tout": {Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{}}},
		}})
	}
	last := f.NodeDef[len(f.NodeDef)-1].Name
	f.Signature.ControlOutput = []string{"done"}
	f.ControlRet["done"] = last
	f.Signature.IsStateful = r.oneIn(2)
	names := slices.Sorted(maps.Keys(callers))
	op := pick(r, names)
	if r.oneIn(2) {
		op = "StatefulPartitionedCall"
	}
	y := &pb.NodeDef{Name: "call", Op: op, Attr: map[string]*pb.AttrValue{
		"Tin": {Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{}}}, "Tout": {Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{}}},
	}}
	for _, name := range callers[op] {
		y.Attr[name] = &pb.AttrValue{Value: &pb.AttrValue_Func{Func: &pb.NameAttrList{Name: "F"}}}
	}
	g := proto.CloneOf(f)
	g.Signature.Name = "G"
	for _, n := range g.NodeDef {
		if n.Name == "again" && n.Op == "G" {
			n.Op = "F"
		}
	}
	if p.Graph.Library == nil {
		p.Graph.Library = &pb.FunctionDefLibrary{}
	}
	p.Graph.Library.Function = append(p.Graph.Library.Function, f, g)
	p.Graph.Node = append(p.Graph.Node, y)
	if r.oneIn(2) {
		p.Graph.Node = []*pb.NodeDef{y}
		p.Init = nil
	}
	p.Targets = []string{"call"}
}

// inBody returns an input in the form of the body of a function: node, argument and number.
func inBody(p *Program, input string) string {
	n := p.node(input)
	if n == nil || strings.HasPrefix(input, "^") {
		return input
	}
	op, ok := kernel.Default.LookupOp(n.Op)
	if !ok || len(op.Outputs) == 0 {
		return input
	}
	name, number, _ := strings.Cut(input, ":")
	at := 0
	if _, err := fmt.Sscan(number, &at); err != nil || at < 0 {
		at = 0
	}
	if at < len(op.Outputs) && op.Outputs[0].NumberAttr == "" && op.Outputs[0].TypeListAttr == "" {
		return fmt.Sprint(name, ":", op.Outputs[at].Name, ":0")
	}
	return fmt.Sprint(name, ":", op.Outputs[0].Name, ":", at)
}
