package dataservice

import (
	"fmt"
	"maps"

	"github.com/weft-ml/weft/internal/proto/datapb"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// The sources of a dynamically sharded dataset take their elements from a queue, which the worker
// fills with splits. The graph of a source becomes
//
//	numbers -> map(dequeue) -> take while not negative -> map(element of the split)
//
// A negative split ends a repetition: a dataset that repeats its source reads on after it.

// endOfSplits ends a repetition in a queue of positions. No position is negative.
const endOfSplits = int64(-1)

// queueName is the shared name of the queue of a source.
func queueName(task int64, source int) string {
	return fmt.Sprintf("data_service_splits_%d_%d", task, source)
}

// pull replaces the sources of a dataset by readers of queues, whose elements are positions in the
// source. It returns what the sources are.
func pull(g *pb.GraphDef, taskID int64) ([]source, error) {
	splits, err := splitSources(g)
	if err != nil {
		return nil, err
	}
	sources, err := sourcesOf(g, nodesOf(g))
	if err != nil {
		return nil, err
	}
	b := &builder{g: g}
	for i, n := range sources {
		if err := b.replace(n, fmt.Sprintf("splits_%d", i), queueName(taskID, i)); err != nil {
			return nil, err
		}
	}
	return splits, nil
}

// builder adds nodes to the graph of a dataset.
type builder struct{ g *pb.GraphDef }

type attrs = map[string]*pb.AttrValue

func (b *builder) node(name, op string, attr attrs, in ...string) string {
	b.g.Node = append(b.g.Node, &pb.NodeDef{Name: name, Op: op, Input: in, Attr: attr})
	return name
}

func (b *builder) number(name string, v int64) string {
	return b.node(name, "Const", attrs{"dtype": typeOf(tensor.Int64), "value": {Value: &pb.AttrValue_Tensor{Tensor: &pb.TensorProto{
		Dtype: pb.DataType_DT_INT64, TensorShape: &pb.TensorShapeProto{}, Int64Val: []int64{v},
	}}}})
}

func typeOf(t tensor.DType) *pb.AttrValue {
	return &pb.AttrValue{Value: &pb.AttrValue_Type{Type: pb.DataType(t)}}
}

func typesOf(types ...pb.DataType) *pb.AttrValue {
	return &pb.AttrValue{Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{Type: types}}}
}

func shapesOf(shapes ...*pb.TensorShapeProto) *pb.AttrValue {
	return &pb.AttrValue{Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{Shape: shapes}}}
}

func functionOf(name string) *pb.AttrValue {
	return &pb.AttrValue{Value: &pb.AttrValue_Func{Func: &pb.NameAttrList{Name: name}}}
}

func textOf(s string) *pb.AttrValue { return &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(s)}} }

