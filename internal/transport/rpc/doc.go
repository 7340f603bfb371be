// Package rpc carries TensorFlow's services over gRPC: MasterService, through which clients use a
// cluster, and WorkerService, through which masters and tasks call each other.
//
// A served role ([Master], [Worker]) and the client that calls it over a connection
// ([MasterClient], [WorkerClient]) have the same methods, so that a caller need not know whether
// the role is in the same process. Requests and responses with tensors are those of package
// message. They are encoded and decoded by hand. A sender shares the elements of large tensors with
// the transport (package grpch2). A receiver places them directly into the memory of their tensor.
// All other messages are protocol buffers.
//
// Methods are registered by hand, too. The names on the wire (/tensorflow.MasterService/RunStep)
// are in no .proto package, and TensorFlow's own stubs are hand-written.
//
// A task has one [ReceiveLimiter] for all its connections. Locks: [Connections].mu, Peers.mu,
// Health.mu and ReceiveLimiter.mu are leaves, except that Peers.mu is held while a connection is
// looked up in Connections. The package starts no goroutines: those of connections belong to
// package grpch2.
package rpc
