//go:build gpu

package opencl

import (
	"os"
	"testing"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/drivertest"
)

// open returns the devices of this machine. CI has POCL, which computes on the CPU.
func open(t *testing.T) []driver.Device {
	t.Helper()
	devices, err := Open()
	if err != nil && os.Getenv("WEFT_OPENCL_CPU") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
	return devices
}

func TestDevices(t *testing.T) {
	for i, d := range open(t) {
		for _, o := range drivertest.Check(d) {
			if o.Err != nil {
				t.Errorf("device %d: %s: %v", i, o.Name, o.Err)
			}
			t.Logf("device %d: %s: %s", i, o.Name, o.Note)
		}
	}
}

func TestStress(t *testing.T) {
	for _, d := range open(t) {
		if err := drivertest.Stress(d, 16, 60); err != nil {
			t.Fatal(err)
		}
	}
}
