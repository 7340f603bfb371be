package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// matrixVector emits products of a matrix and a vector. They read the matrix once, in memory order.
func matrixVector(t *target) {
	t.addRows()
	t.dotRows()
	t.addListed()
}

// addListed emits y += the sum of coef[i]*(row list[i] of x), for four vectors of all rows at a
// time, then for single ones.
func (t *target) addListed() {
	t.function("addListed", "func(y, x *%[1]s, list *int64, stride int, coef *%[1]s, rows, n int)",
		"y += the sum over i < rows of coef[i] times the row of x whose number is stride*i bytes into list; rows have n elements")
	y, x, list, stride, coef, rows, left, at := reg.RDI, reg.RSI, reg.RDX, reg.RBX, reg.R9, reg.R10, reg.RCX, reg.R8
	t.Load(t.Param("y"), y)
	t.Load(t.Param("x"), x)
	t.Load(t.Param("list"), list)
	t.Load(t.Param("stride"), stride)
	t.Load(t.Param("coef"), coef)
	t.Load(t.Param("rows"), rows)
	t.Load(t.Param("n"), left)
	const vecs = 4
	sums, c, tmp, mask := t.regs[:vecs], t.regs[vecs], t.regs[vecs+1], t.regs[vecs+2]
	mem := func(base, index reg.Register, v int) operand.Mem {
		return operand.Mem{Base: base, Index: index, Scale: 1, Disp: v * t.bytes()}
	}
	// columns adds the given number of vectors of all rows, from byte at on.
	columns := func(label string, vecs int, masked bool) {
		number, factor, count, width, row := reg.R11, reg.R12, reg.R14, reg.R13, reg.RAX
		for v := range vecs {
			t.load(sums[v], mem(y, at, v), masked)
		}
		t.MOVQ(list, number)
		t.MOVQ(coef, factor)
		t.MOVQ(rows, count)
		t.Load(t.Param("n"), width)
		t.Label(label)
		t.MOVQ(operand.Mem{Base: number}, row)
		t.IMULQ(width, row)
		t.LEAQ(operand.Mem{Base: x, Index: row, Scale: uint8(t.bits / 8)}, row)
		t.broadcast(c, operand.Mem{Base: factor})
		for v := range vecs {
			t.fmaFrom(sums[v], c, mem(row, at, v), tmp, masked)
		}
		t.ADDQ(stride, number)
		t.ADDQ(operand.U32(uint32(t.bits/8)), factor)
		t.DECQ(count)
		t.JNZ(operand.LabelRef(label))
		for v := range vecs {
			t.store(mem(y, at, v), sums[v], masked)
		}
	}
	step := operand.U32(uint32(vecs * t.lanes()))
	t.XORQ(at, at)
	t.SUBQ(step, left)
	t.JL(operand.LabelRef("rest"))
	t.Label("block")
	columns("blockRow", vecs, false)
	t.ADDQ(operand.U32(uint32(vecs*t.bytes())), at)
	t.SUBQ(step, left)
	t.JGE(operand.LabelRef("block"))
	t.Label("rest")
	t.ADDQ(step, left)
	t.JZ(operand.LabelRef("done"))
	t.Label("single")
	t.lastMask(left, mask, reg.RAX)
	columns("singleRow", 1, true)
	t.ADDQ(operand.U32(uint32(t.bytes())), at)
	t.SUBQ(operand.U32(uint32(t.lanes())), left)
	t.JG(operand.LabelRef("single"))
	t.Label("done")
	t.ret()
}

