package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Byte offsets in microkernel.Args.
const (
	argA = 8 * iota
	argB
	argC
	argRowA
	argStepA
	argStepB
	argK
	argOuter
	argNextA
	argNextB
	argRowC
	argLast
	argFlags
	argBias
	argTiles
	argTileA
	argTileB
	argTileC
	argTileBias
	argAhead
	argStepAhead
	argTileAhead
)

// Bits of microkernel.Args.Flags.
const (
	flagAdd  = 1
	flagBias = 2
	flagRelu = 4
)

// tileShape is the largest tile with a given number of vectors per row.
type tileShape struct{ rows, vecs int }

// tileShapes returns the shapes that fill the registers: rows*vecs accumulators, vecs registers for
// a row of B, and one or two for elements of A.
func (t *target) tileShapes() []tileShape {
	if t.isa == avx512 {
		return []tileShape{{14, 1}, {14, 2}, {6, 3}, {6, 4}}
	}
	return []tileShape{{6, 1}, {6, 2}, {4, 3}}
}

// tiles emits the micro-kernels of matrix products: C (rows x vecs vectors) = or += the sum over k
// of A[.,k]*B[k,.].
func tiles(t *target) {
	for _, s := range t.tileShapes() {
		for rows := 1; rows <= s.rows; rows++ {
			name := fmt.Sprintf("tile%dx%dx%d%s", rows, s.vecs, t.bits, t.isa.suffix())
			t.tile(tileKernel{name: name, tileShape: s, step: t.fma, alone: t.fmaAlone()}, rows)
		}
	}
}

// fmaAlone returns fma with one element of A in memory, which the instruction broadcasts. A tile of
// one vector loads an element for each product, and processors run this form faster than a separate
// broadcast.
func (t *target) fmaAlone() func(acc, b vec, a operand.Op) {
	if t.isa != avx512 {
		return nil
	}
	return func(acc, b vec, a operand.Op) { t.pick(t.VFMADD231PS_BCST, t.VFMADD231PD_BCST, a, b, acc) }
}

// tileKernel describes the micro-kernels for tiles of up to rows rows and vecs vectors. All of them
// use the same registers, so that they share macros.
type tileKernel struct {
	tileShape
	name string
	// step multiplies elements of A and B and adds the product to acc. alone does the same for a
	// single vector of B and an element of A in memory; it may be nil.
	step  func(acc, a vec, b operand.Op)
	alone func(acc, b vec, a operand.Op)
}

// acc returns the accumulator of row i and vector j.
func (k *tileKernel) acc(t *target, i, j int) vec { return t.regs[i*k.vecs+j] }

// b returns the registers for a row of B, and a the one or two for elements of A.
func (k *tileKernel) b(t *target) []vec { return t.regs[k.rows*k.vecs:][:k.vecs] }

func (k *tileKernel) a(t *target) []vec {
	rest := t.regs[(k.rows+1)*k.vecs:]
	return rest[:min(2, len(rest))]
}

// macroName returns the name of a macro for tiles of a width and element type.
func (k *tileKernel) macroName(t *target, name string) string {
	return fmt.Sprintf("%s%dX%d", name, t.bits, k.vecs)
}

// tileLocals holds the stack slots of a micro-kernel: the remaining tiles and outer steps, and the
// addresses of the current tile.
type tileLocals struct{ left, outer, a, b, c, bias, ahead operand.Mem }

