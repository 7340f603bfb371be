// Package rpc carries TensorFlow's services over gRPC: MasterService, by which clients use a
// cluster, and WorkerService, by which masters and tasks talk to each other.
//
// A role that is served ([Master], [Worker]) and the client that calls it over a connection
// ([MasterClient], [WorkerClient]) have the same methods: whoever calls one need not know whether
// it is in this process. Requests and responses with tensors are those of package message. They are
// written and read by hand, with the elements of large tensors shared with gRPC on one side and
// copied once on the other; all other messages are protocol buffers.
//
// The service descriptors are written by hand, too. TensorFlow itself has hand-written ones, and
// the names on the wire (/tensorflow.MasterService/RunStep) are in no .proto package.
package rpc
