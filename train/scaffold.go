package train

import (
	"context"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Scaffold is what a session needs of a graph to initialize, save and restore a model. What is not
// given is taken from the collection of the graph with that name or else added, when the session is
// made.
type Scaffold struct {
	// initializes the model; nil for all global variables
	InitOp    *graph.Node
	InitFeeds map[graph.Output]tensor.Tensor                // for InitOp
	InitFn    func(ctx context.Context, sess Session) error // runs after InitOp
	// names what is missing before training can begin
	ReadyOp op.Output
	// ReadyForLocalInitOp names what is missing before LocalInitOp can run.
	ReadyForLocalInitOp op.Output
	LocalInitOp         *graph.Node // initializes local variables and tables, in every process
	SummaryOp           op.Output   // merges all summaries; the zero Output if there are none
	Saver               *Saver      // sharded; nil if there is nothing to save
}

// Finalize adds what is missing. Mistakes are those of the scope.
func (f *Scaffold) Finalize(s *op.Scope) {
	s = s.WithoutControlDependencies()
	if f.InitOp == nil {
		f.InitOp = firstNode(s, InitOps, func() *graph.Node { return VariablesInitializer(s) })
	}
	if f.ReadyOp.Node == nil {
		f.ReadyOp = firstOutput(s, ReadyOps, func() op.Output { return ReportUninitializedVariables(s) })
	}
	if f.ReadyForLocalInitOp.Node == nil {
		f.ReadyForLocalInitOp = firstOutput(s, ReadyForLocalInitOps, func() op.Output {
			return reportUninitialized(s, Variables(s, GlobalVariables))
		})
	}
	if f.LocalInitOp == nil {
		f.LocalInitOp = firstNode(s, LocalInitOps, func() *graph.Node {
			return op.Group(s, LocalVariablesInitializer(s), TablesInitializer(s))
		})
	}
	if f.SummaryOp.Node == nil {
		f.SummaryOp = firstOutput(s, SummaryOps, func() op.Output { return MergeAllSummaries(s) })
	}
	if f.Saver == nil {
		f.Saver = firstSaver(s)
	}
}

// firstNode returns the first node in a collection, or else adds what build returns to it.
func firstNode(s *op.Scope, collection string, build func() *graph.Node) *graph.Node {
	if nodes := nodesIn(s, collection); len(nodes) > 0 {
		return nodes[0]
	}
	n := build()
	if n != nil {
		s.AddToCollection(collection, n)
	}
	return n
}

// firstOutput returns the first output in a collection, or else adds what build returns to it.
func firstOutput(s *op.Scope, collection string, build func() op.Output) op.Output {
	if outs := outputsIn(s, collection); len(outs) > 0 {
		return outs[0]
	}
	o := build()
	if o.Node != nil {
		s.AddToCollection(collection, o)
	}
	return o
}

// firstSaver returns the first saver of the graph, or else adds one if there is something to save.
func firstSaver(s *op.Scope) *Saver {
	for _, v := range s.Collection(Savers) {
		if sv, ok := v.(*Saver); ok {
			return sv
		}
	}
	if len(Variables(s, GlobalVariables)) == 0 {
		return nil
	}
	return NewSaver(s, SaverOptions{Sharded: true})
}
