// Package samehost transfers large tensors between tasks of one machine with a single copy.
//
// The simple design sends a tensor as the bytes of a response. That copies it twice, into the
// socket and out of it: 100 MiB take 20 ms and 0.25 s of CPU time per GB. Here the receiver copies
// the elements directly from the memory of the process that holds them (process_vm_readv of Linux,
// "cross-memory attach" in MPI), or from a pipe that refers to its pages: 6.3 ms and 0.06 s per GB.
//
// The two sides are the [Lender], which leases tensors that its task produces, and the [Borrower],
// which receives them. They negotiate through transport_options of RecvTensor, which other
// implementations ignore:
//
//  1. The borrower adds an offer to its requests. The first large tensor is sent as bytes, together
//     with a handshake: the name of a Unix socket of the lender, and a secret.
//  2. The borrower connects to that socket and sends the secret. Both sides verify that the other
//     process belongs to the same user, and the borrower verifies that it can read a word of the
//     lender's memory. The connection is a channel. The kernel tells the borrower whose memory to
//     read, and the end of the connection tells each side that the other has gone.
//  3. Later offers name the channel. The lender answers with the address of the elements and a
//     random lease ID, and keeps the tensor. It also keeps the lease ID in its memory, until the
//     tensor is released.
//  4. The borrower copies the elements, verifies that the lease ID is still in the lender's memory,
//     and returns the lease over the channel. Without the lease ID it discards the copy: the tensor
//     was released meanwhile, or another process has taken the place of the lender.
//
// Leases of tensors up to 2 MiB are returned through memory that both sides map, which wakes no
// thread. The goroutine that delivers the response copies such a tensor itself, unless other
// responses are outstanding.
//
// If the kernel does not let the borrower read memory (Yama's ptrace_scope, containers with
// separate process IDs), the borrower sends the lease ID with the writing end of a pipe, and the
// lender maps the pages of the tensor into the pipe (vmsplice). Reading the pipe is the only copy.
// The lender keeps such a tensor until the lease is returned, even if the step ends earlier, and
// closes the channel before it releases anything that may still be read.
//
// If anything fails, the borrower fetches the leased tensor as bytes over the main channel. So this
// package can lose no tensor, and a process that cannot use the main channel cannot use this one.
//
// Small tensors travel in batches: a request may name further keys of its step, and is answered
// with the tensors that are available when the first of them is. A borrower probes whether its peer
// accepts such requests; tasks of other implementations get one request per tensor.
//
// A borrower records which tensors were too large for a batch, and requests them individually. It
// requests tensors that were large over a second connection to the same address, so that no small
// message waits behind them. This works with every implementation.
//
// A lease ends when the borrower returns it or its step ends. A task leases at most 4 GiB at a time
// and borrows at most as much; tensors beyond that, tensors on other systems than Linux, and
// tensors between different hosts or network namespaces use the main channel.
//
// docs/internals/samehost.md describes the protocol and its measurements.
package samehost
