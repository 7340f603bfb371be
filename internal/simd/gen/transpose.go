package main

import (
	"github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// transposition emits the transposition of eight rows of 16- and 32-bit elements, a multiple of eight columns, in squares
// that are turned in registers. Strides are in bytes.
func transposition(t *target) {
	t.squares("transpose", "%[1]s", 32, func(rows, columns [8]operand.Mem) {
		a, b := ymm[:8], ymm[8:]
		for i, m := range rows {
			t.VMOVUPS(m, a[i])
		}
		for i := 0; i < 8; i += 2 {
			t.VUNPCKLPS(a[i+1], a[i], b[i])
			t.VUNPCKHPS(a[i+1], a[i], b[i+1])
		}
		for i := 0; i < 8; i += 4 {
			for k := range 2 {
				t.VSHUFPS(operand.U8(0x44), b[i+2+k], b[i+k], a[i+2*k])
				t.VSHUFPS(operand.U8(0xee), b[i+2+k], b[i+k], a[i+2*k+1])
			}
		}
		for i := range 4 {
			t.VPERM2F128(operand.U8(0x20), a[i+4], a[i], b[i])
			t.VPERM2F128(operand.U8(0x31), a[i+4], a[i], b[i+4])
		}
		for i, m := range columns {
			t.VMOVUPS(b[i], m)
		}
	})
	t.squares("transposeHalves", "uint16", 16, func(rows, columns [8]operand.Mem) {
		a, b := xmm[:8], xmm[8:]
		for i, m := range rows {
			t.VMOVDQU(m, a[i])
		}
		for i := 0; i < 8; i += 2 {
			t.VPUNPCKLWD(a[i+1], a[i], b[i])
			t.VPUNPCKHWD(a[i+1], a[i], b[i+1])
		}
		for i := 0; i < 8; i += 4 {
			for k := range 2 {
				t.VPUNPCKLDQ(b[i+2+k], b[i+k], a[i+2*k])
				t.VPUNPCKHDQ(b[i+2+k], b[i+k], a[i+2*k+1])
			}
		}
		for i := range 4 {
			t.VPUNPCKLQDQ(a[i+4], a[i], b[2*i])
			t.VPUNPCKHQDQ(a[i+4], a[i], b[2*i+1])
		}
		for i, m := range columns {
			t.VMOVDQU(b[i], m)
		}
	})
}

// squares emits a loop over squares of eight rows and columns, of so many bytes in a row, which turn writes to columns.
func (t *target) squares(name, elem string, size uint32, turn func(rows, columns [8]operand.Mem)) {
	t.plainFunction(name, "func(dst, src *"+elem+", dstStride, srcStride, n int)",
		"writes n rows of 8 elements: columns of the 8 rows of src")
	t.Load(t.Param("dst"), RDI)
	t.Load(t.Param("src"), RSI)
	t.Load(t.Param("dstStride"), RDX)
	t.Load(t.Param("srcStride"), RBX)
	t.Load(t.Param("n"), RCX)
	t.LEAQ(operand.Mem{Base: RDX, Index: RDX, Scale: 2}, R8)
	t.LEAQ(operand.Mem{Base: RBX, Index: RBX, Scale: 2}, R9)
	eight := func(base, base4, stride, stride3 Register) [8]operand.Mem {
		var m [8]operand.Mem
		for i, p := range []Register{base, base4} {
			m[4*i] = operand.Mem{Base: p}
			m[4*i+1] = operand.Mem{Base: p, Index: stride, Scale: 1}
			m[4*i+2] = operand.Mem{Base: p, Index: stride, Scale: 2}
			m[4*i+3] = operand.Mem{Base: p, Index: stride3, Scale: 1}
		}
		return m
	}
	t.Label("square")
	t.LEAQ(operand.Mem{Base: RSI, Index: RBX, Scale: 4}, R10)
	t.LEAQ(operand.Mem{Base: RDI, Index: RDX, Scale: 4}, R11)
	turn(eight(RSI, R10, RBX, R9), eight(RDI, R11, RDX, R8))
	t.ADDQ(operand.U32(size), RSI)
	t.LEAQ(operand.Mem{Base: RDI, Index: RDX, Scale: 8}, RDI)
	t.SUBQ(operand.U32(8), RCX)
	t.JG(operand.LabelRef("square"))
	t.plainRet()
}
