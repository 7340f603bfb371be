//go:build gpu

package drivers

import (
	_ "github.com/weft-ml/weft/internal/gpu/cuda"   // first: it is faster where both find a GPU
	_ "github.com/weft-ml/weft/internal/gpu/opencl" // others' GPUs
)