// replace makes a source read a queue.
func (b *builder) replace(n *pb.NodeDef, prefix, queue string) error {
	int64s, scalars := typesOf(pb.DataType_DT_INT64), shapesOf(&pb.TensorShapeProto{})
	spec := func(more attrs) attrs {
		a := attrs{"output_types": int64s, "output_shapes": scalars, "Targuments": typesOf()}
		maps.Copy(a, more)
		return a
	}
	b.function(&pb.FunctionDef{
		Signature: &pb.OpDef{Name: prefix + "_take", InputArg: args(pb.DataType_DT_INT64), OutputArg: results(pb.DataType_DT_INT64), IsStateful: true},
		NodeDef: []*pb.NodeDef{
			{Name: "queue", Op: "FIFOQueueV2", Attr: attrs{
				"component_types": int64s, "shapes": scalars, "capacity": {Value: &pb.AttrValue_I{I: 1}}, "shared_name": textOf(queue),
			}},
			{Name: "take", Op: "QueueDequeueV2", Input: []string{"queue:handle:0"}, Attr: attrs{"component_types": int64s}},
		},
		Ret: map[string]string{"r0": "take:components:0"},
	})
	b.function(&pb.FunctionDef{
		Signature: &pb.OpDef{Name: prefix + "_more", InputArg: args(pb.DataType_DT_INT64), OutputArg: results(pb.DataType_DT_BOOL)},
		NodeDef: []*pb.NodeDef{
			{Name: "zero", Op: "Const", Attr: attrs{"dtype": typeOf(tensor.Int64), "value": {Value: &pb.AttrValue_Tensor{Tensor: &pb.TensorProto{
				Dtype: pb.DataType_DT_INT64, TensorShape: &pb.TensorShapeProto{}, Int64Val: []int64{0},
			}}}}},
			{Name: "more", Op: "GreaterEqual", Input: []string{"a0", "zero:output:0"}, Attr: attrs{"T": typeOf(tensor.Int64)}},
		},
		Ret: map[string]string{"r0": "more:z:0"},
	})
	numbers := b.node(prefix+"_numbers", "RangeDataset", attrs{"output_types": int64s, "output_shapes": scalars},
		b.number(prefix+"_start", 0), b.number(prefix+"_stop", 1<<62), b.number(prefix+"_step", 1))
	taken := b.node(prefix+"_taken", "MapDataset", spec(attrs{"f": functionOf(prefix + "_take")}), numbers)
	positions := b.node(prefix+"_positions", "TakeWhileDataset", spec(attrs{"predicate": functionOf(prefix + "_more")}), taken)
	return b.elements(n, prefix, positions)
}

// elements makes a source the map of positions to its elements.
func (b *builder) elements(n *pb.NodeDef, prefix, positions string) error {
	outTypes := n.GetAttr()["output_types"]
	if outTypes == nil {
		outTypes = n.GetAttr()["Toutput_types"]
	}
	types := outTypes.GetList().GetType()
	f := &pb.FunctionDef{
		Signature: &pb.OpDef{Name: prefix + "_element", InputArg: args(pb.DataType_DT_INT64), OutputArg: results(types...)},
		Ret:       map[string]string{},
	}
	captured := n.GetInput()
	var captures []pb.DataType
	switch n.GetOp() {
	case "RangeDataset":
		if len(captured) < 3 || len(types) != 1 {
			return status.InvalidArgumentf("%s has %d inputs and %d types, want 3 and 1", n.GetName(), len(captured), len(types))
		}
		captured = []string{captured[0], captured[2]}
		captures = []pb.DataType{pb.DataType_DT_INT64, pb.DataType_DT_INT64}
		f.NodeDef = []*pb.NodeDef{
			{Name: "offset", Op: "Mul", Input: []string{"a0", "a2"}, Attr: attrs{"T": typeOf(tensor.Int64)}},
			{Name: "value", Op: "AddV2", Input: []string{"a1", "offset:z:0"}, Attr: attrs{"T": typeOf(tensor.Int64)}},
			{Name: "cast", Op: "Cast", Input: []string{"value:z:0"}, Attr: attrs{"SrcT": typeOf(tensor.Int64), "DstT": {Value: &pb.AttrValue_Type{Type: types[0]}}}},
		}
		f.Ret["r0"] = "cast:y:0"
	case "TensorSliceDataset", "TensorDataset":
		captures = types
		if len(captured) != len(types) {
			return status.InvalidArgumentf("%s has %d components and %d types", n.GetName(), len(captured), len(types))
		}
		f.NodeDef = []*pb.NodeDef{{Name: "axis", Op: "Const", Attr: attrs{"dtype": typeOf(tensor.Int32), "value": {Value: &pb.AttrValue_Tensor{Tensor: &pb.TensorProto{
			Dtype: pb.DataType_DT_INT32, TensorShape: &pb.TensorShapeProto{}, IntVal: []int32{0},
		}}}}}}
		for i, t := range types {
			out, in := fmt.Sprintf("r%d", i), fmt.Sprintf("a%d", i+1)
			if n.GetOp() == "TensorDataset" {
				f.Ret[out] = in
				continue
			}
			name := fmt.Sprintf("row%d", i)
			f.NodeDef = append(f.NodeDef, &pb.NodeDef{Name: name, Op: "GatherV2", Input: []string{in, "a0", "axis:output:0"}, Attr: attrs{
				"Tparams": {Value: &pb.AttrValue_Type{Type: t}}, "Tindices": typeOf(tensor.Int64), "Taxis": typeOf(tensor.Int32),
			}})
			f.Ret[out] = name + ":output:0"
		}
	}
	f.Signature.InputArg = append(f.Signature.InputArg, argsFrom(1, captures...)...)
	b.function(f)
	n.Op, n.Input = "MapDataset", append([]string{positions}, captured...)
	n.Attr = attrs{
		"f": functionOf(f.GetSignature().GetName()), "Targuments": typesOf(captures...), "output_types": typesOf(types...),
		"output_shapes": n.GetAttr()["output_shapes"],
	}
	return nil
}

