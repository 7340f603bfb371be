package drivertest

import (
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

func TestDevicesInSoftware(t *testing.T) {
	devices := hostgpu.Open(hostgpu.Options{Devices: 2, Memory: 64 << 20, Delay: 100 * time.Microsecond, Peers: true})
	outcomes := append(Check(devices[0]), Peers(devices)...)
	for _, o := range outcomes {
		if o.Err != nil {
			t.Errorf("%s: %v", o.Name, o.Err)
		}
	}
	if len(outcomes) != 13 {
		t.Errorf("%d checks", len(outcomes))
	}
	if err := Stress(devices[1], 4, 5); err != nil {
		t.Error(err)
	}
}