// tile emits one micro-kernel, which computes tiles of rows rows one after another. AX points into
// A, BX into B, BP to the memory to prefetch, in steps of R14, and DI to the arguments.
func (t *target) tile(k tileKernel, rows int) {
	t.begin(k.name, "func(args *byte)", fmt.Sprintf("computes tiles of %s and %s of float%d", plural(rows, "row"), plural(k.vecs, "vector"), t.bits))
	t.denormalsAreZero()
	at := tileLocals{t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8)}
	t.Load(t.Param("args"), reg.RDI)
	t.macro("COPY_ARGS", func() {
		t.copy(at.left, t.arg(argTiles))
		t.copy(at.a, t.arg(argA))
		t.copy(at.b, t.arg(argB))
		t.copy(at.c, t.arg(argC))
		t.copy(at.bias, t.arg(argBias))
		t.copy(at.ahead, t.arg(argAhead))
	})

	t.Label("tile")
	t.rowsMacro(fmt.Sprintf("ZERO%d", k.vecs), rows, func(i int) {
		for j := range k.vecs {
			t.zero(k.acc(t, i, j))
		}
	})
	t.prefetchTile(at.c, rows, k.vecs)
	t.macro("START_TILE", func() {
		t.copy(at.outer, t.arg(argOuter))
		t.MOVQ(at.a, reg.RAX)
		t.MOVQ(at.b, reg.RBX)
		t.MOVQ(t.arg(argStepA), reg.RDX)
		t.MOVQ(t.arg(argStepB), reg.RSI)
		t.MOVQ(t.arg(argStepAhead), reg.R14)
		t.MOVQ(at.ahead, reg.RBP)
	})
	t.rowOffsets(rows)

	t.Label("outer")
	// A turn of the loop makes two steps, because the instructions between steps cost time when the
	// core also runs another thread. An odd number of steps starts with the second.
	t.macro("HALVE_K", func() {
		t.MOVQ(t.arg(argK), reg.RCX)
		t.INCQ(reg.RCX)
		t.SHRQ(operand.U8(1), reg.RCX)
	})
	t.JCC(operand.LabelRef("second"))
	for _, label := range []string{"first", "second"} {
		t.Label(label)
		t.tileStep(&k, rows)
	}
	t.DECQ(reg.RCX)
	t.JNZ(operand.LabelRef("first"))
	t.macro("NEXT_OUTER", func() {
		t.ADDQ(t.arg(argNextA), reg.RAX)
		t.ADDQ(t.arg(argNextB), reg.RBX)
		t.DECQ(at.outer)
	})
	t.JNZ(operand.LabelRef("outer"))

	t.tileEnd(&k, &at, rows)
	t.macro("NEXT_TILE", func() {
		t.advance(at.a, t.arg(argTileA))
		t.advance(at.b, t.arg(argTileB))
		t.advance(at.bias, t.arg(argTileBias))
		t.advance(at.c, t.arg(argTileC))
		t.advance(at.ahead, t.arg(argTileAhead))
	})
	t.DECQ(at.left)
	t.JNZ(operand.LabelRef("tile"))
	t.ret()
}

// plural returns a number and a noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// tileStep emits one step of k: a row of B times a column of A.
func (t *target) tileStep(k *tileKernel, rows int) {
	t.macro(fmt.Sprintf("%s_%d", k.macroName(t, "MULTIPLY"), rows), func() { t.multiply(k, rows) })
}

func (t *target) multiply(k *tileKernel, rows int) {
	a, b := k.a(t), k.b(t)
	t.macro(k.macroName(t, "LOAD_B"), func() {
		for j := range k.vecs {
			t.VMOVUPS(t.at(reg.RBX, j), b[j])
		}
	})
	t.rowsMacro(k.macroName(t, "STEP"), rows, func(i int) {
		x := rowOf(i)
		if k.vecs == 1 && k.alone != nil {
			k.alone(k.acc(t, i, 0), b[0], x)
			return
		}
		t.broadcast(a[i%len(a)], x)
		for j := range k.vecs {
			k.step(k.acc(t, i, j), a[i%len(a)], b[j])
		}
	})
	t.macro("NEXT_STEP", func() {
		t.PREFETCHT1(operand.Mem{Base: reg.RBP})
		t.ADDQ(reg.R14, reg.RBP)
		t.ADDQ(reg.RDX, reg.RAX)
		t.ADDQ(reg.RSI, reg.RBX)
	})
}

// copy sets the memory dst to src, and advance adds src to it.
func (t *target) copy(dst, src operand.Mem) {
	t.MOVQ(src, reg.RAX)
	t.MOVQ(reg.RAX, dst)
}

func (t *target) advance(dst, src operand.Mem) {
	t.MOVQ(src, reg.RAX)
	t.ADDQ(reg.RAX, dst)
}

func (t *target) arg(offset int) operand.Mem { return operand.Mem{Base: reg.RDI, Disp: offset} }

// prefetchTile prefetches the tile of C, which the end reads or overwrites.
func (t *target) prefetchTile(c operand.Mem, rows, vecs int) {
	t.macro("START_PREFETCH", func() {
		t.MOVQ(c, reg.RAX)
		t.MOVQ(t.arg(argRowC), reg.RSI)
	})
	t.rowsMacro(fmt.Sprintf("PREFETCH_C%d", vecs), rows, func(i int) {
		if i > 0 {
			t.ADDQ(reg.RSI, reg.RAX)
		}
		for disp := 0; disp < vecs*t.bytes(); disp += 64 {
			t.PREFETCHT0(operand.Mem{Base: reg.RAX, Disp: disp})
		}
	})
}

// rowOffsets loads the odd multiples of the distance between rows of A into registers, as far as
// rowOf needs them.
func (t *target) rowOffsets(rows int) {
	t.macro(fmt.Sprintf("ROW_OFFSETS_%d", rows/2), func() { t.oddMultiples(rows) })
}