func (b *builder) function(f *pb.FunctionDef) {
	if b.g.Library == nil {
		b.g.Library = &pb.FunctionDefLibrary{}
	}
	b.g.Library.Function = append(b.g.Library.Function, f)
}

func args(types ...pb.DataType) []*pb.OpDef_ArgDef { return argsFrom(0, types...) }

func argsFrom(first int, types ...pb.DataType) []*pb.OpDef_ArgDef { return named("a", first, types) }

func results(types ...pb.DataType) []*pb.OpDef_ArgDef { return named("r", 0, types) }

func named(prefix string, first int, types []pb.DataType) []*pb.OpDef_ArgDef {
	out := make([]*pb.OpDef_ArgDef, len(types))
	for i, t := range types {
		out[i] = &pb.OpDef_ArgDef{Name: fmt.Sprintf("%s%d", prefix, first+i), Type: t}
	}
	return out
}

// autoShard adds the operation that gives a worker its files or elements.
func autoShard(g *pb.GraphDef, t *datapb.TaskDef) error {
	if t.GetWorkerIndex() < 0 || t.GetWorkerIndex() >= t.GetNumWorkers() {
		return status.FailedPreconditionf("The address of worker %s is not one of those that the dispatcher was started with", t.GetWorkerAddress())
	}
	last, from, err := resultOf(g)
	if err != nil {
		return err
	}
	policies := map[datapb.ProcessingModeDef_ShardingPolicy]int64{
		datapb.ProcessingModeDef_FILE_OR_DATA: 0, datapb.ProcessingModeDef_FILE: 1, datapb.ProcessingModeDef_DATA: 2, datapb.ProcessingModeDef_HINT: 3,
	}
	b := &builder{g}
	types, shapes := specOf(from)
	last.Input[0] = b.node("service_shard", "AutoShardDataset", attrs{
		"output_types": typesOf(types...), "output_shapes": shapesOf(shapes...),
		"auto_shard_policy": {Value: &pb.AttrValue_I{I: policies[t.GetProcessingModeDef().GetShardingPolicy()]}},
	}, last.GetInput()[0], b.number("service_shard_workers", t.GetNumWorkers()), b.number("service_shard_index", t.GetWorkerIndex()))
	return nil
}

// resultOf returns the result node of a dataset's graph and the node that it comes from.
func resultOf(g *pb.GraphDef) (last, from *pb.NodeDef, err error) {
	for _, n := range g.GetNode() {
		if n.GetOp() == "_Retval" && len(n.GetInput()) > 0 {
			last = n
		}
	}
	for _, n := range g.GetNode() {
		if last != nil && n.GetName() == nodeOf(last.GetInput()[0]) {
			return last, n, nil
		}
	}
	return nil, nil, status.InvalidArgumentf("the graph of a dataset has no result")
}

// specOf returns the types and shapes of the elements of a dataset.
func specOf(n *pb.NodeDef) ([]pb.DataType, []*pb.TensorShapeProto) {
	types := n.GetAttr()["output_types"].GetList().GetType()
	if types == nil {
		types = n.GetAttr()["Toutput_types"].GetList().GetType()
	}
	return types, n.GetAttr()["output_shapes"].GetList().GetShape()
}
