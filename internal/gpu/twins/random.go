package twins

import (
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	draw("uniform_f16", philox.UniformHalf)
	draw("uniform_bf16", philox.UniformBFloat)
	draw("uniform_f32", philox.Uniform32)
	draw("uniform_f64", philox.Uniform64)
	draw("normal_f16", philox.NormalHalf)
	draw("normal_bf16", philox.NormalBFloat)
	draw("normal_f32", philox.NormalFloat32)
	draw("normal_f64", philox.NormalFloat64)
	draw("truncated_f16", philox.TruncatedHalf)
	draw("truncated_bf16", philox.TruncatedBFloat)
	draw("truncated_f32", philox.TruncatedFloat32)
	draw("truncated_f64", philox.TruncatedFloat64)
	draw("full_i32", philox.FullInt32[int32]())
	draw("full_u32", philox.FullInt32[uint32]())
	draw("full_i64", philox.FullInt64[int64]())
	draw("full_u64", philox.FullInt64[uint64]())
	register("ranged_i32", func(a *hostgpu.Args) {
		lo := int32(a.Int(5))
		philox.Fill(hostgpu.Slice[int32](a, 0)[:a.Int(4)], generator(a), philox.UniformInt32(lo, lo+int32(a.Int(6))))
	})
	register("ranged_i64", func(a *hostgpu.Args) {
		lo := a.Int(5)
		philox.Fill(hostgpu.Slice[int64](a, 0)[:a.Int(4)], generator(a), philox.UniformInt64(lo, lo+a.Int(6)))
	})
}

func draw[T tensor.Elem](name string, d *philox.Distribution[T]) {
	register(name, func(a *hostgpu.Args) { philox.Fill(hostgpu.Slice[T](a, 0)[:a.Int(4)], generator(a), d) })
}

// generator returns the generator in the arguments key, low and high.
func generator(a *hostgpu.Args) philox.Generator {
	return philox.At(uint64(a.Int(1)), uint64(a.Int(2)), uint64(a.Int(3)))
}
