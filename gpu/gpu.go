//go:build gpu

package gpu

import (
	_ "github.com/weft-ml/weft/internal/gpu/drivers" // CUDA and OpenCL
	_ "github.com/weft-ml/weft/internal/kernels/gpu" // the operations
)
