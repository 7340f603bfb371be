// Package grpch2 carries gRPC calls over HTTP/2, as a server and as a client. A call has one
// request and one response; a server may also answer with several small messages.
//
// The simple design is a general gRPC library. Its calls pass between goroutines three times: from
// the reader to the handler, from the handler to the writer, and from the reader to the caller.
// Each handoff wakes a thread, about 40 µs on two cores, which is more than reading, decoding,
// running, encoding and writing a small step together. A callable of a constant took 132 µs with
// the library and takes 105 µs with this package, and the server's CPU time fell from 90 to 60 µs.
//
// The design therefore keeps a call on one goroutine where it can:
//
//   - The goroutine that reads a request also serves it, and the one that reads a response delivers
//     it. If that takes long, another goroutine continues reading (readToken). Methods that take
//     long are served by a workerPool instead; see serverConn.canServeInline.
//   - There is no writer goroutine. The goroutine that has a message writes it, together with all
//     frames that other goroutines have queued (output).
//   - A reader whose peer answers quickly busy-waits instead of sleeping (spinPoller).
//   - Large messages are read into memory that their receiver chooses ([Body]), and written from
//     the memory that holds them.
//
// The wire format is that of RFC 9113 (HTTP/2), RFC 7541 (HPACK) and gRPC's PROTOCOL-HTTP2. Input
// of a peer is validated and bounded: a breach of the protocol ends the connection with GOAWAY, an
// error in one call ends that call. Headers are written without HPACK's dynamic table, so a block
// does not depend on those before it.
//
// docs/internals/transport.md follows a call through the package.
package grpch2
