package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packs emits the copies of matrices into panels. A panel holds whole vectors of every row, one
// after another.
func packs(t *target) {
	for _, vecs := range []int{1, 2, 3, 4} {
		t.packRows(vecs)
	}
	t.packColumns()
}

// packFunction starts a function and loads the common parameters.
func (t *target) packFunction(name, params, doc string) {
	t.begin(name+t.isa.suffix(), fmt.Sprintf(params, t.elem()), doc)
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("src"), reg.RSI)
	t.Load(t.Param("dstRow"), reg.RDX)
	t.Load(t.Param("srcRow"), reg.RBX)
}

// packRows emits the copy of rows of vecs vectors. The last vector has last elements and is padded
// with zeros.
func (t *target) packRows(vecs int) {
	t.packFunction(fmt.Sprintf("packRows%dx%d", vecs, t.bits),
		"func(dst, src *%[1]s, dstRow, srcRow, rows, last int)",
		fmt.Sprintf("copies rows of %s and pads the last vector, of last elements, with zeros; dstRow and srcRow are in bytes", plural(vecs, "vector")))
	t.Load(t.Param("rows"), reg.R11)
	t.Load(t.Param("last"), reg.RCX)
	t.lastMask(reg.RCX, t.regs[15], reg.RAX)
	t.Label("row")
	for j := range vecs {
		t.load(t.regs[j], t.at(reg.RSI, j), j == vecs-1)
	}
	for j := range vecs {
		t.store(t.at(reg.RDI, j), t.regs[j], false)
	}
	t.ADDQ(reg.RBX, reg.RSI)
	t.ADDQ(reg.RDX, reg.RDI)
	t.DECQ(reg.R11)
	t.JNZ(operand.LabelRef("row"))
	t.VZEROUPPER()
	t.RET()
}

// packColumns emits the transposition of up to as many rows as a vector has elements: element k of
// row i becomes dst[k][i].
func (t *target) packColumns() {
	t.packFunction(fmt.Sprintf("packColumns%d", t.bits),
		"func(dst, src *%[1]s, dstRow, srcRow, rows, k int)",
		"dst[j][i] = element j < k of row i < rows, padded with zeros to a whole vector; dstRow and srcRow are in bytes")
	t.Load(t.Param("rows"), reg.R9)
	t.Load(t.Param("k"), reg.RCX)
	n := t.lanes()
	in := t.regs[:n]
	t.Label("block")
	for _, r := range in {
		t.zero(r)
	}
	// The transposition needs the mask register as scratch, so it holds the mask only while
	// loading.
	t.lastMask(reg.RCX, t.regs[len(t.regs)-1], reg.RAX)
	t.MOVQ(reg.RSI, reg.R10)
	t.MOVQ(reg.R9, reg.R11)
	for i, r := range in {
		t.load(r, operand.Mem{Base: reg.R10}, true)
		if i < n-1 {
			t.ADDQ(reg.RBX, reg.R10)
			t.DECQ(reg.R11)
			t.JZ(operand.LabelRef("loaded"))
		}
	}
	t.Label("loaded")
	for i, r := range t.transpose(in, t.regs[n:2*n]) {
		t.store(operand.Mem{Base: reg.RDI}, r, false)
		if i < n-1 {
			t.DECQ(reg.RCX)
			t.JZ(operand.LabelRef("done"))
		} else {
			t.DECQ(reg.RCX)
		}
		t.ADDQ(reg.RDX, reg.RDI)
	}
	t.ADDQ(operand.U32(uint32(t.bytes())), reg.RSI)
	t.TESTQ(reg.RCX, reg.RCX)
	t.JNZ(operand.LabelRef("block"))
	t.Label("done")
	t.VZEROUPPER()
	t.RET()
}

// transpose emits the transposition of the square of the vectors in, and returns the registers of
// the result's rows. It overwrites in and tmp.
func (t *target) transpose(in, tmp []vec) []vec {
	if t.bits == 32 {
		// Combine pairs of rows to pairs of elements, and then transpose 64-bit elements.
		for i := 0; i < len(in); i += 2 {
			t.VUNPCKLPS(in[i+1], in[i], tmp[i])
			t.VUNPCKHPS(in[i+1], in[i], tmp[i+1])
		}
		in, tmp = tmp, in
		for g := 0; g < len(in); g += 4 {
			for h := range 2 {
				t.VUNPCKLPD(in[g+2+h], in[g+h], tmp[g+2*h])
				t.VUNPCKHPD(in[g+2+h], in[g+h], tmp[g+2*h+1])
			}
		}
		in, tmp = tmp, in
		return t.transposeQuarters(in, tmp, 4)
	}
	for i := 0; i < len(in); i += 2 {
		t.VUNPCKLPD(in[i+1], in[i], tmp[i])
		t.VUNPCKHPD(in[i+1], in[i], tmp[i+1])
	}
	return t.transposeQuarters(tmp, in, 2)
}

// transposeQuarters finishes a transposition. With n elements per quarter, register g*n+j holds in
// its 128-bit quarter q the columns q*n+j of the rows g*n to g*n+n-1.
func (t *target) transposeQuarters(in, tmp []vec, n int) []vec {
	out := make([]vec, len(in))
	for j := range n {
		if t.isa == avx2 {
			a, b := in[j], in[n+j]
			t.VPERM2F128(operand.U8(0x20), b, a, tmp[j])
			t.VPERM2F128(operand.U8(0x31), b, a, tmp[n+j])
			out[j], out[n+j] = tmp[j], tmp[n+j]
			continue
		}
		r := [4]vec{in[j], in[n+j], in[2*n+j], in[3*n+j]}
		s := [4]vec{tmp[j], tmp[n+j], tmp[2*n+j], tmp[3*n+j]}
		const even, odd = 0x88, 0xdd
		t.VSHUFF32X4(operand.U8(even), r[1], r[0], s[0])
		t.VSHUFF32X4(operand.U8(odd), r[1], r[0], s[1])
		t.VSHUFF32X4(operand.U8(even), r[3], r[2], s[2])
		t.VSHUFF32X4(operand.U8(odd), r[3], r[2], s[3])
		t.VSHUFF32X4(operand.U8(even), s[2], s[0], r[0])
		t.VSHUFF32X4(operand.U8(even), s[3], s[1], r[1])
		t.VSHUFF32X4(operand.U8(odd), s[2], s[0], r[2])
		t.VSHUFF32X4(operand.U8(odd), s[3], s[1], r[3])
		for q := range 4 {
			out[q*n+j] = r[q]
		}
	}
	return out
}
