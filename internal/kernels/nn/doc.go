// Package nn has the operations of neural networks: biases, activations, softmax and losses,
// convolution, pooling, normalization, and what samples and ranks classes.
package nn
