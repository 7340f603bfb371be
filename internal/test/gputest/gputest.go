// Package gputest gives a test binary GPUs in software. A test imports it for its effect:
//
//	import _ "github.com/weft-ml/weft/internal/test/gputest"
//
// Sessions in the process then have the devices /device:GPU:0 and /device:GPU:1 with 64 MiB each,
// whose work is late by a random time.
package gputest

import (
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

func init() { //nolint:gochecknoinits // registers the driver
	driver.Register("host", func() ([]driver.Device, error) {
		return hostgpu.Open(hostgpu.Options{Devices: 2, Memory: Memory, Delay: 50 * time.Microsecond}), nil
	})
}