// addRows emits y += the sum of coef[i]*(row i of x), for four rows at a time.
func (t *target) addRows() {
	t.function("addRows", "func(y, x *%[1]s, stride int, coef *%[1]s, fours, n int)",
		"y += the sum over i < 4*fours of coef[i] times row i of x, whose rows are stride bytes apart")
	t.Load(t.Param("y"), reg.RDI)
	t.Load(t.Param("x"), reg.RSI)
	t.Load(t.Param("stride"), reg.RDX)
	t.Load(t.Param("coef"), reg.RBX)
	t.Load(t.Param("fours"), reg.R11)
	const unroll = 2
	coef, y, x, mask := t.regs[:4], t.regs[4], t.regs[5], t.regs[6]
	rows := []reg.Register{reg.RSI, reg.R9, reg.R10, reg.R12}
	t.Label("four")
	for i, c := range coef {
		t.broadcast(c, operand.Mem{Base: reg.RBX, Disp: i * t.bits / 8})
		if i > 0 {
			t.LEAQ(operand.Mem{Base: rows[i-1], Index: reg.RDX, Scale: 1}, rows[i])
		}
	}
	t.Load(t.Param("n"), reg.RCX)
	t.loop(unroll, mask, func(disp int, masked bool) {
		t.load(y, operand.Mem{Base: reg.RDI, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		for i, c := range coef {
			m := operand.Mem{Base: rows[i], Index: reg.R8, Scale: 1, Disp: disp}
			if masked {
				t.load(x, m, true)
				t.fma(y, c, x)
			} else {
				t.fma(y, c, m)
			}
		}
		t.store(operand.Mem{Base: reg.RDI, Index: reg.R8, Scale: 1, Disp: disp}, y, masked)
	})
	t.LEAQ(operand.Mem{Base: rows[3], Index: reg.RDX, Scale: 1}, reg.RSI)
	t.ADDQ(operand.U32(uint32(4*t.bits/8)), reg.RBX)
	t.DECQ(reg.R11)
	t.JNZ(operand.LabelRef("four"))
	t.ret()
}

// dotRows emits dst[i] = the product of row i of x with y, for four rows at a time.
func (t *target) dotRows() {
	t.function("dotRows", "func(dst, x *%[1]s, stride int, y *%[1]s, fours, n int)",
		"dst[i] = the sum of y times row i of x for i < 4*fours; rows are stride bytes apart")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("x"), reg.RSI)
	t.Load(t.Param("stride"), reg.RDX)
	t.Load(t.Param("y"), reg.RBX)
	t.Load(t.Param("fours"), reg.R11)
	const unroll = 2
	acc, y, x, mask := t.regs[:4*unroll], t.regs[8], t.regs[9], t.regs[10]
	rows := []reg.Register{reg.RSI, reg.R9, reg.R10, reg.R12}
	t.Label("four")
	for i := 1; i < 4; i++ {
		t.LEAQ(operand.Mem{Base: rows[i-1], Index: reg.RDX, Scale: 1}, rows[i])
	}
	for _, a := range acc {
		t.zero(a)
	}
	t.Load(t.Param("n"), reg.RCX)
	t.loop(unroll, mask, func(disp int, masked bool) {
		part := disp / t.bytes() * 4
		t.load(y, operand.Mem{Base: reg.RBX, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		for i, r := range rows {
			m := operand.Mem{Base: r, Index: reg.R8, Scale: 1, Disp: disp}
			if masked {
				t.load(x, m, true)
				t.fma(acc[part+i], y, x)
			} else {
				t.fma(acc[part+i], y, m)
			}
		}
	})
	for i := range 4 {
		t.add(acc[i], acc[i], acc[4+i])
		t.horizontal(acc[i], t.add)
		t.pick(t.VMOVSS, t.VMOVSD, xmm[t.index(acc[i])], operand.Mem{Base: reg.RDI, Disp: i * t.bits / 8})
	}
	t.LEAQ(operand.Mem{Base: rows[3], Index: reg.RDX, Scale: 1}, reg.RSI)
	t.ADDQ(operand.U32(uint32(4*t.bits/8)), reg.RDI)
	t.DECQ(reg.R11)
	t.JNZ(operand.LabelRef("four"))
	t.ret()
}
