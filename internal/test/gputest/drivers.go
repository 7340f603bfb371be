//go:build gpu

package gputest

import _ "github.com/weft-ml/weft/internal/gpu/drivers" // for WEFT_TEST_GPU
