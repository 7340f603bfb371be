// Package pb contains TensorFlow's messages: graphs, tensors, configuration, the requests and
// responses of its services, and the contents of its files.
//
// The sources are in proto/. They are written for this module, with the field names, numbers and
// types of TensorFlow 2.21, so the binary and text forms are the same. The message names differ:
// the sources are in the proto packages weft.tensorflow.*, because TensorFlow's generated code
// registers tensorflow.* in the process-wide registry, and a program may link both. The type URL in
// a google.protobuf.Any or in the payload of an error must therefore contain TensorFlow's name. Use
// [TypeURL] instead of the descriptor's name.
//
// Generated messages are used by services and by readers and writers of files only. The runtime has
// its own types.
package pb

//go:generate go run ../gen -root ../../..
