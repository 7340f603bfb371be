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
	unary("Invert", "Inverts all bits of each element.", integerTypes, ops["Invert"])
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "PopulationCount", Doc: "Computes the number of set bits in each element.",
			In: []string{"x: T"}, Out: []string{"y: uint8"}, Attrs: []string{"T: " + integerTypes}, Shape: opdef.SameShape,
		},
		Kernels: byT(ops["PopulationCount"]),
	})
	for _, op := range []opdef.Def{
		{Name: "BitwiseAnd", Doc: "Computes the bitwise AND of x and y, with broadcasting.", Commutative: true},
		{Name: "BitwiseOr", Doc: "Computes the bitwise OR of x and y, with broadcasting.", Commutative: true},
		{Name: "BitwiseXor", Doc: "Computes the bitwise XOR of x and y, with broadcasting.", Commutative: true},
		{Name: "LeftShift", Doc: "Shifts x left by y bits, with broadcasting. y is clamped to the width of the type."},
		{Name: "RightShift", Doc: "Shifts x right by y bits, with broadcasting. y is clamped to the width of the type. Shifts of signed types are arithmetic."},
	} {
		binary(op, integerTypes, ops[op.Name])
	}
}

// bitwise adds the bitwise kernels of a type to the tables.
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
	// The shift amount is clamped to [0, width-1].
	amount := func(y T) uint {
		if y < 0 {
			return 0
		}
		return uint(min(uint64(y), width-1))
	}
	pairs("LeftShift", func(x, y T) T { return x << amount(y) })
	pairs("RightShift", func(x, y T) T { return x >> amount(y) })
}
