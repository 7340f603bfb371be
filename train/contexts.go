package train

import (
	"path"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/controlflow"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/savedmodel"
)

// Collections of the contexts of loops and conditions. TensorFlow needs them to differentiate an
// imported graph.
const (
	whileContexts = "while_context"
	condContexts  = "cond_context"
)

// addContexts adds the contexts of the loops and conditions in a graph to the collections of its
// MetaGraph.
func addContexts(m *savedmodel.MetaGraph, g *graph.Graph) error {
	found, err := controlflow.Find(g)
	if err != nil {
		return err
	}
	for _, c := range found {
		name, message := condContexts, proto.Message(nil)
		if c.Loop != nil {
			name, message = whileContexts, whileDef(c)
		} else {
			message = condDef(c)
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			return err
		}
		m.Collections[name] = savedmodel.Collection{Bytes: append(m.Collections[name].Bytes, b)}
	}
	return nil
}

func whileDef(c *controlflow.Context) *pb.WhileContextDef {
	def := &pb.WhileContextDef{
		ContextName: c.Loop.Frame, ParallelIterations: 1, BackProp: true, PivotName: savedmodel.OutputName(c.Loop.Cond.Out(0)),
		ValuesDef: valuesDef(c, c.Loop.Invariants), NestedContexts: nestedDefs(c),
	}
	for i, v := range c.Loop.Vars {
		if i == 0 {
			def.ParallelIterations = int32(v.Enter.Attrs.Int("parallel_iterations"))
			def.PivotForPredName, def.PivotForBodyName = savedmodel.OutputName(v.Merge.Out(0)), savedmodel.OutputName(v.Body)
		}
		def.LoopEnterNames = append(def.LoopEnterNames, savedmodel.OutputName(v.Enter.Out(0)))
		if v.Exit != nil {
			def.LoopExitNames = append(def.LoopExitNames, savedmodel.OutputName(v.Exit.Out(0)))
		}
	}
	return def
}

func condDef(c *controlflow.Context) *pb.CondContextDef {
	pred := savedmodel.OutputName(c.Branch.Pred)
	def := &pb.CondContextDef{
		ContextName: path.Join(path.Dir(c.Branch.Pivot.Name), []string{"cond_text_1", "cond_text"}[c.Branch.Side]), PredName: pred,
		PivotName: savedmodel.OutputName(c.Branch.Pivot.Out(0)), Branch: int32(c.Branch.Side),
		ValuesDef: valuesDef(c, nil), NestedContexts: nestedDefs(c),
	}
	def.ValuesDef.Values = append(def.ValuesDef.Values, pred)
	def.ValuesDef.ExternalValues[pred] = pred
	for _, n := range c.Branch.Captures {
		addCapture(def.ValuesDef, n.Input(0), n.Out(c.Branch.Side))
	}
	return def
}

// valuesDef returns the values of a context, including those that it captures with the given nodes.
func valuesDef(c *controlflow.Context, enters []*graph.Node) *pb.ValuesDef {
	def := &pb.ValuesDef{Values: valuesIn(c), ExternalValues: map[string]string{}}
	for _, n := range enters {
		addCapture(def, n.Input(0), n.Out(0))
	}
	return def
}

// addCapture adds a value from outside of a context, and the name that it has inside.
func addCapture(def *pb.ValuesDef, outside, inside graph.Output) {
	name := savedmodel.OutputName(outside)
	def.Values = append(def.Values, name)
	def.ExternalValues[name] = savedmodel.OutputName(inside)
}

// valuesIn returns the names of the outputs of the nodes in a context and of the values that come
// out of nested contexts: as in TensorFlow all values of a branch, and the final values of a loop.
func valuesIn(c *controlflow.Context) []string {
	var names []string
	for _, n := range c.Nodes {
		for i := range n.OutTypes {
			names = append(names, savedmodel.OutputName(n.Out(i)))
		}
	}
	for _, in := range c.Nested {
		if in.Branch != nil {
			names = append(names, valuesIn(in)...)
			continue
		}
		for _, v := range in.Loop.Vars {
			if v.Exit != nil {
				names = append(names, savedmodel.OutputName(v.Exit.Out(0)))
			}
		}
	}
	return names
}

func nestedDefs(c *controlflow.Context) []*pb.ControlFlowContextDef {
	var defs []*pb.ControlFlowContextDef
	for _, in := range c.Nested {
		def := &pb.ControlFlowContextDef{}
		if in.Loop != nil {
			def.Ctxt = &pb.ControlFlowContextDef_WhileCtxt{WhileCtxt: whileDef(in)}
		} else {
			def.Ctxt = &pb.ControlFlowContextDef_CondCtxt{CondCtxt: condDef(in)}
		}
		defs = append(defs, def)
	}
	return defs
}
