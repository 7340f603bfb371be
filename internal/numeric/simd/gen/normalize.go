package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// normalization emits the kernels of batch normalization, which process the columns of matrices,
// and those of local response normalization, which sum neighbours in rows.
func normalization(t *target) {
	t.columnPass(columnPass{
		name: "moments", doc: "sum[j] += the sum of x[i][j] - shift[j], squares[j] += the sum of its square",
		in: []string{"x"}, sums: []string{"sum", "squares"}, vectors: []string{"shift"},
		body: func(t *target, in, sums, vectors []vec) {
			t.sub(in[0], in[0], vectors[0])
			t.add(sums[0], sums[0], in[0])
			t.fma(sums[1], in[0], in[0])
		},
	})
	t.columnPass(columnPass{
		name: "products", doc: "sum[j] += the sum of y[i][j], products[j] += the sum of y[i][j] * (x[i][j] - shift[j])",
		in: []string{"y", "x"}, sums: []string{"sum", "products"}, vectors: []string{"shift"},
		body: func(t *target, in, sums, vectors []vec) {
			t.sub(in[1], in[1], vectors[0])
			t.add(sums[0], sums[0], in[0])
			t.fma(sums[1], in[0], in[1])
		},
	})
	t.columnPass(columnPass{
		name: "normalize", doc: "dst[i][j] = (x[i][j] - shift[j]) * factor[j] + offset[j]",
		in: []string{"x"}, vectors: []string{"shift", "factor", "offset"}, dst: true,
		body: func(t *target, in, _, vectors []vec) {
			t.sub(in[0], in[0], vectors[0])
			t.horner(in[0], vectors[1], vectors[2])
		},
	})
	t.columnPass(columnPass{
		name: "normalizeGrad", doc: "dst[i][j] = y[i][j]*factor[j] + (x[i][j] - shift[j])*slope[j] + level[j]",
		in: []string{"y", "x"}, vectors: []string{"shift", "factor", "slope", "level"}, dst: true,
		body: func(t *target, in, _, vectors []vec) {
			t.sub(in[1], in[1], vectors[0])
			t.horner(in[1], vectors[2], vectors[3])
			t.horner(in[0], vectors[1], in[1])
		},
	})
	t.mulRows()
	t.windowSums()
}

// columnPass is a kernel that processes the columns of matrices of one shape. It reads one vector
// of values per column for some parameters. It adds to other vectors, or writes a matrix, which
// receives what the body leaves in its first input.
type columnPass struct {
	name, doc         string
	in, sums, vectors []string
	dst               bool
	body              func(t *target, in, sums, vectors []vec)
}

func (t *target) columnPass(p columnPass) {
	matrices := p.in
	if p.dst {
		matrices = append([]string{"dst"}, matrices...)
	}
	var params []string
	for _, name := range append(append(append([]string{}, matrices...), p.sums...), p.vectors...) {
		params = append(params, name+" *%[1]s")
	}
	t.function(p.name, "func("+strings.Join(params, ", ")+", stride, rows, cols int)", p.doc)
	base := map[string]reg.Register{}
	for i, name := range matrices {
		base[name] = []reg.Register{reg.RSI, reg.RBX, reg.R9}[i]
		t.Load(t.Param(name), base[name])
	}
	t.Load(t.Param("stride"), reg.RDX)
	t.Load(t.Param("cols"), reg.RCX)
	t.XORQ(reg.R8, reg.R8) // byte offset of the columns
	wide := t.tapVecs()
	t.Label("wide")
	t.CMPQ(reg.RCX, operand.U32(uint32(wide*t.lanes())))
	t.JL(operand.LabelRef("narrow"))
	t.columnPanel(p, base, wide, false)
	t.JMP(operand.LabelRef("wide"))
	t.Label("narrow")
	t.TESTQ(reg.RCX, reg.RCX)
	t.JLE(operand.LabelRef("done"))
	t.lastMask(reg.RCX, t.regs[15], reg.RAX)
	t.columnPanel(p, base, 1, true)
	t.JMP(operand.LabelRef("narrow"))
	t.Label("done")
	t.ret()
}

// columnPanel emits the loop down a panel of columns, and the step to the next panel.
func (t *target) columnPanel(p columnPass, base map[string]reg.Register, width int, masked bool) {
	free := t.regs
	take := func(n int) []vec {
		r := free[:n]
		free = free[n:]
		return r
	}
	in := take(len(p.in))
	sums, vectors := make([][]vec, width), make([][]vec, width)
	for v := range width {
		sums[v], vectors[v] = take(len(p.sums)), take(len(p.vectors))
	}
	column := func(name string, v int) operand.Mem {
		t.Load(t.Param(name), reg.RAX)
		return operand.Mem{Base: reg.RAX, Index: reg.R8, Scale: 1, Disp: v * t.bytes()}
	}
	for v := range width {
		for i, name := range p.vectors {
			t.load(vectors[v][i], column(name, v), masked)
		}
		for i := range p.sums {
			t.zero(sums[v][i])
		}
	}
	label := fmt.Sprint("row", width)
	t.MOVQ(reg.R8, reg.R10)
	t.Load(t.Param("rows"), reg.R11)
	t.Label(label)
	at := func(name string, v int) operand.Mem {
		return operand.Mem{Base: base[name], Index: reg.R10, Scale: 1, Disp: v * t.bytes()}
	}
	for v := range width {
		for i, name := range p.in {
			t.load(in[i], at(name, v), masked)
		}
		p.body(t, in, sums[v], vectors[v])
		if p.dst {
			t.store(at("dst", v), in[0], masked)
		}
	}
	t.ADDQ(reg.RDX, reg.R10)
	t.DECQ(reg.R11)
	t.JNZ(operand.LabelRef(label))
	for v := range width {
		for i, name := range p.sums {
			m := column(name, v)
			t.load(in[0], m, masked)
			t.add(sums[v][i], sums[v][i], in[0])
			t.store(m, sums[v][i], masked)
		}
	}
	t.ADDQ(operand.U32(uint32(width*t.bytes())), reg.R8)
	t.SUBQ(operand.U32(uint32(width*t.lanes())), reg.RCX)
}

