// Package secure puts TLS below HTTP/2: certificates that are read from files and followed,
// verification of the peer, and connections that suit package grpch2.
//
// Only TLS 1.3 with the protocol "h2" is spoken, and both ends have certificates. A chain is
// verified against the CA of the files; the host name is not used between tasks, because an address
// is not an identity. What the peer is follows from the names in its certificate (package trust).
//
// [Credentials] look at their files every 10 seconds. Files that do not fit together leave the old
// certificates in use. A connection ends when a certificate of it ends, or is revoked.
package secure
