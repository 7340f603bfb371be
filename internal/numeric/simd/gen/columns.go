package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns emits kernels that combine each row of a row-major matrix x with a vector of cols
// elements. Rows are stride bytes apart. The kernels process panels of a few vectors, so that the
// vector stays in registers.
func columns(t *target) {
	fold := "func(acc, x *%[1]s, stride, rows, cols int)"
	t.panels("sumColumns", "acc[j] += the sum of column j of x", fold, "acc", foldPanel(0, (*target).add))
	t.panels("maxColumns", "acc[j] = max(acc[j], the largest element of column j of x)", fold, "acc", foldPanel(negInf(t), largest))
	t.panels("minColumns", "acc[j] = min(acc[j], the smallest element of column j of x)", fold, "acc", foldPanel(posInf(t), smallest))
	combine := "func(dst, x, v *%[1]s, stride, rows, cols int)"
	t.panels("addRow", "dst[i][j] = x[i][j] + v[j]", combine, "v", mapPanel((*target).add))
	t.panels("mulRow", "dst[i][j] = x[i][j] * v[j]", combine, "v", mapPanel((*target).mul))
	t.subColumns()
}

// subColumns emits dst[i][j] = x[i][j] - a[i] - b[i] for rows without gaps.
func (t *target) subColumns() {
	t.function("subColumns", "func(dst, x, a, b *%[1]s, rows, cols int)", "dst[i][j] = x[i][j] - a[i] - b[i]")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("x"), reg.RSI)
	t.Load(t.Param("a"), reg.RDX)
	t.Load(t.Param("b"), reg.RBX)
	t.Load(t.Param("rows"), reg.R9)
	t.Load(t.Param("cols"), reg.R10)
	x, a, b, mask := t.regs[0], t.regs[1], t.regs[2], t.regs[3]
	t.Label("row")
	t.broadcast(a, operand.Mem{Base: reg.RDX})
	t.broadcast(b, operand.Mem{Base: reg.RBX})
	t.MOVQ(reg.R10, reg.RCX)
	t.loop(4, mask, func(disp int, masked bool) {
		t.load(x, operand.Mem{Base: reg.RSI, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		t.sub(x, x, a)
		t.sub(x, x, b)
		t.store(operand.Mem{Base: reg.RDI, Index: reg.R8, Scale: 1, Disp: disp}, x, masked)
	})
	for _, p := range []reg.Register{reg.RSI, reg.RDI} {
		t.LEAQ(operand.Mem{Base: p, Index: reg.R10, Scale: uint8(t.bits / 8)}, p)
	}
	t.ADDQ(operand.U32(uint32(t.bits/8)), reg.RDX)
	t.ADDQ(operand.U32(uint32(t.bits/8)), reg.RBX)
	t.DECQ(reg.R9)
	t.JNZ(operand.LabelRef("row"))
	t.ret()
}

// panels emits the loop over panels. Panels are four vectors wide, and at the end two or one. The
// code of a panel may overwrite R10 and R11. RDI points to the vector, RSI to x and R12 to dst. RDX
// is the stride and RBX the number of rows.
func (t *target) panels(name, doc, params, vector string, panel func(t *target, width int, masked bool)) {
	t.function(name, params, doc)
	t.Load(t.Param(vector), reg.RDI)
	t.Load(t.Param("x"), reg.RSI)
	if vector != "acc" {
		t.Load(t.Param("dst"), reg.R12)
	}
	t.Load(t.Param("stride"), reg.RDX)
	t.Load(t.Param("rows"), reg.RBX)
	t.Load(t.Param("cols"), reg.RCX)
	next := func(width int) {
		step := operand.U32(uint32(width * t.bytes()))
		t.ADDQ(step, reg.RDI)
		t.ADDQ(step, reg.RSI)
		if vector != "acc" {
			t.ADDQ(step, reg.R12)
		}
		t.SUBQ(operand.U32(uint32(width*t.lanes())), reg.RCX)
	}
	for _, width := range []int{4, 2} {
		name, rest := fmt.Sprint("wide", width), fmt.Sprint("rest", width)
		t.Label(name)
		t.CMPQ(reg.RCX, operand.U32(uint32(width*t.lanes())))
		t.JL(operand.LabelRef(rest))
		panel(t, width, false)
		next(width)
		t.JMP(operand.LabelRef(name))
		t.Label(rest)
	}
	t.Label("narrow")
	t.TESTQ(reg.RCX, reg.RCX)
	t.JLE(operand.LabelRef("done"))
	t.lastMask(reg.RCX, t.regs[15], reg.RAX)
	panel(t, 1, true)
	next(1)
	t.JMP(operand.LabelRef("narrow"))
	t.Label("done")
	t.ret()
}

func (t *target) at(base reg.Register, i int) operand.Mem {
	return operand.Mem{Base: base, Disp: i * t.bytes()}
}

// largest and smallest overwrite registers 12 and 13.
func largest(t *target, dst, a vec, b operand.Op)  { maximum(t, dst, a, b.(vec), t.regs[12:14]) }
func smallest(t *target, dst, a vec, b operand.Op) { minimum(t, dst, a, b.(vec), t.regs[12:14]) }

// foldPanel combines width vectors down the rows, several rows at a time in separate accumulators.
// The accumulators start with start.
func foldPanel(start uint64, op func(t *target, dst, a vec, b operand.Op)) func(t *target, width int, masked bool) {
	return func(t *target, width int, masked bool) {
		rows := 8 / width
		label := func(s string) string { return fmt.Sprint(s, "Of", width) }
		acc := func(r, i int) vec { return t.regs[r*width+i] }
		x := t.regs[8]
		row := func(r int) {
			for i := range width {
				t.load(x, t.at(reg.R10, i), masked)
				op(t, acc(r, i), acc(r, i), x)
			}
			t.ADDQ(reg.RDX, reg.R10)
		}
		t.MOVQ(reg.RSI, reg.R10)
		t.MOVQ(reg.RBX, reg.R11)
		t.broadcast(x, t.constant(start))
		t.macro(fmt.Sprintf("FILL_%d", rows*width), func() {
			for r := range rows {
				for i := range width {
					t.mov(acc(r, i), x)
				}
			}
		})
		t.SUBQ(operand.U32(uint32(rows)), reg.R11)
		t.JL(operand.LabelRef(label("rest")))
		t.Label(label("rows"))
		for r := range rows {
			row(r)
		}
		t.SUBQ(operand.U32(uint32(rows)), reg.R11)
		t.JGE(operand.LabelRef(label("rows")))
		t.Label(label("rest"))
		t.ADDQ(operand.U32(uint32(rows)), reg.R11)
		t.JZ(operand.LabelRef(label("end")))
		t.Label(label("row"))
		row(0)
		t.DECQ(reg.R11)
		t.JNZ(operand.LabelRef(label("row")))
		t.Label(label("end"))
		for n := rows / 2; n > 0; n /= 2 {
			for r := range n {
				for i := range width {
					op(t, acc(r, i), acc(r, i), acc(r+n, i))
				}
			}
		}
		for i := range width {
			t.load(x, t.at(reg.RDI, i), masked)
			op(t, x, x, acc(0, i))
			t.store(t.at(reg.RDI, i), x, masked)
		}
	}
}

// mapPanel combines width vectors of each row with those of v.
func mapPanel(op func(t *target, dst, a vec, b operand.Op)) func(t *target, width int, masked bool) {
	return func(t *target, width int, masked bool) {
		label := fmt.Sprint("row", width)
		for i := range width {
			t.load(t.regs[i], t.at(reg.RDI, i), masked)
		}
		t.XORQ(reg.R10, reg.R10)
		t.MOVQ(reg.RBX, reg.R11)
		t.Label(label)
		for i := range width {
			x := t.regs[4+i]
			m := operand.Mem{Base: reg.RSI, Index: reg.R10, Scale: 1, Disp: i * t.bytes()}
			t.load(x, m, masked)
			op(t, x, x, t.regs[i])
			m.Base = reg.R12
			t.store(m, x, masked)
		}
		t.ADDQ(reg.RDX, reg.R10)
		t.DECQ(reg.R11)
		t.JNZ(operand.LabelRef(label))
	}
}
