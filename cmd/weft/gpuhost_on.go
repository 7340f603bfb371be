//go:build gpu

package main

import (
	"errors"
	"strconv"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	_ "github.com/weft-ml/weft/internal/gpu/twins" // kernels of devices in software
)

// registerHostGPU adds a driver with devices in software.
func registerHostGPU(count string) error {
	n := 1
	if count != "" {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 1 || n > 64 {
			return errors.New("N is a number of devices from 1 to 64")
		}
	}
	driver.Register("host", func() ([]driver.Device, error) {
		return hostgpu.Open(hostgpu.Options{Devices: n, Memory: 4 << 30}), nil
	})
	return nil
}
