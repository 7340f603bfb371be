// Package nn has the layers, losses and models of neural networks. Names, defaults and numbers are
// those of Keras: with the same weights a layer computes the same outputs and gradients.
//
// # Layers
//
// A [Layer] is a struct of settings. A zero field has the documented default. The variables of a
// layer belong to the graph that it is applied to, so a layer may be used for any number of graphs.
// A layer that is applied twice to one graph shares its variables.
//
//	hidden := &nn.Dense{Units: 64, Activation: nn.ReLU}
//
// Inputs and outputs are float32 tensors of shape [batch, …, features] unless the documentation of
// a layer says otherwise. The sizes of the last dimensions must be known when the graph is built;
// those of the batch and, for recurrent layers, of the time need not be known.
//
// # Networks
//
// A network is a list of layers, [Sequential], or any struct with the method Apply of [Layer],
// which calls its fields:
//
//	type residual struct{ inner, shortcut nn.Layer }
//
//	func (r *residual) Apply(c *nn.Context, x op.Output) op.Output {
//		return op.AddV2(c.Scope, r.inner.Apply(c, x), r.shortcut.Apply(c, x))
//	}
//
// A network with several inputs is a [Network], whose method Forward gets all of them.
//
// # Models
//
// A [Model] is a network with a loss and metrics. [train.Fit] trains it; its own methods evaluate,
// predict, save and load.
//
//	m := &nn.Model{
//		Network: nn.Sequential{&nn.Dense{Units: 64, Activation: nn.ReLU}, &nn.Dense{Units: 3}},
//		Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true},
//		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
//	}
//	history, err := train.Fit(ctx, m, trainingSet, train.FitOptions{Epochs: 10})
//
// # Errors
//
// Layers return no error. A mistake, such as an input of a wrong shape, is a build error of the
// scope that names the layer and the line of the program. The package links the kernels, because
// shapes are inferred with them.
package nn
