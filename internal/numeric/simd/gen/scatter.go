package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scatters emits the copy to listed rows, the counterpart of gathers, and the addition of listed
// rows to listed rows.
func scatters(t *target) {
	if t.bits == 32 {
		t.plainFunction("scatterRows", "func(dst, src *%[1]s, list *int64, rows, words int)",
			"copies the rows of src, of words elements, to the rows of dst that list names; list has 8 more rows")
		t.copyListed(reg.RDI, reg.R10, reg.RSI, reg.R10, reg.RSI)
	}
	t.addListedRows()
}

func (t *target) addListedRows() {
	t.function("addListedRows", "func(dst, src *%[1]s, to, from *int64, rows, cols int)",
		"adds the rows of src that from names to the rows of dst that to names; both lists have 8 more rows")
	dst, src, to, from, rows, cols := reg.RDI, reg.RSI, reg.RDX, reg.R15, reg.RBX, reg.R9
	t.Load(t.Param("dst"), dst)
	t.Load(t.Param("src"), src)
	t.Load(t.Param("to"), to)
	t.Load(t.Param("from"), from)
	t.Load(t.Param("rows"), rows)
	t.Load(t.Param("cols"), cols)
	size, mask := uint8(t.bits/8), t.regs[8]
	t.Label("row")
	t.fetchRow("fetchTo", operand.Mem{Base: to, Disp: 8 * ahead}, dst, cols, size)
	t.fetchRow("fetchFrom", operand.Mem{Base: from, Disp: 8 * ahead}, src, cols, size)
	sum, x := reg.R10, reg.R11
	t.rowAt(operand.Mem{Base: to}, sum, dst, cols, size)
	t.rowAt(operand.Mem{Base: from}, x, src, cols, size)
	t.MOVQ(cols, reg.RCX)
	t.loop(4, mask, func(disp int, masked bool) {
		v, w := t.regs[disp/t.bytes()], t.regs[4+disp/t.bytes()]
		at := operand.Mem{Base: sum, Index: reg.R8, Scale: 1, Disp: disp}
		t.load(v, at, masked)
		t.load(w, operand.Mem{Base: x, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		t.add(v, v, w)
		t.store(at, v, masked)
	})
	t.ADDQ(operand.U32(8), to)
	t.ADDQ(operand.U32(8), from)
	t.DECQ(rows)
	t.JNZ(operand.LabelRef("row"))
	t.ret()
}
