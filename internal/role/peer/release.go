// Package peer holds what is known about the releases of TensorFlow at the other end of a call: how
// the release of a client, a master or a worker is found out, and what follows from it.
//
// TensorFlow's protocol has no version number, and a release is found out by different means:
//
//   - The release of a caller follows from the user-agent of its gRPC library ([OfAgent]).
//   - The release of a worker follows from the methods that it has. A master asks it questions that
//     are harmless on every release, newest first ([Find]).
//   - Tasks of Weft mark their answers with a field that TensorFlow ignores ([Mark]).
//
// What follows is a table of traits, with a reason for each ([Trait]).
package peer

import (
	"context"
	"net/netip"
)

// A Release is a release of TensorFlow or a range of releases with the same protocol. Later ones
// are greater.
type Release uint8

// Releases, named after their first one.
const (
	// Unknown is a release that was not found out. It has no traits of old releases.
	Unknown  Release = iota
	TF012            // 0.12
	TF10             // 1.0 to 1.3
	TF14             // 1.4
	TF15             // 1.5 to 1.8
	TF19             // 1.9 to 1.12
	TF113            // 1.13 to 2.2
	TF22to24         // 2.2 to 2.4, which have the same gRPC library; see Ambiguous
	TF23             // 2.3 and later
	Weft             // this program
)

var names = [...]string{
	Unknown: "an unknown release", TF012: "TensorFlow 0.12", TF10: "TensorFlow 1.0 to 1.3", TF14: "TensorFlow 1.4",
	TF15: "TensorFlow 1.5 to 1.8", TF19: "TensorFlow 1.9 to 1.12", TF113: "TensorFlow 1.13 to 2.2",
	TF22to24: "TensorFlow 2.2 to 2.4", TF23: "TensorFlow 2.3 or later", Weft: "Weft",
}

// String returns the name of the release, for errors.
func (r Release) String() string { return names[r] }

// IsOld reports whether a release is known to be an old one, which has some traits.
func (r Release) IsOld() bool { return r != Unknown && r < TF23 }

type contextKey struct{}

// NewContext returns a context for the calls of a peer.
func NewContext(ctx context.Context, r Release) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the release of the peer that has made the call of a context. It is Unknown
// for calls within a process.
func FromContext(ctx context.Context) Release {
	r, _ := ctx.Value(contextKey{}).(Release)
	return r
}

// addressKey is the key of the address of a caller.
type addressKey struct{}

// WithAddress returns a context for the calls of a caller with an address.
func WithAddress(ctx context.Context, ip netip.Addr) context.Context {
	return context.WithValue(ctx, addressKey{}, ip)
}

// strangerKey is the key of the mark of a stranger.
type strangerKey struct{}

// WithStranger returns a context for the calls of a caller that is not known to be a task.
func WithStranger(ctx context.Context) context.Context {
	return context.WithValue(ctx, strangerKey{}, true)
}

// IsStranger reports whether the caller is not known to be a task.
func IsStranger(ctx context.Context) bool { return ctx.Value(strangerKey{}) != nil }

// Address returns the address of the caller. It is invalid for calls within a process.
func Address(ctx context.Context) netip.Addr {
	ip, _ := ctx.Value(addressKey{}).(netip.Addr)
	return ip
}
