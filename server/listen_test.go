package server

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/weft-ml/weft/cluster"
)

func TestHostThatOthersCannotReach(t *testing.T) {
	lookup := func(host string) ([]net.IP, error) {
		switch host {
		case "debian", "localhost", "127.0.0.1":
			return []net.IP{net.IPv4(127, 0, 1, 1), net.IPv6loopback}, nil
		case "proper":
			return []net.IP{net.IPv4(127, 0, 1, 1), net.IPv4(192, 0, 2, 1)}, nil
		}
		return nil, errors.New("no such host")
	}
	for _, tt := range []struct {
		host, peer string
		warns      bool
	}{
		{"debian", "other", true},
		{"debian", "192.0.2.7", true},
		{"localhost", "other", true},
		{"127.0.0.1", "other", true},
		{"debian", "debian", false},
		{"debian", "localhost", false},
		{"localhost", "127.0.0.2", false},
		{"proper", "other", false},
		{"unknown", "other", false},
	} {
		def := cluster.ServerDef{Job: "ps", Cluster: cluster.Spec{
			"ps": cluster.Dense(tt.host + ":1"), "worker": cluster.Dense(tt.peer + ":2"),
		}}
		got := loopbackOnly(&def, tt.host, lookup)
		if tt.warns != strings.Contains(got, tt.host+" is 127.0.1.1 on this machine") {
			t.Errorf("%s with a peer at %s: got %q, want a warning: %t", tt.host, tt.peer, got, tt.warns)
		}
	}
}
