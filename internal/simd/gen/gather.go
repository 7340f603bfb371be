package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ahead is how many rows before it is copied a row is fetched into the cache.
const ahead = 8

// gathers emits the copy of listed rows, each of a number of 32-bit words. The list goes on for ahead more rows.
func gathers(t *target) {
	t.plainFunction("gatherRows", "func(dst, src *%[1]s, list *int64, rows, words int)",
		"copies rows of words elements of src that list names to dst; list has 8 more rows")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("src"), reg.RSI)
	t.Load(t.Param("list"), reg.RDX)
	t.Load(t.Param("rows"), reg.RBX)
	t.Load(t.Param("words"), reg.R9)
	mask := t.regs[4]
	t.Label("row")
	from, next, end := reg.R10, reg.R11, reg.R12
	t.MOVQ(operand.Mem{Base: reg.RDX, Disp: 8 * ahead}, next)
	t.IMULQ(reg.R9, next)
	t.LEAQ(operand.Mem{Base: reg.RSI, Index: next, Scale: 4}, next)
	t.LEAQ(operand.Mem{Base: next, Index: reg.R9, Scale: 4}, end)
	t.Label("fetch")
	t.PREFETCHT0(operand.Mem{Base: next})
	t.ADDQ(operand.U32(64), next)
	t.CMPQ(next, end)
	t.JL(operand.LabelRef("fetch"))
	t.MOVQ(operand.Mem{Base: reg.RDX}, from)
	t.IMULQ(reg.R9, from)
	t.LEAQ(operand.Mem{Base: reg.RSI, Index: from, Scale: 4}, from)
	t.MOVQ(reg.R9, reg.RCX)
	t.loop(4, mask, func(disp int, masked bool) {
		v := t.regs[disp/t.bytes()]
		t.load(v, operand.Mem{Base: from, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		t.store(operand.Mem{Base: reg.RDI, Index: reg.R8, Scale: 1, Disp: disp}, v, masked)
	})
	t.LEAQ(operand.Mem{Base: reg.RDI, Index: reg.R9, Scale: 4}, reg.RDI)
	t.ADDQ(operand.U32(8), reg.RDX)
	t.DECQ(reg.RBX)
	t.JNZ(operand.LabelRef("row"))
	t.plainRet()
}