func (t *target) oddMultiples(rows int) {
	t.MOVQ(t.arg(argRowA), reg.R8)
	for _, m := range []struct {
		row         int
		dst         reg.Register
		base, index reg.Register
		scale       uint8
	}{
		{3, reg.R9, reg.R8, reg.R8, 2},
		{5, reg.R10, reg.R8, reg.R8, 4},
		{7, reg.R11, reg.R9, reg.R8, 4},
		{9, reg.R12, reg.R8, reg.R8, 8},
		{11, reg.R13, reg.R9, reg.R8, 8},
		{13, reg.R15, reg.R10, reg.R8, 8},
	} {
		if rows > m.row {
			t.LEAQ(operand.Mem{Base: m.base, Index: m.index, Scale: m.scale}, m.dst)
		}
	}
}

// rowOf returns the element of A in row i at AX.
func rowOf(i int) operand.Mem {
	odd := map[int]reg.Register{1: reg.R8, 3: reg.R9, 5: reg.R10, 7: reg.R11, 9: reg.R12, 11: reg.R13, 13: reg.R15}
	m := operand.Mem{Base: reg.RAX}
	if i == 0 {
		return m
	}
	m.Scale = 1
	for i%2 == 0 {
		i /= 2
		m.Scale *= 2
	}
	m.Index = odd[i]
	return m
}

// tileEnd adds the old C and the bias and rectifies, depending on the flags, and stores the tile.
// It overwrites the registers of A and B.
func (t *target) tileEnd(k *tileKernel, at *tileLocals, rows int) {
	b := k.b(t)
	tmp, mask := b[0], k.a(t)[0]
	t.macro(k.macroName(t, "END_TILE"), func() {
		t.MOVQ(at.c, reg.RAX)
		t.MOVQ(t.arg(argRowC), reg.RSI)
		t.MOVQ(t.arg(argFlags), reg.RDX)
		t.MOVQ(t.arg(argLast), reg.RCX)
		t.lastMask(reg.RCX, mask, reg.R8)
	})
	last := func(j int) bool { return j == k.vecs-1 }
	section := func(flag uint32, label string, body func()) {
		t.TESTQ(operand.U32(flag), reg.RDX)
		t.JZ(operand.LabelRef(label))
		body()
		t.Label(label)
	}
	// each emits f for the vectors of the tile, and advances p from row to row unless it is nil.
	each := func(name string, p reg.Register, f func(i, j int)) {
		t.rowsMacro(k.macroName(t, name), rows, func(i int) {
			if p != nil && i > 0 {
				t.ADDQ(reg.RSI, p)
			}
			for j := range k.vecs {
				f(i, j)
			}
		})
	}
	section(flagAdd, "noAdd", func() {
		t.MOVQ(reg.RAX, reg.RBX)
		each("ADD_C", reg.RBX, func(i, j int) {
			acc := k.acc(t, i, j)
			if last(j) {
				t.load(tmp, t.at(reg.RBX, j), true)
				t.add(acc, acc, tmp)
			} else {
				t.add(acc, acc, t.at(reg.RBX, j))
			}
		})
	})
	section(flagBias, "noBias", func() {
		t.macro(k.macroName(t, "LOAD_BIAS"), func() {
			t.MOVQ(at.bias, reg.RBX)
			for j := range k.vecs {
				t.load(b[j], t.at(reg.RBX, j), last(j))
			}
		})
		each("ADD_BIAS", nil, func(i, j int) { t.add(k.acc(t, i, j), k.acc(t, i, j), b[j]) })
	})
	section(flagRelu, "noRelu", func() {
		t.zero(tmp)
		each("RELU", nil, func(i, j int) { t.max(k.acc(t, i, j), tmp, k.acc(t, i, j)) })
	})
	// Partial stores of vectors are slow on some processors.
	t.CMPQ(reg.RCX, operand.U8(t.lanes()))
	t.JGE(operand.LabelRef("whole"))
	each("STORE_PART", reg.RAX, func(i, j int) { t.store(t.at(reg.RAX, j), k.acc(t, i, j), last(j)) })
	t.JMP(operand.LabelRef("stored"))
	t.Label("whole")
	t.rowsMacro(fmt.Sprintf("STORE%d", k.vecs), rows, func(i int) {
		if i > 0 {
			t.ADDQ(reg.RSI, reg.RAX)
		}
		for j := range k.vecs {
			t.store(t.at(reg.RAX, j), k.acc(t, i, j), false)
		}
	})
	t.Label("stored")
}
