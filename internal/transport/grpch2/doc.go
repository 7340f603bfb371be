// Package grpch2 carries gRPC calls with one request and one response over HTTP/2, as a server and
// as a client. A server may also answer with several small messages.
//
// It exists because steps are short: a call should cost the system calls that move its bytes and
// nothing else. So no bytes go from one goroutine to another on their way. Whoever makes a message
// writes it to the connection, together with all that others have queued there meanwhile (type
// output). Whoever reads a connection serves the request that has just arrived, or takes the
// response that it waits for, on the same goroutine; if that takes long, another goroutine goes on
// reading (type turn). Large messages are read straight into the memory that their receiver chose
// for them ([Body]) and written from where they lie.
//
// The wire is that of RFC 9113 (HTTP/2), RFC 7541 (HPACK) and gRPC's PROTOCOL-HTTP2. What a peer
// sends is checked against these, and bounded: what breaks the protocol ends the connection with
// GOAWAY, what is wrong with one call ends that call. Headers are written without HPACK's dynamic
// table, so that they depend on nothing that was sent before.
package grpch2
