// Package rpc carries TensorFlow's services over gRPC: MasterService, by which clients use a cluster, and WorkerService,
// by which masters and tasks talk to each other.
//
// The service descriptors are written by hand, not generated. TensorFlow itself has hand-written ones, and the names on
// the wire (/tensorflow.MasterService/RunStep) are in no .proto package. It also leaves the request and response types
// free: a method may take a type of its own that a codec reads and writes without a copy, where a generated stub would
// insist on the message.
package rpc
