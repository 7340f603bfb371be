package main

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// reductions emits functions from slices to one number.
func reductions(t *target) {
	t.sum("sum", "returns the sum of a", "a")
	t.sum("dot", "returns the sum of a*b", "a", "b")
	t.extreme("maxOf", "returns the largest element, not a number if any is", negInf(t), (*target).max)
	t.extreme("minOf", "returns the smallest element, not a number if any is", posInf(t), (*target).min)
}

func negInf(t *target) uint64 { return posInf(t) | signBit(t) }
func posInf(t *target) uint64 { return map[int]uint64{32: 0xff << 23, 64: 0x7ff << 52}[t.bits] }
func nan(t *target) uint64    { return posInf(t) | 1<<map[int]int{32: 22, 64: 51}[t.bits] }

// sum emits a sum of elements or of products, in eight independent parts.
func (t *target) sum(name, doc string, in ...string) {
	params := in[0]
	for _, p := range in[1:] {
		params += ", " + p
	}
	t.function(name, fmt.Sprintf("func(%s *%%[1]s, n int) %%[1]s", params), doc)
	for i, p := range in {
		t.Load(t.Param(p), pointers[i])
	}
	t.Load(t.Param("n"), reg.RCX)
	const parts = 8
	acc, x, mask := t.regs[:parts], t.regs[parts:parts+2], t.regs[parts+2]
	for _, a := range acc {
		t.zero(a)
	}
	t.loop(parts, mask, func(disp int, masked bool) {
		a := acc[disp/t.bytes()]
		for i := range in {
			t.load(x[i], operand.Mem{Base: pointers[i], Index: reg.R8, Scale: 1, Disp: disp}, masked)
		}
		if len(in) == 1 {
			t.add(a, a, x[0])
		} else {
			t.fma(a, x[0], x[1])
		}
	})
	t.merge(acc, t.add)
	t.horizontal(acc[0], t.add)
	t.retScalar(acc[0])
}

// extreme emits max or min. The instruction loses elements that are not numbers; a second accumulator finds them.
func (t *target) extreme(name, doc string, start uint64, op func(*target, vec, vec, operand.Op)) {
	t.function(name, "func(a *%[1]s, n int) %[1]s", doc)
	t.Load(t.Param("a"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	const parts = 4
	fold := func(dst, a vec, b operand.Op) { op(t, dst, a, b) }
	acc, odd, x, tmp, first, mask := t.regs[:parts], t.regs[4], t.regs[5], t.regs[6], t.regs[7], t.regs[8]
	t.broadcast(first, t.constant(start))
	for _, a := range acc {
		t.mov(a, first)
	}
	t.zero(odd)
	t.loop(parts, mask, func(disp int, masked bool) {
		m := operand.Mem{Base: reg.RSI, Index: reg.R8, Scale: 1, Disp: disp}
		t.load(x, m, masked)
		if masked {
			t.fillRest(x, first)
		}
		a := acc[disp/t.bytes()]
		fold(a, a, x)
		t.choose(odd, unordered, x, x, x, tmp)
	})
	t.merge(acc, fold)
	t.horizontal(acc[0], fold)
	// odd holds zeros unless something was not a number; its sum then is not a number, nor is the result plus that.
	t.horizontal(odd, t.add)
	t.pick(t.VADDSS, t.VADDSD, xmm[t.index(odd)], xmm[t.index(acc[0])], xmm[t.index(acc[0])])
	t.retScalar(acc[0])
}

// merge folds the registers into the first of them.
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
