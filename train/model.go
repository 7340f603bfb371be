package train

import (
	"context"
	"iter"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Model is what [Fit] trains: a network with a loss and metrics. Package nn implements it.
type Model interface {
	// Build adds the model to a graph. inputs and labels are batches of the data. Build errors are
	// recorded in the scope.
	Build(s *op.Scope, inputs []op.Output, labels op.Output) *BuiltModel
	// Weights returns the values of the model's variables by their names; nil before training.
	Weights() map[string]tensor.Tensor
	// SetWeights replaces the values. The model owns the map.
	SetWeights(weights map[string]tensor.Tensor)
}

// BuiltModel is a [Model] in a graph.
type BuiltModel struct {
	Training, Evaluation Measured
	Metrics              []Metric
	Variables            []*Variable   // of the model, without those of the optimizer
	Updates              []*graph.Node // run with each training step
	// Constrain adds nodes that run after each update of the variables; it may be nil.
	Constrain func(s *op.Scope) []*graph.Node
}

// Measured are the results for one batch.
type Measured struct {
	Loss op.Output   // float32 scalar
	Sums []op.Output // of each metric
}

// Metric measures predictions. It is computed from sums over batches, which may come from several
// workers. Package metrics implements it.
type Metric interface {
	// Name returns the name in histories and event files, such as "accuracy".
	Name() string
	// Sums adds a float64 vector to the graph. The vectors of all batches are added up. weights has
	// a weight for each element of the batch, or is the zero Output.
	Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output
	// Result returns the metric for the total of the vectors.
	Result(total []float64) float64
	// Rises reports whether larger results are better.
	Rises() bool
}

// Dataset is a source of batches. Package data implements it.
type Dataset interface {
	// Types returns the element types and the shapes of the tensors of a batch. The first dimension
	// of each is the batch, of unknown size. The last tensor has the labels, the others are inputs.
	Types() ([]tensor.DType, []tensor.PartialShape)
	// Batches yields the batches of an epoch. Epochs are counted from 0 and may differ in order.
	// After an error there are no more batches.
	Batches(ctx context.Context, epoch int) iter.Seq2[[]tensor.Tensor, error]
}
