// Package all registers the operations of every family: import it for its effect.
package all

import (
	_ "github.com/weft-ml/weft/kernels/array"      // registers
	_ "github.com/weft-ml/weft/kernels/batching"   // registers
	_ "github.com/weft-ml/weft/kernels/clustering" // registers
	_ "github.com/weft-ml/weft/kernels/collective" // registers
	_ "github.com/weft-ml/weft/kernels/comm"       // registers
	_ "github.com/weft-ml/weft/kernels/control"    // registers
	_ "github.com/weft-ml/weft/kernels/data"       // registers
	_ "github.com/weft-ml/weft/kernels/fft"        // registers
	_ "github.com/weft-ml/weft/kernels/function"   // registers
	_ "github.com/weft-ml/weft/kernels/image"      // registers
	_ "github.com/weft-ml/weft/kernels/io"         // registers
	_ "github.com/weft-ml/weft/kernels/linalg"     // registers
	_ "github.com/weft-ml/weft/kernels/list"       // registers
	_ "github.com/weft-ml/weft/kernels/logging"    // registers
	_ "github.com/weft-ml/weft/kernels/math"       // registers
	_ "github.com/weft-ml/weft/kernels/nn"         // registers
	_ "github.com/weft-ml/weft/kernels/parsing"    // registers
	_ "github.com/weft-ml/weft/kernels/probe"      // registers
	_ "github.com/weft-ml/weft/kernels/quantize"   // registers
	_ "github.com/weft-ml/weft/kernels/queue"      // registers
	_ "github.com/weft-ml/weft/kernels/ragged"     // registers
	_ "github.com/weft-ml/weft/kernels/random"     // registers
	_ "github.com/weft-ml/weft/kernels/rnn"        // registers
	_ "github.com/weft-ml/weft/kernels/sparse"     // registers
	_ "github.com/weft-ml/weft/kernels/state"      // registers
	_ "github.com/weft-ml/weft/kernels/string"     // registers
	_ "github.com/weft-ml/weft/kernels/summary"    // registers
	_ "github.com/weft-ml/weft/kernels/table"      // registers
)
