package ioops

import (
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// counted returns an operation that saves or restores tensors and notifies the observer of its
// device.
func counted(operation string, f func(*kernel.Context, fileio.Files) error) kernel.New {
	return kernel.WithFiles(func(ctx *kernel.Context, files fileio.Files) error {
		o := ctx.Device.Observer
		if o == nil {
			return f(ctx, files)
		}
		began := time.Now()
		err := f(ctx, files)
		size := int64(0)
		for i := range ctx.NumInputs() { // a restoring operation has names as inputs
			size += sizeOf(ctx.Input(i))
		}
		for i := range ctx.NumOutputs() {
			size += sizeOf(ctx.OutputValue(i))
		}
		o.CheckpointEnded(operation, uint32(status.CodeOf(err)), size, time.Since(began))
		return err
	})
}

// sizeOf returns the size of the elements of a tensor in bytes, 0 without a tensor.
func sizeOf(t *tensor.Tensor) int64 {
	if !t.Initialized() {
		return 0
	}
	return t.ByteSize()
}
