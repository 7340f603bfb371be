package main

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairs emits micro-kernels whose elements of A and B are pairs of bfloat16 in 32 bits, and the
// copy that combines two rows to such pairs.
func pairs(t *target) {
	for _, s := range []tileShape{{14, 1}, {14, 2}} {
		for rows := 1; rows <= s.rows; rows++ {
			name := fmt.Sprintf("pairs%dx%d%s", rows, s.vecs, t.isa.suffix())
			t.tile(tileKernel{name: name, tileShape: s, step: t.dotPairs}, rows)
		}
	}
	t.pairRows()
}

// dotPairs adds the dot products of the pairs in a and b to acc. It encodes VDPBF16PS,
// EVEX.512.F3.0F38.W0 52 /r, which Go's assembler does not support.
func (t *target) dotPairs(acc, a vec, b operand.Op) {
	number := func(r operand.Op) int {
		return slices.IndexFunc(t.regs, func(v vec) bool { return operand.Op(v) == r })
	}
	dst, src, rm := number(acc), number(a), number(b)
	not := func(n, bit int) int { return ^n >> bit & 1 }
	for _, code := range []int{
		0x62,
		not(dst, 3)<<7 | not(rm, 4)<<6 | not(rm, 3)<<5 | not(dst, 4)<<4 | 2,
		^src&15<<3 | 1<<2 | 2,
		2<<5 | not(src, 4)<<3,
		0x52,
		3<<6 | dst&7<<3 | rm&7,
	} {
		t.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(code)}})
	}
}

// pairRows emits the copy that combines two rows of bfloat16 to pairs.
func (t *target) pairRows() {
	name := "pairRows" + t.isa.suffix()
	t.begin(name, "func(dst *float32, a, b *uint16, blocks int)", "combines 16 elements of a and b per block to pairs")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("a"), reg.RSI)
	t.Load(t.Param("b"), reg.RDX)
	t.Load(t.Param("blocks"), reg.RCX)
	t.Label("block")
	t.VPMOVZXWD(operand.Mem{Base: reg.RSI}, reg.Z0)
	t.VPMOVZXWD(operand.Mem{Base: reg.RDX}, reg.Z1)
	t.VPSLLD(operand.U8(16), reg.Z1, reg.Z1)
	t.VPORD(reg.Z0, reg.Z1, reg.Z1)
	t.VMOVUPS(reg.Z1, operand.Mem{Base: reg.RDI})
	t.ADDQ(operand.U8(32), reg.RSI)
	t.ADDQ(operand.U8(32), reg.RDX)
	t.ADDQ(operand.U8(64), reg.RDI)
	t.DECQ(reg.RCX)
	t.JNZ(operand.LabelRef("block"))
	t.VZEROUPPER()
	t.RET()
}
