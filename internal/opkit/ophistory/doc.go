// Package ophistory tells which release of TensorFlow introduced an operation or an attribute.
//
// A master that registers a graph with a worker of an older release must not send attributes that
// the worker's operation lacks, and it must send every attribute that the operation has, since old
// workers do not add defaults that a master left out.
//
// The table history.txt has a line for every operation of TensorFlow 0.12 to 2.21: its name, the
// index in [Releases] of the first release that has it unless that is 0, and "attribute=index" for
// each attribute that the operation gained later. The index len(Releases) stands for releases after
// the last of the list. The table deprecated.txt has a line for every operation that TensorFlow
// removed: its name, the version of graphs that must not have it, and what to use instead.
// interop/old/ophistory.py makes the tables from the definitions of
// TensorFlow's own packages: 0.12.1, 1.0.1, 1.4.1, 1.8.0, 1.12.3, 1.15.5 and 2.21.0.
package ophistory
