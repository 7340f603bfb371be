package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ahead is the prefetch distance, in rows.
const ahead = 8

// gathers emits the copy of listed rows, each of a number of 32-bit words. The list continues for
// ahead more rows.
func gathers(t *target) {
	t.plainFunction("gatherRows", "func(dst, src *%[1]s, list *int64, rows, words int)",
		"copies the rows of src that list names, of words elements, to dst; list has 8 more rows")
	t.copyListed(reg.RSI, reg.R10, reg.RDI, reg.RDI, reg.R10)
}

// copyListed emits a copy loop between registers to and from. listed is the one that points to the
// row of base that the list names. next is the other one, which advances row by row.
func (t *target) copyListed(base, listed, next, to, from reg.Register) {
	list, rows, words, mask := reg.RDX, reg.RBX, reg.R9, t.regs[4]
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("src"), reg.RSI)
	t.Load(t.Param("list"), list)
	t.Load(t.Param("rows"), rows)
	t.Load(t.Param("words"), words)
	t.Label("row")
	t.fetchRow("fetch", operand.Mem{Base: list, Disp: 8 * ahead}, base, words, 4)
	t.rowAt(operand.Mem{Base: list}, listed, base, words, 4)
	t.MOVQ(words, reg.RCX)
	t.loop(4, mask, func(disp int, masked bool) {
		v := t.regs[disp/t.bytes()]
		t.load(v, operand.Mem{Base: from, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		t.store(operand.Mem{Base: to, Index: reg.R8, Scale: 1, Disp: disp}, v, masked)
	})
	t.LEAQ(operand.Mem{Base: next, Index: words, Scale: 4}, next)
	t.ADDQ(operand.U32(8), list)
	t.DECQ(rows)
	t.JNZ(operand.LabelRef("row"))
	t.plainRet()
}

// rowAt sets at to the address of row number of base. Rows have n elements of the given size.
func (t *target) rowAt(number operand.Mem, at, base, n reg.Register, size uint8) {
	t.MOVQ(number, at)
	t.IMULQ(n, at)
	t.LEAQ(operand.Mem{Base: base, Index: at, Scale: size}, at)
}

// fetchRow prefetches a row. It overwrites R11 and R12.
func (t *target) fetchRow(label string, number operand.Mem, base, n reg.Register, size uint8) {
	at, end := reg.R11, reg.R12
	t.rowAt(number, at, base, n, size)
	t.LEAQ(operand.Mem{Base: at, Index: n, Scale: size}, end)
	t.Label(label)
	t.PREFETCHT0(operand.Mem{Base: at})
	t.ADDQ(operand.U32(64), at)
	t.CMPQ(at, end)
	t.JL(operand.LabelRef(label))
}
