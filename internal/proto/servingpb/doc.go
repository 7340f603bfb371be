// Package servingpb contains the messages of model servers: those of TensorFlow Serving, and those
// of the Open Inference Protocol.
//
// The sources are in proto/, next to those of package pb, whose rules apply: names and numbers of
// fields are TensorFlow Serving's, and the proto packages are weft.tensorflow.serving and
// weft.inference. Only a program that serves models links this package.
package servingpb
