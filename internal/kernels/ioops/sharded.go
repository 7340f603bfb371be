package ioops

import (
	"fmt"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "ShardedFilename", Doc: "Returns the file name of one shard of a set.",
		In:    []string{"basename: string", "shard: int32", "num_shards: int32"},
		Out:   []string{"filename: string"},
		Shape: scalars,
	}, func(ctx *kernel.Context) error {
		base, err := text(ctx, 0, "basename")
		if err != nil {
			return err
		}
		shard, err := number(ctx, 1, "shard")
		if err != nil {
			return err
		}
		shards, err := number(ctx, 2, "num_shards")
		if err != nil {
			return err
		}
		ctx.SetOutput(0, tensor.Scalar(joined(base, fmt.Sprintf("-%05d-of-%05d", shard, shards))))
		return nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "ShardedFilespec", Doc: "Returns a glob pattern that matches the file names of all shards of a set.",
		In:    []string{"basename: string", "num_shards: int32"},
		Out:   []string{"filename: string"},
		Shape: scalars,
	}, func(ctx *kernel.Context) error {
		base, err := text(ctx, 0, "basename")
		if err != nil {
			return err
		}
		shards, err := number(ctx, 1, "num_shards")
		if err != nil {
			return err
		}
		ctx.SetOutput(0, tensor.Scalar(joined(base, fmt.Sprintf("-?????-of-%05d", shards))))
		return nil
	})
}

// joined returns a name up to its first NUL byte, which ends file names, with an end. It asks for
// the memory of the result.
func joined(name, end string) string {
	name, _, _ = strings.Cut(name, "\x00")
	membudget.MustTake(int64(len(name)))
	return name + end
}

// number returns the integer that is input i, which must be a scalar.
func number(ctx *kernel.Context, i int, name string) (int32, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return 0, status.InvalidArgumentf("%s must be a scalar, got shape %v", name, t.Shape())
	}
	return tensor.Value[int32](t), nil
}
