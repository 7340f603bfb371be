//go:build gpu

package drivertest

import (
	"testing"

	"github.com/weft-ml/weft/internal/gpu/nvrtc"
)

// TestPTXIsCurrent compiles the kernels again where NVRTC of CUDA 11.8 is.
func TestPTXIsCurrent(t *testing.T) {
	if major, minor, err := nvrtc.Version(); err != nil || major != 11 || minor != 8 {
		t.Skipf("NVRTC of CUDA 11.8 is not there: %d.%d, %v", major, minor, err)
	}
	got, err := nvrtc.Compile("kernels.cl", source, "compute_52")
	if err != nil {
		t.Fatal(err)
	}
	if got != ptx {
		t.Error("kernels.ptx is not kernels.cl compiled: run go generate with -tags gpu")
	}
}
