// Package trust says what the holder of a certificate is, and what it may do.
//
// A certificate names a [Principal]: a client with its tenant, a task of the cluster, an operator
// or an observer. The name is a SPIFFE ID of this project's form, or any name that a trust file
// ([File]) maps to a principal. The common name is never used.
//
// The table [Methods] says what each role may call. The check in the server, "weft auth", the page
// docs/guides/security.md and the tests are all made from it. A method without a row is refused.
//
// A server without certificates has no principals: its contexts carry none, and everything is
// allowed.
package trust
