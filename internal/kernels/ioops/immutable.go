package ioops

import (
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ImmutableConst", Doc: "Returns an immutable tensor whose elements are the bytes of a file, in memory order.",
		Out: []string{"tensor: dtype"}, Attrs: []string{"dtype: type", "shape: shape", "memory_region_name: string"},
		Class: opdef.FilesRead, Shape: opdef.AttrShape,
	}, newImmutable)
}

func newImmutable(c *kernel.Construction) (kernel.Kernel, error) {
	dtype, name := c.Attrs.Type("dtype"), c.Attrs.String("memory_region_name")
	if dtype == tensor.Resource || dtype == tensor.Variant {
		return nil, status.InvalidArgumentf("Resource and variant dtypes are invalid for this op.")
	}
	shape, ok := c.Attrs.Shape("shape").Full()
	if !ok {
		return nil, status.InvalidArgumentf("Shape %v is not fully defined", c.Attrs.Shape("shape"))
	}
	return kernel.WithFiles(func(ctx *kernel.Context, files fileio.Files) error {
		contents, err := files.Read(name)
		if err != nil {
			return err
		}
		if dtype == tensor.String {
			return status.Unimplementedf("Sorry, DT_STRING is not currently supported for ImmutableConstOp.")
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		if size := out.ByteSize(); size > int64(len(contents)) {
			return status.Internalf("Readonly memory region has wrong length (%d) when allocating %d", len(contents), size)
		}
		if dtype == tensor.Bool {
			for i := range tensor.Values[bool](out) { // other byte values are not valid bools
				tensor.Values[bool](out)[i] = contents[i] != 0
			}
			return nil
		}
		bulk.Copy(out.Bytes(), contents)
		return nil
	})(c)
}
