package server

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/cluster"
)

// The addresses of a cluster's hosts are looked up when they are needed, and followed.
func TestTaskAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := cluster.Spec{"ps": cluster.Dense("10.0.0.1:2222"), "worker": cluster.Dense("w0:2222", "w1:2222", "w1:2223")}
		a := newTaskAddresses(spec)
		w1 := "10.0.0.3"
		var lookups atomic.Int32
		a.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
			lookups.Add(1)
			switch host {
			case "w0":
				return []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.2")}, nil
			case "w1":
				if w1 == "" {
					return nil, errors.New("no such host")
				}
				return []netip.Addr{netip.MustParseAddr(w1)}, nil
			}
			return []netip.Addr{netip.MustParseAddr(host)}, nil
		}
		check := func(ip string, want bool) {
			t.Helper()
			if got := a.has(netip.MustParseAddr(ip)); got != want {
				t.Errorf("%s: got %v", ip, got)
			}
		}
		check("10.0.0.1", true)
		check("10.0.0.2", true)
		check("10.0.0.3", true)
		check("10.0.0.4", false)
		if n := lookups.Load(); n != 3 {
			t.Errorf("%d lookups", n)
		}
		w1 = ""
		<-time.After(lookupInterval) // of the fake clock
		check("10.0.0.3", true)      // it cannot be looked up
		w1 = "10.0.0.4"
		<-time.After(lookupInterval) // of the fake clock
		check("10.0.0.4", true)
		check("10.0.0.3", false)
	})
}
