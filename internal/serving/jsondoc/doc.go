// Package jsondoc parses JSON as TensorFlow Serving does, and keeps what its rules need: whether a
// number was written as an integer, and the offset of a mistake.
//
// A document is a flat list of nodes instead of a tree of Go values, so that a request with a
// million numbers takes 20 bytes for each of them. Parsing does not recurse: the depth of a
// document is bounded by its size only.
//
// Beyond the standard, NaN, Inf and Infinity are numbers, and text after the first value is
// ignored.
package jsondoc
