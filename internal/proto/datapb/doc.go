// Package datapb contains the messages of the tf.data service.
//
// The sources are in proto/, next to those of package pb, whose rules apply: names and numbers of
// fields are TensorFlow's, and the proto package is weft.tensorflow.data. Only a program that runs
// the service links this package.
package datapb
