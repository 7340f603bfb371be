package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Byte offsets in tile.Args.
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

// Bits of tile.Args.Flags.
const (
	flagAdd  = 1
	flagBias = 2
	flagRelu = 4
)

// tileShape is the largest tile with a given number of vectors per row.
type tileShape struct{ rows, vecs int }

// tileShapes fill the registers: rows*vecs accumulators, vecs for a row of B and one or two for
// elements of A.
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
			t.tile(fmt.Sprintf("tile%dx%dx%d%s", rows, s.vecs, t.bits, t.isa.suffix()), rows, s.vecs, t.fma, t.fmaAlone())
		}
	}
}

// fmaAlone is fma with one element of A in memory, spread over the vector. A tile of one vector
// loads an element for each product, of which the processor does more in this way than with a
// register between.
func (t *target) fmaAlone() func(acc, b vec, a operand.Op) {
	if t.isa != avx512 {
		return nil
	}
	return func(acc, b vec, a operand.Op) { t.pick(t.VFMADD231PS_BCST, t.VFMADD231PD_BCST, a, b, acc) }
}

// tile emits one micro-kernel, which computes tiles one after another; step is what it does with
// elements of A and B, and alone the same for a single vector of B and an element in memory, if
// there is such an instruction. AX points into A, BX into B, BP to what is asked for ahead, R14 at
// a time, DI to the arguments; the stack has the number of tiles left and their places.
func (t *target) tile(name string, rows, vecs int, step func(acc, a vec, b operand.Op), alone func(acc, b vec, a operand.Op)) {
	t.Function(name)
	t.Attributes(attr.NOSPLIT)
	t.SignatureExpr("func(args *byte)")
	t.Doc(fmt.Sprintf("%s: tiles of %d rows and %d vectors of float%d.", name, rows, vecs, t.bits))
	t.Pragma("noescape")
	t.denormalsAreZero()
	left, outer, tileA, tileB, tileC, tileBias, tileAhead := t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8), t.AllocLocal(8)
	t.Load(t.Param("args"), reg.RDI)
	t.copy(left, t.arg(argTiles))
	t.copy(tileA, t.arg(argA))
	t.copy(tileB, t.arg(argB))
	t.copy(tileC, t.arg(argC))
	t.copy(tileBias, t.arg(argBias))
	t.copy(tileAhead, t.arg(argAhead))

	acc := func(i, j int) vec { return t.regs[i*vecs+j] }
	b := t.regs[rows*vecs:][:vecs]
	a := t.regs[(rows+1)*vecs:][:min(2, len(t.regs)-(rows+1)*vecs)]
	t.Label("tile")
	for i := range rows * vecs {
		t.zero(t.regs[i])
	}
	t.prefetchTile(tileC, rows, vecs)
	t.copy(outer, t.arg(argOuter))
	t.MOVQ(tileA, reg.RAX)
	t.MOVQ(tileB, reg.RBX)
	t.MOVQ(t.arg(argStepA), reg.RDX)
	t.MOVQ(t.arg(argStepB), reg.RSI)
	t.MOVQ(t.arg(argStepAhead), reg.R14)
	t.MOVQ(tileAhead, reg.RBP)
	t.rowOffsets(rows)

	t.Label("outer")
	t.MOVQ(t.arg(argK), reg.RCX)
	// Two steps in a turn, for the instructions between them are what a core lacks time for when it
	// runs another thread, too. An odd number of steps begins with the second.
	t.INCQ(reg.RCX)
	t.SHRQ(operand.U8(1), reg.RCX)
	t.JCC(operand.LabelRef("second"))
	for _, label := range []string{"first", "second"} {
		t.Label(label)
		for j := range vecs {
			t.VMOVUPS(t.at(reg.RBX, j), b[j])
		}
		for i := range rows {
			x := rowOf(i)
			if vecs == 1 && alone != nil {
				alone(acc(i, 0), b[0], x)
				continue
			}
			t.broadcast(a[i%len(a)], x)
			for j := range vecs {
				step(acc(i, j), a[i%len(a)], b[j])
			}
		}
		t.PREFETCHT1(operand.Mem{Base: reg.RBP})
		t.ADDQ(reg.R14, reg.RBP)
		t.ADDQ(reg.RDX, reg.RAX)
		t.ADDQ(reg.RSI, reg.RBX)
	}
	t.DECQ(reg.RCX)
	t.JNZ(operand.LabelRef("first"))
	t.ADDQ(t.arg(argNextA), reg.RAX)
	t.ADDQ(t.arg(argNextB), reg.RBX)
	t.DECQ(outer)
	t.JNZ(operand.LabelRef("outer"))

	t.tileEnd(tileC, tileBias, rows, vecs, acc, b, a)
	t.advance(tileA, t.arg(argTileA))
	t.advance(tileB, t.arg(argTileB))
	t.advance(tileBias, t.arg(argTileBias))
	t.advance(tileC, t.arg(argTileC))
	t.advance(tileAhead, t.arg(argTileAhead))
	t.DECQ(left)
	t.JNZ(operand.LabelRef("tile"))
	t.ret()
}

