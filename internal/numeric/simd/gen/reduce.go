package main

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// reductions emits functions from slices to numbers.
func reductions(t *target) {
	t.dot()
	integer := fmt.Sprintf("int%d", t.bits)
	t.rows("sumIntRows", integer, "the sum of the integers in row i of a", 0, false, (*target).plus)
	if t.bits == 32 {
		t.rows("maxIntRows", integer, "the largest integer of row i of a", 1<<31, false, func(t *target, dst, a vec, b operand.Op) { t.VPMAXSD(b, a, dst) })
		t.rows("minIntRows", integer, "the smallest integer of row i of a", 1<<31-1, false, func(t *target, dst, a vec, b operand.Op) { t.VPMINSD(b, a, dst) })
	}
	t.rows("sumRows", t.elem(), "the sum of row i of a", 0, false, (*target).add)
	t.rows("prodRows", t.elem(), "the product of row i of a", t.float(1), false, (*target).mul)
	t.rows("maxRows", t.elem(), "the largest element of row i of a, NaN if any element is NaN", negInf(t), true, (*target).max)
	t.rows("minRows", t.elem(), "the smallest element of row i of a, NaN if any element is NaN", posInf(t), true, (*target).min)
}

func negInf(t *target) uint64 { return posInf(t) | signBit(t) }
func posInf(t *target) uint64 { return map[int]uint64{32: 0xff << 23, 64: 0x7ff << 52}[t.bits] }
func nan(t *target) uint64    { return posInf(t) | 1<<map[int]int{32: 22, 64: 51}[t.bits] }

// dot emits a sum of products, in eight independent parts.
func (t *target) dot() {
	t.function("dot", "func(a, b *%[1]s, n int) %[1]s", "returns the sum of a*b")
	t.Load(t.Param("a"), reg.RDI)
	t.Load(t.Param("b"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	const parts = 8
	acc, a, b, mask := t.regs[:parts], t.regs[parts], t.regs[parts+1], t.regs[parts+2]
	for _, v := range acc {
		t.zero(v)
	}
	t.loop(parts, mask, func(disp int, masked bool) {
		t.load(a, operand.Mem{Base: reg.RDI, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		t.load(b, operand.Mem{Base: reg.RSI, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		t.fma(acc[disp/t.bytes()], a, b)
	})
	t.merge(acc, t.add)
	t.horizontal(acc[0], t.add)
	t.retScalar(acc[0])
}

// rows emits a function that folds each row of a matrix, in eight independent parts that start with
// start. Rows too short for eight parts are folded in one, and neighbouring rows overlap in time.
// With findNaN, the function also detects NaN, which op may lose.
func (t *target) rows(name, elem, doc string, start uint64, findNaN bool, op func(*target, vec, vec, operand.Op)) {
	t.function(name, "func(dst, a *"+elem+", rows, cols int)", "dst[i] = "+doc)
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("a"), reg.RSI)
	t.Load(t.Param("rows"), reg.RDX)
	t.Load(t.Param("cols"), reg.RBX)
	const parts = 8
	fold := func(dst, a vec, b operand.Op) { op(t, dst, a, b) }
	acc, odd, x, tmp, first, mask := t.regs[:parts], t.regs[parts], t.regs[parts+1], t.regs[parts+2], t.regs[parts+3], t.regs[parts+4]
	t.broadcast(first, t.constant(start))
	each := func(disp int, masked bool) {
		t.load(x, operand.Mem{Base: reg.RSI, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		if masked && start != 0 {
			t.fillRest(x, first)
		}
		a := acc[disp/t.bytes()]
		fold(a, a, x)
		if findNaN {
			t.choose(odd, unordered, x, x, x, tmp)
		}
	}
	t.Label("row")
	t.zero(odd)
	t.MOVQ(reg.RBX, reg.RCX)
	t.CMPQ(reg.RCX, operand.U32(uint32(parts*t.lanes())))
	t.JGE(operand.LabelRef("long"))
	t.mov(acc[0], first)
	t.namedLoop("Short", 1, mask, each)
	t.JMP(operand.LabelRef("across"))
	t.Label("long")
	for _, a := range acc {
		t.mov(a, first)
	}
	t.loop(parts, mask, each)
	t.merge(acc, fold)
	t.Label("across")
	t.horizontal(acc[0], fold)
	if findNaN {
		// odd is zero unless some element was NaN. In that case its sum is NaN, and so is the
		// result plus that sum.
		t.horizontal(odd, t.add)
		t.pick(t.VADDSS, t.VADDSD, xmm[t.index(odd)], xmm[t.index(acc[0])], xmm[t.index(acc[0])])
	}
	t.pick(t.VMOVSS, t.VMOVSD, xmm[t.index(acc[0])], operand.Mem{Base: reg.RDI})
	t.ADDQ(operand.U32(uint32(t.bits/8)), reg.RDI)
	t.LEAQ(operand.Mem{Base: reg.RSI, Index: reg.RBX, Scale: uint8(t.bits / 8)}, reg.RSI)
	t.DECQ(reg.RDX)
	t.JNZ(operand.LabelRef("row"))
	t.ret()
}

// merge folds the registers into the first one.
func (t *target) merge(acc []vec, op func(dst, a vec, b operand.Op)) {
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			op(acc[i], acc[i], acc[i+n])
		}
	}
}

// horizontal folds the elements of v, one of the first fifteen registers, into its lowest one.
func (t *target) horizontal(v vec, op func(dst, a vec, b operand.Op)) {
	i, half := t.index(v), 15
	if t.isa == avx512 {
		t.VEXTRACTF64X4(operand.U8(1), zmm[i], ymm[half])
		op(ymm[i], ymm[i], ymm[half])
	}
	t.VEXTRACTF128(operand.U8(1), ymm[i], xmm[half])
	op(xmm[i], xmm[i], xmm[half])
	t.VPERMILPS(operand.U8(0x4e), xmm[i], xmm[half])
	op(xmm[i], xmm[i], xmm[half])
	if t.bits == 32 {
		t.VPERMILPS(operand.U8(0xb1), xmm[i], xmm[half])
		op(xmm[i], xmm[i], xmm[half])
	}
}

// retScalar returns the lowest element of v.
func (t *target) retScalar(v vec) {
	t.LDMXCSR(t.mxcsr)
	t.VZEROUPPER()
	t.Store(xmm[t.index(v)], t.ReturnIndex(0))
	t.RET()
}

func (t *target) index(v vec) int { return slices.Index(t.regs, v) }
