// Package samehost carries large tensors between tasks of one machine with a single copy: the
// receiver reads the elements straight from the memory of the process that has them
// (process_vm_readv of Linux, "cross-memory attach" in MPI), or from a pipe that holds its pages.
//
// The tasks agree through transport_options of RecvTensor, which other implementations leave alone:
//
//   - A [Borrower] adds an offer to its requests. The first large tensor comes as ever, with an
//     invitation: the name of a Unix socket of the producer's [Lender], and a secret.
//   - The borrower connects to that socket and shows the secret. Both make sure that the other runs
//     as the same user, and the borrower that it gets at a word of the producer's memory. That
//     connection is a channel. It tells the borrower whose memory to read, as the kernel knows it,
//     and the lender when the borrower has come to its end.
//   - From then on, offers name the channel. The lender answers with the address of the elements
//     and a random ticket, keeps the tensor, and has the ticket lie in its memory as long as it
//     does so.
//   - The borrower copies the elements, looks whether the ticket still lies there, and sends it
//     back over the channel. If it does not, whatever was read is dropped, be it that the tensor
//     was released or that the process is another one.
//   - Tickets of tensors up to 2 MiB are given back through memory that the borrower shares with
//     the lender when it opens the channel, so that nobody is woken. Such a tensor is read by
//     whoever brings the answer, unless others are still to come.
//
// Where the kernel does not let the borrower read (under Yama's ptrace_scope, between containers
// with process numbers of their own), it sends the ticket with one end of a pipe, and the lender
// has the pages of the tensor taken for what the pipe holds (vmsplice). Reading the pipe is the
// only copy. The lender keeps such a tensor until the ticket comes back, even if the step ends
// before, and ends the channel before it releases anything that is still being read.
//
// Whatever fails on the way, the borrower asks for the same ticket over the main channel, and gets
// the tensor as bytes. So whoever cannot use the main channel cannot use this one, and nothing that
// this one does can lose a tensor.
//
// Small tensors travel together where both sides know how: a request may name further keys of the
// step, and is answered with those tensors that are there when the first of them is, in one
// message. A borrower finds out by its first requests, which ask for nothing more than an answer to
// that; a task of another implementation gets requests for one tensor each.
//
// A borrower remembers what did not travel with others, and asks for it alone at once. What came as
// many bytes is asked for over a second connection to the same address, so that no small message
// waits for it, whoever serves it.
//
// A lent tensor is kept until the borrower has it or its step ends, as it would be in the step's
// rendezvous. A task lends at most 4 GiB at a time, and borrows at most as much; what is beyond
// takes the main channel. So does everything on other systems than Linux, and between tasks with
// networks of their own.
package samehost