// copy and advance set the memory dst to src, and add src to it.
func (t *target) copy(dst, src operand.Mem) {
	t.MOVQ(src, reg.RAX)
	t.MOVQ(reg.RAX, dst)
}

func (t *target) advance(dst, src operand.Mem) {
	t.MOVQ(src, reg.RAX)
	t.ADDQ(reg.RAX, dst)
}

func (t *target) arg(offset int) operand.Mem { return operand.Mem{Base: reg.RDI, Disp: offset} }

// prefetchTile asks for the tile of C, which the end reads or overwrites.
func (t *target) prefetchTile(c operand.Mem, rows, vecs int) {
	t.MOVQ(c, reg.RAX)
	t.MOVQ(t.arg(argRowC), reg.RSI)
	for i := range rows {
		for disp := 0; disp < vecs*t.bytes(); disp += 64 {
			t.PREFETCHT0(operand.Mem{Base: reg.RAX, Disp: disp})
		}
		if i < rows-1 {
			t.ADDQ(reg.RSI, reg.RAX)
		}
	}
}

// rowOffsets puts the odd multiples of the distance between rows of A, as far as rowOf needs them,
// into registers.
func (t *target) rowOffsets(rows int) {
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

// rowOf is the element of A in row i at AX.
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

// tileEnd adds the old C, the bias and the rectifier as the flags say, and stores the tile. b and a
// are free by now.
func (t *target) tileEnd(c, bias operand.Mem, rows, vecs int, acc func(i, j int) vec, b, a []vec) {
	tmp, mask := b[0], a[0]
	t.MOVQ(c, reg.RAX)
	t.MOVQ(t.arg(argRowC), reg.RSI)
	t.MOVQ(t.arg(argFlags), reg.RDX)
	t.MOVQ(t.arg(argLast), reg.RCX)
	t.lastMask(reg.RCX, mask, reg.R8)
	last := func(j int) bool { return j == vecs-1 }
	each := func(f func(i, j int)) {
		for i := range rows {
			for j := range vecs {
				f(i, j)
			}
		}
	}
	section := func(flag uint32, label string, body func()) {
		t.TESTQ(operand.U32(flag), reg.RDX)
		t.JZ(operand.LabelRef(label))
		body()
		t.Label(label)
	}
	walk := func(p reg.Register, f func(i, j int)) {
		for i := range rows {
			for j := range vecs {
				f(i, j)
			}
			if i < rows-1 {
				t.ADDQ(reg.RSI, p)
			}
		}
	}
	section(flagAdd, "noAdd", func() {
		t.MOVQ(reg.RAX, reg.RBX)
		walk(reg.RBX, func(i, j int) {
			if last(j) {
				t.load(tmp, t.at(reg.RBX, j), true)
				t.add(acc(i, j), acc(i, j), tmp)
			} else {
				t.add(acc(i, j), acc(i, j), t.at(reg.RBX, j))
			}
		})
	})
	section(flagBias, "noBias", func() {
		t.MOVQ(bias, reg.RBX)
		for j := range vecs {
			t.load(b[j], t.at(reg.RBX, j), last(j))
		}
		each(func(i, j int) { t.add(acc(i, j), acc(i, j), b[j]) })
	})
	section(flagRelu, "noRelu", func() {
		t.zero(tmp)
		each(func(i, j int) { t.max(acc(i, j), tmp, acc(i, j)) })
	})
	// Stores of a part of a vector are slow on some processors.
	t.CMPQ(reg.RCX, operand.U8(t.lanes()))
	t.JGE(operand.LabelRef("whole"))
	walk(reg.RAX, func(i, j int) { t.store(t.at(reg.RAX, j), acc(i, j), last(j)) })
	t.JMP(operand.LabelRef("stored"))
	t.Label("whole")
	walk(reg.RAX, func(i, j int) { t.store(t.at(reg.RAX, j), acc(i, j), false) })
	t.Label("stored")
}
