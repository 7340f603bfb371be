// Package kernels registers all operations with their kernels and shape functions. Import it for
// its side effect:
//
//	import _ "github.com/weft-ml/weft/kernels"
//
// Packages local and server import it. Graphs built in a program that imports it are checked by the
// shape functions.
package kernels

import (
	_ "github.com/weft-ml/weft/internal/kernels/array"      // registers
	_ "github.com/weft-ml/weft/internal/kernels/batching"   // registers
	_ "github.com/weft-ml/weft/internal/kernels/boosted"    // registers
	_ "github.com/weft-ml/weft/internal/kernels/clustering" // registers
	_ "github.com/weft-ml/weft/internal/kernels/collective" // registers
	_ "github.com/weft-ml/weft/internal/kernels/comm"       // registers
	_ "github.com/weft-ml/weft/internal/kernels/control"    // registers
	_ "github.com/weft-ml/weft/internal/kernels/data"       // registers
	_ "github.com/weft-ml/weft/internal/kernels/fft"        // registers
	_ "github.com/weft-ml/weft/internal/kernels/function"   // registers
	_ "github.com/weft-ml/weft/internal/kernels/imageops"   // registers
	_ "github.com/weft-ml/weft/internal/kernels/ioops"      // registers
	_ "github.com/weft-ml/weft/internal/kernels/linalg"     // registers
	_ "github.com/weft-ml/weft/internal/kernels/listops"    // registers
	_ "github.com/weft-ml/weft/internal/kernels/logging"    // registers
	_ "github.com/weft-ml/weft/internal/kernels/mathops"    // registers
	_ "github.com/weft-ml/weft/internal/kernels/nn"         // registers
	_ "github.com/weft-ml/weft/internal/kernels/parsing"    // registers
	_ "github.com/weft-ml/weft/internal/kernels/probe"      // registers
	_ "github.com/weft-ml/weft/internal/kernels/quantize"   // registers
	_ "github.com/weft-ml/weft/internal/kernels/queue"      // registers
	_ "github.com/weft-ml/weft/internal/kernels/ragged"     // registers
	_ "github.com/weft-ml/weft/internal/kernels/random"     // registers
	_ "github.com/weft-ml/weft/internal/kernels/rnn"        // registers
	_ "github.com/weft-ml/weft/internal/kernels/sparse"     // registers
	_ "github.com/weft-ml/weft/internal/kernels/state"      // registers
	_ "github.com/weft-ml/weft/internal/kernels/stringops"  // registers
	_ "github.com/weft-ml/weft/internal/kernels/summary"    // registers
	_ "github.com/weft-ml/weft/internal/kernels/table"      // registers
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() { opdef.RegisterShapes(kernel.Default) } //nolint:gochecknoinits // after the families have registered
