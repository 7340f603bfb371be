// Package nn implements the neural network operations: biases, activations, softmax and losses,
// convolution, pooling, normalization, and sampling and ranking of classes.
package nn