// mulRows emits the product of matrices without gaps. The rows of the result have gaps.
func (t *target) mulRows() {
	t.function("mulRows", "func(dst, a, b *%[1]s, stride, rows, cols int)", "dst[i][j] = a[i][j] * b[i][j]; rows of dst are stride bytes apart")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("a"), reg.RSI)
	t.Load(t.Param("b"), reg.RBX)
	t.Load(t.Param("rows"), reg.RDX)
	t.Load(t.Param("cols"), reg.R9)
	x, y, mask := t.regs[0], t.regs[1], t.regs[2]
	t.Label("row")
	t.MOVQ(reg.R9, reg.RCX)
	t.loop(4, mask, func(disp int, masked bool) {
		at := func(base reg.Register) operand.Mem {
			return operand.Mem{Base: base, Index: reg.R8, Scale: 1, Disp: disp}
		}
		t.load(x, at(reg.RSI), masked)
		t.load(y, at(reg.RBX), masked)
		t.mul(x, x, y)
		t.store(at(reg.RDI), x, masked)
	})
	for _, p := range []reg.Register{reg.RSI, reg.RBX} {
		t.LEAQ(operand.Mem{Base: p, Index: reg.R9, Scale: uint8(t.bits / 8)}, p)
	}
	t.Load(t.Param("stride"), reg.RAX)
	t.ADDQ(reg.RAX, reg.RDI)
	t.DECQ(reg.RDX)
	t.JNZ(operand.LabelRef("row"))
	t.ret()
}

// windowSums emits dst[i][j] = bias + scale times the sum of n neighbours of row i of x from j on.
// Rows of dst have no gaps.
func (t *target) windowSums() {
	t.function("windowSums", "func(dst, x *%[1]s, stride, rows, cols, n int, scale, bias %[1]s)",
		"dst[i][j] = bias + scale * the sum of x[i][j:j+n]; rows of x are stride bytes apart")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("x"), reg.RSI)
	t.Load(t.Param("rows"), reg.RDX)
	t.Load(t.Param("n"), reg.R9)
	scale, bias, x, mask := t.regs[4], t.regs[5], t.regs[6], t.regs[7]
	t.broadcastParam(scale, "scale")
	t.broadcastParam(bias, "bias")
	part := func(label string, width int, masked bool) {
		for v := range width {
			t.zero(t.regs[v])
		}
		t.MOVQ(reg.R10, reg.R11)
		t.MOVQ(reg.R9, reg.R12)
		t.Label(label)
		for v := range width {
			if masked {
				t.load(x, t.at(reg.R11, v), true)
				t.add(t.regs[v], t.regs[v], x)
			} else {
				t.add(t.regs[v], t.regs[v], t.at(reg.R11, v))
			}
		}
		t.ADDQ(operand.U32(uint32(t.bits/8)), reg.R11)
		t.DECQ(reg.R12)
		t.JNZ(operand.LabelRef(label))
		for v := range width {
			t.horner(t.regs[v], scale, bias)
			t.store(t.at(reg.RDI, v), t.regs[v], masked)
		}
	}
	t.Label("row")
	t.Load(t.Param("cols"), reg.RCX)
	t.MOVQ(reg.RSI, reg.R10)
	t.Label("wide")
	t.CMPQ(reg.RCX, operand.U32(uint32(4*t.lanes())))
	t.JL(operand.LabelRef("narrow"))
	part("sum4", 4, false)
	t.ADDQ(operand.U32(uint32(4*t.bytes())), reg.R10)
	t.ADDQ(operand.U32(uint32(4*t.bytes())), reg.RDI)
	t.SUBQ(operand.U32(uint32(4*t.lanes())), reg.RCX)
	t.JMP(operand.LabelRef("wide"))
	t.Label("narrow")
	t.TESTQ(reg.RCX, reg.RCX)
	t.JZ(operand.LabelRef("next"))
	t.lastMask(reg.RCX, mask, reg.RAX)
	part("sum1", 1, true)
	// The last vector ends at the end of the row.
	t.MOVQ(operand.U32(uint32(t.lanes())), reg.RAX)
	t.CMPQ(reg.RCX, reg.RAX)
	t.CMOVQLT(reg.RCX, reg.RAX)
	t.SUBQ(reg.RAX, reg.RCX)
	size := uint8(t.bits / 8)
	t.LEAQ(operand.Mem{Base: reg.R10, Index: reg.RAX, Scale: size}, reg.R10)
	t.LEAQ(operand.Mem{Base: reg.RDI, Index: reg.RAX, Scale: size}, reg.RDI)
	t.JMP(operand.LabelRef("narrow"))
	t.Label("next")
	t.Load(t.Param("stride"), reg.RAX)
	t.ADDQ(reg.RAX, reg.RSI)
	t.DECQ(reg.RDX)
	t.JNZ(operand.LabelRef("row"))
	t.ret()
}
