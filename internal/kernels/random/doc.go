// Package random has the operations that draw random numbers.
//
// With the same seeds they give the numbers that TensorFlow gives on a CPU, in the same order over
// the calls of a node. A node whose seeds are both zero is seeded by chance when its kernel is
// made.
package random
