// Package random implements the operations that draw random numbers.
//
// With the same seeds they return the same numbers as TensorFlow on a CPU, in the same order over
// the calls of a node. A node with two zero seeds gets a random seed when its kernel is created.
package random
