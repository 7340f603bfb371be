// Package drivertest checks a driver on a device: kernels with arguments of all types, copies,
// order within a stream and between streams, events, errors, memory, matrix products and
// convolutions. The tests of the drivers run it, and so does the report that users of GPUs make.
package drivertest

//go:generate go run -tags gpu ../nvrtc/compile -if-there kernels.cl kernels.ptx
