package ioops

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestImmutableConst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "region")
	if err := os.WriteFile(file, []byte{1, 0, 2, 0, 0, 1}, 0o600); err != nil {
		t.Fatal(err)
	}
	attrs := func(dtype tensor.DType, name string, dims ...int64) opdef.Attrs {
		return opdef.Attrs{"dtype": dtype, "shape": tensor.MakePartial(dims...), "memory_region_name": name}
	}
	for _, tt := range []struct {
		attrs opdef.Attrs
		want  tensor.Tensor
	}{
		{attrs(tensor.Int16, file, 3), tensor.Vector[int16](1, 2, 256)},
		{attrs(tensor.Bool, file, 4), tensor.Vector(true, false, true, false)},
		{attrs(tensor.Uint8, file), tensor.Scalar(uint8(1))},
	} {
		out := kerneltest.Run(t, "ImmutableConst", tt.attrs)
		if diff := kerneltest.Diff(&out[0], &tt.want, 0); diff != "" {
			t.Error(diff)
		}
	}
	for _, tt := range []struct {
		attrs opdef.Attrs
		code  status.Code
		want  string
	}{
		{attrs(tensor.Int32, file, 2), status.Internal, "Readonly memory region has wrong length (6) when allocating 8"},
		{attrs(tensor.String, file, 1), status.Unimplemented, "Sorry, DT_STRING is not currently supported for ImmutableConstOp."},
		{attrs(tensor.Variant, file, 1), status.InvalidArgument, "Resource and variant dtypes are invalid for this op."},
		{attrs(tensor.Int32, file+"s", 2), status.NotFound, file + "s; No such file or directory"},
	} {
		if _, err := kerneltest.Try("ImmutableConst", tt.attrs); status.CodeOf(err) != tt.code || err.Error() != tt.want {
			t.Errorf("%v: %v, want %v: %s", status.CodeOf(err), err, tt.code, tt.want)
		}
	}
}
