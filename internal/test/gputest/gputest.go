// Package gputest gives a test binary two GPUs. A test imports it for its effect:
//
//	import _ "github.com/weft-ml/weft/internal/test/gputest"
//
// Sessions in the process then have the devices /device:GPU:0 and /device:GPU:1 with 64 MiB each.
// They are devices in software, whose work is late by a random time. With the tag gpu the variable
// WEFT_TEST_GPU names a driver, cuda or opencl, whose GPUs are used instead.
package gputest

import (
	"os"
	"time"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/devices"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	_ "github.com/weft-ml/weft/internal/gpu/twins"   // kernels of the devices
	_ "github.com/weft-ml/weft/internal/kernels/gpu" // operations
)

// Devices returns the devices of the process.
func Devices(o *devices.Options) ([]*device.Device, error) {
	set, err := devices.Find("")
	if err != nil {
		return nil, err
	}
	return set.Devices(o)
}

// Memory is the size of a device in bytes.
const Memory = 64 << 20

// Hardware is the driver of the devices; empty for devices in software.
var Hardware = os.Getenv("WEFT_TEST_GPU")

func init() { //nolint:gochecknoinits // registers the driver
	open := func() ([]driver.Device, error) {
		return hostgpu.Open(hostgpu.Options{Devices: 2, Memory: Memory, Delay: 50 * time.Microsecond}), nil
	}
	if Hardware != "" {
		open = pair(Hardware)
	}
	driver.Replace("host", open)
}
