package peer

import "strings"

// agents lists the versions of gRPC's C++ library by the first release of TensorFlow that has them.
var agents = []struct {
	prefix  string
	release Release
}{
	{"grpc-c++/1.0", TF012},
	{"grpc-c++/1.2", TF10},
	{"grpc-c++/1.5.", TF14},
	{"grpc-c++/1.19.", TF115},
}

// OfAgent returns the release of a client or master with a user-agent. It is Unknown for other
// programs and for releases without old traits.
func OfAgent(agent string) Release {
	if strings.HasPrefix(agent, "weft") {
		return Weft
	}
	for i := range agents {
		if strings.HasPrefix(agent, agents[i].prefix) {
			return agents[i].release
		}
	}
	return Unknown
}
