// Package jsontensor converts between JSON and tensors by the rules of TensorFlow Serving's REST
// API, error texts included.
package jsontensor
