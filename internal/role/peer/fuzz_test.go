package peer

import "testing"

// FuzzOfAgent finds the release of any user-agent, and each release describes itself.
func FuzzOfAgent(f *testing.F) {
	for _, agent := range []string{"", "grpc-c++/1.4.0-dev grpc-c/4.0.0 (linux; chttp2)", "grpc-c++/9999999999999999999999", "weft", "grpc-c++/1..", "\xff"} {
		f.Add(agent, int32(0))
	}
	f.Fuzz(func(t *testing.T, agent string, producer int32) {
		r := OfAgent(agent)
		if r.String() == "" || OfProducer(r, producer).String() == "" {
			t.Errorf("%q is a release without a name", agent)
		}
	})
}
