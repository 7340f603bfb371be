// Package gpu registers the kernels of operations for GPU devices.
//
// The table of TensorFlow's GPU kernels (table.txt) says which operations a GPU has, for which
// types, and which of their arguments are in the memory of the host. Each row of an operation that
// Weft has gets a kernel of one of four kinds:
//
//   - a kernel of this package, which computes on the device, see [Register]
//   - the CPU's kernel, if all arguments are in the memory of the host: shapes, other int32 values
//   - the CPU's kernel, if it does not touch elements: Reshape, variables, calls of functions
//   - a detour: the inputs are copied to the host, the CPU's kernel computes, and the outputs are
//     copied back. Detours have a low priority, so nodes that request no device stay on the CPU.
package gpu

import (
	"github.com/weft-ml/weft/kernel"
)

// own are the kernels that compute on the device, by operation.
var own = map[string][]ownKernel{}

// ownKernel is a kernel for some types.
type ownKernel struct {
	types []kernel.Constraint
	make  kernel.New
}

// Register adds a kernel that computes on the device, for the rows of the table that the types
// match. The init functions of this package call it. The kernel's context has a device
// ([kernel.Context.GPU]); inputs and outputs are in its memory, except for the arguments that the
// table has in the memory of the host.
func Register(op string, make kernel.New, types ...kernel.Constraint) {
	own[op] = append(own[op], ownKernel{types, make})
}
