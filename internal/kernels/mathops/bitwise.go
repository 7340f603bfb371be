package mathops

import (
	"math/bits"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

const integerTypes = "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}"

func init() {
	ops := map[string]kernel.Table{}
	bitwise[int8](ops, 8)
	bitwise[int16](ops, 16)
	bitwise[int32](ops, 32)
	bitwise[int64](ops, 64)
	bitwise[uint8](ops, 8)
	bitwise[uint16](ops, 16)
	bitwise[uint32](ops, 32)
	bitwise[uint64](ops, 64)
	unary("Invert", "Inverts every bit of every element.", integerTypes, ops["Invert"])
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "PopulationCount", Doc: "The number of bits that are set in every element.",
			In: []string{"x: T"}, Out: []string{"y: uint8"}, Attrs: []string{"T: " + integerTypes}, Shape: opdef.SameShape,
		},
		Kernels: byT(ops["PopulationCount"]),
	})
	for _, op := range []opdef.Def{
		{Name: "BitwiseAnd", Doc: "The bits that are set in both x and y, with broadcasting.", Commutative: true},
		{Name: "BitwiseOr", Doc: "The bits that are set in x or y, with broadcasting.", Commutative: true},
		{Name: "BitwiseXor", Doc: "The bits in which x and y differ, with broadcasting.", Commutative: true},
		{Name: "LeftShift", Doc: "Shifts the bits of x left by y, kept within the width of the type, with broadcasting."},
		{Name: "RightShift", Doc: "Shifts the bits of x right by y, kept within the width of the type, with broadcasting; signed types keep their sign."},
	} {
		binary(op, integerTypes, ops[op.Name])
	}
}

// bitwise adds the operations on bits of a type to their tables.
func bitwise[T elementwise.Integer](ops map[string]kernel.Table, width uint64) {
	dtype := tensor.DTypeOf[T]()
	set := func(name string, n kernel.New) {
		if ops[name] == nil {
			ops[name] = kernel.Table{}
		}
		ops[name][dtype] = n
	}
	pairs := func(name string, f func(x, y T) T) {
		set(name, elementwise.Loops[T, T]{Each: elementwise.Map2(f), Cost: medium}.Kernel())
	}
	set("Invert", elementwise.Unary(cheap, elementwise.Map(func(x T) T { return ^x })))
	mask := uint64(1)<<width - 1
	set("PopulationCount", elementwise.Unary(medium, elementwise.Map(func(x T) uint8 {
		return uint8(bits.OnesCount64(uint64(x) & mask))
	})))
	pairs("BitwiseAnd", func(x, y T) T { return x & y })
	pairs("BitwiseOr", func(x, y T) T { return x | y })
	pairs("BitwiseXor", func(x, y T) T { return x ^ y })
	// The amount of a shift is clamped to [0, width-1].
	amount := func(y T) uint {
		if y < 0 {
			return 0
		}
		return uint(min(uint64(y), width-1))
	}
	pairs("LeftShift", func(x, y T) T { return x << amount(y) })
	pairs("RightShift", func(x, y T) T { return x >> amount(y) })
}
