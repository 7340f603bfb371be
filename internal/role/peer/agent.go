package peer

import (
	"strconv"
	"strings"
)

// agents lists the releases by the minor version of gRPC's C++ library, 1.x, that they have first.
var agents = []struct {
	minor   int
	release Release
}{
	{0, TF012}, // also 1.0 to 1.3, which differ from 0.12 as workers only
	{5, TF14},
	{6, TF15},
	{12, TF19},
	{19, TF113},
	{27, TF22to24},
	{28, Unknown},
}

// OfAgent returns the release of a client or master with a user-agent. It is Unknown for other
// programs and for releases without old traits.
func OfAgent(agent string) Release {
	if strings.HasPrefix(agent, "weft") {
		return Weft
	}
	rest, ok := strings.CutPrefix(agent, "grpc-c++/1.")
	text, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(text)
	if !ok || err != nil {
		return Unknown
	}
	found := Unknown
	for i := range agents {
		if agents[i].minor <= minor {
			found = agents[i].release
		}
	}
	return found
}

// Ambiguous reports whether releases with different traits have the same user-agent. [Find] tells
// them apart.
func (r Release) Ambiguous() bool { return r == TF22to24 }

// firstProducer23 is the producer that 2.3 writes into graphs; 2.2 writes 175.
const firstProducer23 = 440

// OfProducer returns the release of a master whose release is ambiguous, and whose client has
// written a graph with the given version of its producer. Client and master are mostly of one
// release: a program starts its own server.
func OfProducer(r Release, producer int32) Release {
	if r.Ambiguous() && producer >= firstProducer23 {
		return TF23
	}
	return r
}
