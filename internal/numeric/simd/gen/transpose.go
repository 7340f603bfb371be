package main

import (
	"github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lines emits the transposition of blocks of whole cache lines: 16 rows and columns of 32-bit
// elements, or 8 of 64-bit elements. Each line is read and written once. dst and src advance by
// dstStep and srcStep bytes from block to block.
func lines(t *target) {
	t.plainFunction("transposeLines", "func(dst, src *%[1]s, dstStride, srcStride, dstStep, srcStep, blocks int)",
		"transposes blocks of as many rows and columns as a vector has elements")
	t.Load(t.Param("dst"), RDI)
	t.Load(t.Param("src"), RSI)
	t.Load(t.Param("dstStride"), RDX)
	t.Load(t.Param("srcStride"), RBX)
	t.Load(t.Param("dstStep"), R9)
	t.Load(t.Param("srcStep"), R10)
	t.Load(t.Param("blocks"), RCX)
	n := t.lanes()
	a, b := zmm[:n], zmm[n:2*n]
	t.LEAQ(operand.Mem{Base: RDX, Index: RDX, Scale: 2}, R11)
	t.LEAQ(operand.Mem{Base: RBX, Index: RBX, Scale: 2}, R12)
	t.Label("block")
	// next block, for prefetching
	t.LEAQ(operand.Mem{Base: RSI, Index: R10, Scale: 1}, R8)
	t.MOVQ(RSI, RAX)
	for i := range n {
		m := operand.Mem{Base: RAX, Index: RBX, Scale: uint8(max(i%4, 1))}
		ahead := operand.Mem{Base: R8, Index: RBX, Scale: uint8(max(i%4, 1))}
		switch i % 4 {
		case 0:
			m, ahead = operand.Mem{Base: RAX}, operand.Mem{Base: R8}
		case 3:
			m, ahead = operand.Mem{Base: RAX, Index: R12, Scale: 1}, operand.Mem{Base: R8, Index: R12, Scale: 1}
		}
		t.VMOVUPS(m, a[i])
		t.PREFETCHT0(ahead)
		if i%4 == 3 {
			t.LEAQ(operand.Mem{Base: RAX, Index: RBX, Scale: 4}, RAX)
			t.LEAQ(operand.Mem{Base: R8, Index: RBX, Scale: 4}, R8)
		}
	}
	if t.bits == 32 {
		for i := 0; i < n; i += 2 {
			t.VUNPCKLPS(a[i+1], a[i], b[i])
			t.VUNPCKHPS(a[i+1], a[i], b[i+1])
		}
		for i := 0; i < n; i += 4 {
			for k := range 2 {
				t.VUNPCKLPD(b[i+2+k], b[i+k], a[i+2*k])
				t.VUNPCKHPD(b[i+2+k], b[i+k], a[i+2*k+1])
			}
		}
	} else {
		for i := 0; i < n; i += 2 {
			t.VUNPCKLPD(a[i+1], a[i], b[i])
			t.VUNPCKHPD(a[i+1], a[i], b[i+1])
		}
		a, b = b, a
	}
	// Vector i*k+j holds in each quarter an element of k rows: rows k*i to k*i+k-1, column j of
	// that quarter. For each j, the quarters form a matrix of four rows and columns.
	k := n / 4
	quarters := [4]uint8{0x44, 0xee, 0x88, 0xdd}
	for j := range k {
		low, high := b[4*j:4*j+2], b[4*j+2:4*j+4]
		for i := range 2 {
			t.VSHUFF64X2(operand.U8(quarters[0]), a[(2*i+1)*k+j], a[2*i*k+j], low[i])
			t.VSHUFF64X2(operand.U8(quarters[1]), a[(2*i+1)*k+j], a[2*i*k+j], high[i])
		}
	}
	out := make([]vec, n)
	for j := range k {
		for i := range 2 {
			pair := b[4*j+2*i : 4*j+2*i+2]
			out[2*i*k+j], out[(2*i+1)*k+j] = a[4*j+2*i], a[4*j+2*i+1]
			t.VSHUFF64X2(operand.U8(quarters[2]), pair[1], pair[0], out[2*i*k+j])
			t.VSHUFF64X2(operand.U8(quarters[3]), pair[1], pair[0], out[(2*i+1)*k+j])
		}
	}
	t.MOVQ(RDI, RAX)
	for i, v := range out {
		m := operand.Mem{Base: RAX, Index: RDX, Scale: uint8(max(i%4, 1))}
		switch i % 4 {
		case 0:
			m = operand.Mem{Base: RAX}
		case 3:
			m = operand.Mem{Base: RAX, Index: R11, Scale: 1}
		}
		t.VMOVUPS(v, m)
		if i%4 == 3 {
			t.LEAQ(operand.Mem{Base: RAX, Index: RDX, Scale: 4}, RAX)
		}
	}
	t.ADDQ(R9, RDI)
	t.ADDQ(R10, RSI)
	t.DECQ(RCX)
	t.JNZ(operand.LabelRef("block"))
	t.plainRet()
}

// transposition emits the transposition of eight rows of 16- and 32-bit elements, in squares that
// are transposed in registers. The number of columns is a multiple of eight. Strides are in bytes.
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

// squares emits a loop over squares of eight rows and columns. A row of a square has size bytes.
// turn transposes a square.
func (t *target) squares(name, elem string, size uint32, turn func(rows, columns [8]operand.Mem)) {
	t.plainFunction(name, "func(dst, src *"+elem+", dstStride, srcStride, n int)",
		"transposes the 8 rows of src to n rows of 8 elements")
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
