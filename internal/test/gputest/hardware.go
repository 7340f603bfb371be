package gputest

import (
	"fmt"
	"os"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// pair returns the function that opens two devices of a driver. A driver with one GPU is opened
// twice. The tests compare with the CPU's values, so cuBLAS must not round the factors of a product
// to TF32.
func pair(name string) func() ([]driver.Device, error) {
	if name == "cuda" && os.Getenv("NVIDIA_TF32_OVERRIDE") != "0" {
		panic("WEFT_TEST_GPU=cuda needs NVIDIA_TF32_OVERRIDE=0")
	}
	var found []driver.Device
	for len(found) < 2 {
		d, err := driver.Open(name)
		if err != nil {
			panic(fmt.Sprintf("WEFT_TEST_GPU=%s: %v", name, err))
		}
		found = append(found, d.Devices...)
	}
	return func() ([]driver.Device, error) { return []driver.Device{part{found[0]}, part{found[1]}}, nil }
}

// part is a device that has a part of the memory of a GPU. Copies between two of them go over the
// host, since drivers do not know this type.
type part struct{ driver.Device }

// Info implements [driver.Device].
func (p part) Info() driver.Info {
	info := p.Device.Info()
	info.Memory, info.LargestAlloc = Memory, Memory
	info.Unified = true // nothing of the memory is reserved
	return info
}

// FreeMemory implements [driver.Device].
func (p part) FreeMemory() (int64, error) { return Memory, nil }
