// Package pb holds TensorFlow's messages: graphs, tensors, configuration, the requests and
// responses of its services, and the files that it reads and writes.
//
// The sources are in proto/, written for this module with the field names, numbers and types of
// TensorFlow 2.21. Bytes and text forms are TensorFlow's own; the message names are not: the
// sources stand in the proto packages weft.tensorflow.*, so that a program may link this package
// together with TensorFlow's generated code, which claims tensorflow.* in the process-wide
// registry. A type URL in a google.protobuf.Any or in an error's payload therefore has to be
// written with TensorFlow's name, never derived from a message's descriptor.
//
// Generated messages belong to the edges: services, and readers and writers of files. The runtime
// works on its own types.
package pb

//go:generate go run ../gen -root ../../..
