package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// integers emits arithmetic and comparisons of signed integers, for whole vectors.
func integers(t *target) {
	for _, op := range []struct {
		name, doc string
		ok        bool // AVX2 lacks some for 64 bits; bitwise operations need one size only
		emit      func(dst, a vec, b operand.Op)
	}{
		{"addInts", "a + b", true, func(dst, a vec, b operand.Op) { t.plus(dst, a, b) }},
		{"subInts", "a - b", true, func(dst, a vec, b operand.Op) { t.minus(dst, a, b) }},
		{"mulInts", "a * b", t.bits == 32 || t.isa == avx512, func(dst, a vec, b operand.Op) { t.pick(t.VPMULLD, t.VPMULLQ, b, a, dst) }},
		{"maxInts", "max(a, b)", t.bits == 32 || t.isa == avx512, func(dst, a vec, b operand.Op) { t.pick(t.VPMAXSD, t.VPMAXSQ, b, a, dst) }},
		{"andInts", "a and b, bitwise", t.bits == 32, func(dst, a vec, b operand.Op) { t.and(dst, a, b) }},
		{"orInts", "a or b, bitwise", t.bits == 32, func(dst, a vec, b operand.Op) { t.or(dst, a, b) }},
		{"xorInts", "a xor b, bitwise", t.bits == 32, func(dst, a vec, b operand.Op) { t.xor(dst, a, b) }},
		{"minInts", "min(a, b)", t.bits == 32 || t.isa == avx512, func(dst, a vec, b operand.Op) { t.pick(t.VPMINSD, t.VPMINSQ, b, a, dst) }},
	} {
		if !op.ok {
			continue
		}
		t.plainFunction(op.name, fmt.Sprintf("func(dst, a, b *int%d, n int)", t.bits), "dst = "+op.doc)
		t.Load(t.Param("dst"), reg.RDI)
		t.Load(t.Param("a"), reg.RSI)
		t.Load(t.Param("b"), reg.RDX)
		t.Load(t.Param("n"), reg.RCX)
		size := t.bits / 8
		t.whole(4, func(u int) {
			v := t.regs[u]
			t.mov(v, t.nth(reg.RSI, size, u, 0))
			op.emit(v, v, t.nth(reg.RDX, size, u, 0))
			t.VMOVUPS(v, t.nth(reg.RDI, size, u, 0))
		})
		t.plainRet()
	}
	if t.bits == 32 {
		t.quotients("quotients", "a / b truncated", 0, false)
		t.quotients("floorQuotients", "a / b rounded down", down, false)
		t.quotients("remainders", "a - b*(a / b truncated)", 0, true)
		t.quotients("floorRemainders", "a - b*(a / b rounded down)", down, true)
	}
	for _, p := range []struct {
		name, doc string
		pred      int
	}{{"equalInts", "a == b", 0}, {"notEqualInts", "a != b", 4}, {"lessInts", "a < b", 1}, {"lessEqualInts", "a <= b", 2}} {
		t.comparison(p.name, p.doc, fmt.Sprintf("int%d", t.bits), false, func(v vec, other operand.Op) (negated bool) {
			return t.compareInts(p.pred, v, other)
		})
	}
}

// quotients emits a division of 32-bit integers. It divides in float64. A quotient that is not an
// integer is further from an integer than the rounding error. The one that overflows becomes the
// smallest integer, which is also its wrapped value.
func (t *target) quotients(name, doc string, mode uint8, remainder bool) {
	t.plainFunction(name, "func(dst, a, b *int32, n int)", "dst = "+doc)
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("a"), reg.RSI)
	t.Load(t.Param("b"), reg.RDX)
	t.Load(t.Param("n"), reg.RCX)
	d := t.double()
	t.whole(2, func(u int) {
		for i := range 2 {
			a, b, skip := t.regs[4*u+2*i], t.regs[4*u+2*i+1], i*d.lanes()
			t.VCVTDQ2PD(t.nth(reg.RSI, 4, u, skip), a)
			t.VCVTDQ2PD(t.nth(reg.RDX, 4, u, skip), b)
			d.div(a, a, b)
			if mode != 0 {
				d.round(mode, a, a)
			}
			if t.isa == avx512 {
				t.VCVTTPD2DQ(a, t.half(a))
			} else {
				t.VCVTTPD2DQY(a, t.half(a))
			}
		}
		for i := range 2 {
			q, x, skip := t.half(t.regs[4*u+2*i]), t.half(t.regs[4*u+2*i+1]), i*d.lanes()
			if remainder {
				t.VPMULLD(t.nth(reg.RDX, 4, u, skip), q, q)
				t.VMOVUPS(t.nth(reg.RSI, 4, u, skip), x)
				t.VPSUBD(q, x, q)
			}
			t.VMOVUPS(q, t.nth(reg.RDI, 4, u, skip))
		}
	})
	t.plainRet()
}

// compareInts computes the truth of a comparison of integers for comparison. With AVX2 it may
// return the negated truth. pred is the predicate of VPCMP.
func (t *target) compareInts(pred int, v vec, other operand.Op) (negated bool) {
	if t.isa == avx512 {
		t.pick(t.VPCMPD, t.VPCMPQ, operand.U8(pred), other, v, reg.K2)
		return false
	}
	switch pred {
	case 0, 4:
		t.pick(t.VPCMPEQD, t.VPCMPEQQ, other, v, v)
		return pred == 4
	case 2: // not greater
		t.pick(t.VPCMPGTD, t.VPCMPGTQ, other, v, v)
		return true
	default: // not greater or equal
		tmp := t.regs[13]
		t.mov(tmp, other)
		t.pick(t.VPCMPGTD, t.VPCMPGTQ, v, tmp, v)
		return false
	}
}
