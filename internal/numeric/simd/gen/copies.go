package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// longRow is from where on a row is copied by the processor's own instruction, which need not read
// what it overwrites: a fifth less time for megabytes.
const longRow = 2048

// copies emits the copy of rows of bytes, and the copy of elements in opposite order.
func copies(t *target) {
	t.copyRows()
	t.reverse()
}

func (t *target) copyRows() {
	t.plainFunction("copyRows", "func(dst, src *byte, dstStride, srcStride, rows, size int)", "copies rows of size bytes, at least 4")
	dst, src, n, at := reg.RDI, reg.RSI, reg.RCX, reg.R8
	dstStride, srcStride, rows, size := reg.RDX, reg.RBX, reg.R9, reg.R10
	t.Load(t.Param("dst"), dst)
	t.Load(t.Param("src"), src)
	t.Load(t.Param("dstStride"), dstStride)
	t.Load(t.Param("srcStride"), srcStride)
	t.Load(t.Param("rows"), rows)
	t.Load(t.Param("size"), size)
	t.CMPQ(size, operand.U32(longRow))
	t.JGE(operand.LabelRef("long"))
	t.CMPQ(size, operand.U32(uint32(t.bytes())))
	t.JGE(operand.LabelRef("row"))
	next := func(row string) {
		t.ADDQ(dstStride, dst)
		t.ADDQ(srcStride, src)
		t.DECQ(rows)
		t.JNZ(operand.LabelRef(row))
		t.plainRet()
	}

	// Rows of less than a vector are two parts that overlap.
	if t.isa == avx512 {
		t.CMPQ(size, operand.U32(32))
		t.JGE(operand.LabelRef("row32"))
	}
	t.CMPQ(size, operand.U32(16))
	t.JGE(operand.LabelRef("row16"))
	t.CMPQ(size, operand.U32(8))
	t.JGE(operand.LabelRef("row8"))
	last := func(base reg.Register, n int) operand.Mem {
		return operand.Mem{Base: base, Index: size, Scale: 1, Disp: -n}
	}
	t.Label("row4")
	t.MOVL(operand.Mem{Base: src}, reg.EAX)
	t.MOVL(last(src, 4), reg.R11L)
	t.MOVL(reg.EAX, operand.Mem{Base: dst})
	t.MOVL(reg.R11L, last(dst, 4))
	next("row4")
	t.Label("row8")
	t.MOVQ(operand.Mem{Base: src}, reg.RAX)
	t.MOVQ(last(src, 8), reg.R11)
	t.MOVQ(reg.RAX, operand.Mem{Base: dst})
	t.MOVQ(reg.R11, last(dst, 8))
	next("row8")
	t.Label("row16")
	two := func(size int, v, w vec) {
		t.VMOVUPS(operand.Mem{Base: src}, v)
		t.VMOVUPS(last(src, size), w)
		t.VMOVUPS(v, operand.Mem{Base: dst})
		t.VMOVUPS(w, last(dst, size))
	}
	two(16, xmm[0], xmm[1])
	next("row16")
	if t.isa == avx512 {
		t.Label("row32")
		two(32, ymm[0], ymm[1])
		next("row32")
	}

	// So are rows of up to two vectors, and of up to four.
	t.Label("row")
	t.CMPQ(size, operand.U32(uint32(2*t.bytes())))
	t.JG(operand.LabelRef("fours"))
	t.Label("row2")
	two(t.bytes(), t.regs[0], t.regs[1])
	next("row2")
	t.Label("fours")
	t.CMPQ(size, operand.U32(uint32(4*t.bytes())))
	t.JG(operand.LabelRef("rows"))
	t.Label("row4v")
	t.VMOVUPS(operand.Mem{Base: src}, t.regs[0])
	t.VMOVUPS(operand.Mem{Base: src, Disp: t.bytes()}, t.regs[1])
	t.VMOVUPS(last(src, 2*t.bytes()), t.regs[2])
	t.VMOVUPS(last(src, t.bytes()), t.regs[3])
	t.VMOVUPS(t.regs[0], operand.Mem{Base: dst})
	t.VMOVUPS(t.regs[1], operand.Mem{Base: dst, Disp: t.bytes()})
	t.VMOVUPS(t.regs[2], last(dst, 2*t.bytes()))
	t.VMOVUPS(t.regs[3], last(dst, t.bytes()))
	next("row4v")

	// Others are vectors of which the last overlaps the one before.
	block := operand.U32(uint32(4 * t.bytes()))
	t.Label("rows")
	t.XORQ(at, at)
	t.MOVQ(size, n)
	t.SUBQ(block, n)
	t.JL(operand.LabelRef("rest"))
	t.Label("block")
	mem := func(base reg.Register, u int) operand.Mem {
		return operand.Mem{Base: base, Index: at, Scale: 1, Disp: u * t.bytes()}
	}
	for u := range 4 {
		t.VMOVUPS(mem(src, u), t.regs[u])
	}
	for u := range 4 {
		t.VMOVUPS(t.regs[u], mem(dst, u))
	}
	t.ADDQ(block, at)
	t.SUBQ(block, n)
	t.JGE(operand.LabelRef("block"))
	t.Label("rest")
	t.ADDQ(operand.U32(uint32(3*t.bytes())), n)
	t.JL(operand.LabelRef("tail"))
	t.Label("single")
	t.VMOVUPS(mem(src, 0), t.regs[0])
	t.VMOVUPS(t.regs[0], mem(dst, 0))
	t.ADDQ(operand.U32(uint32(t.bytes())), at)
	t.SUBQ(operand.U32(uint32(t.bytes())), n)
	t.JGE(operand.LabelRef("single"))
	t.Label("tail")
	t.CMPQ(n, operand.I32(int32(-t.bytes())))
	t.JEQ(operand.LabelRef("whole"))
	t.VMOVUPS(last(src, t.bytes()), t.regs[0])
	t.VMOVUPS(t.regs[0], last(dst, t.bytes()))
	t.Label("whole")
	next("rows")

	t.Label("long")
	t.MOVQ(dst, reg.R11)
	t.MOVQ(src, at)
	// dst, src and n are where the instruction wants them
	t.MOVQ(size, n)
	// REP MOVSB, which the library that writes assembly does not know
	for _, code := range []uint8{0xf3, 0xa4} {
		t.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(code)}})
	}
	t.MOVQ(reg.R11, dst)
	t.MOVQ(at, src)
	next("long")
}

func (t *target) reverse() {
	backwards := operand.Mem{Symbol: operand.Symbol{Name: "backwards", Static: true}, Base: reg.StaticBase}
	t.StaticGlobal(backwards.Symbol.Name)
	t.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range t.lanes() {
		t.AppendDatum(operand.U32(uint32(t.lanes() - 1 - i)))
	}
	t.plainFunction("reverse", "func(dst, src *%[1]s, n int)", "dst = src in opposite order, for a multiple of 16")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("src"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	order := t.regs[1]
	t.VMOVUPS(backwards, order)
	t.LEAQ(operand.Mem{Base: reg.RSI, Index: reg.RCX, Scale: 4, Disp: -t.bytes()}, reg.RSI)
	t.Label("vector")
	t.VPERMD(operand.Mem{Base: reg.RSI}, order, t.regs[0])
	t.VMOVUPS(t.regs[0], operand.Mem{Base: reg.RDI})
	t.SUBQ(operand.U32(uint32(t.bytes())), reg.RSI)
	t.ADDQ(operand.U32(uint32(t.bytes())), reg.RDI)
	t.SUBQ(operand.U32(uint32(t.lanes())), reg.RCX)
	t.JG(operand.LabelRef("vector"))
	t.plainRet()
}
