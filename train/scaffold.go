package train

import (
	"context"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Scaffold holds the nodes of a graph that initialize, save and restore a model.
// [Scaffold.Finalize] sets the fields that are nil or zero.
type Scaffold struct {
	// initializes the model; default: all global variables
	InitOp    *graph.Node
	InitFeeds map[graph.Output]tensor.Tensor                // for InitOp
	InitFn    func(ctx context.Context, sess Session) error // runs after InitOp; may be nil
	// ReadyOp is a string vector with the names of the variables that must be initialized before
	// training can start. Default: all global and local variables.
	ReadyOp op.Output
	// ReadyForLocalInitOp is a string vector with the names of the variables that must be
	// initialized before LocalInitOp can run. Default: all global variables.
	ReadyForLocalInitOp op.Output
	LocalInitOp         *graph.Node // initializes local variables and tables, in every process
	// string scalar, all summaries; the zero Output if there are none
	SummaryOp op.Output
	// default: the first of the graph, or a sharded one; nil if there are no variables
	Saver *Saver
}

// Finalize sets the missing fields from the collections of the graph ([InitOps], [ReadyOps] …), or
// adds nodes and the collections. Build errors are recorded in the scope.
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

// firstNode returns the first node in a collection. If there is none it adds the result of build to
// the collection.
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

// firstOutput returns the first output in a collection. If there is none it adds the result of
// build to the collection.
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

// firstSaver returns the first saver of the graph. If there is none but the graph has global
// variables it adds a saver.
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
