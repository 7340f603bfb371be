// Package timeline puts the recordings of the tasks of a cluster on one clock and says where the
// time went.
//
// Build subtracts the differences of the clocks and joins each node that receives a tensor with the
// node that sent it. From the joined nodes come the arrows between tasks of the trace, the time
// that a receiver waited for a tensor that was not computed yet, and the critical path of a step:
// the chain of nodes and transfers that determined when the step ended.
package timeline
