package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// positions emits searches in the rows of a matrix.
func positions(t *target) {
	t.firstEqual("firstEqual", t.elem(), func(v, value vec) {
		if t.isa == avx512 {
			t.pick(t.VCMPPS, t.VCMPPD, operand.U8(equal), value, v, reg.K2)
		} else {
			t.pick(t.VCMPPS, t.VCMPPD, operand.U8(equal), value, v, v)
		}
	})
	if t.bits == 32 {
		t.firstEqual("firstEqualInt", "int32", func(v, value vec) {
			if t.isa == avx512 {
				t.VPCMPEQD(value, v, reg.K2)
			} else {
				t.VPCMPEQD(value, v, v)
			}
		})
	}
}

// firstEqual emits the search for a number in each row. compare sets the results in K2 or, with
// AVX2, in v.
func (t *target) firstEqual(name, elem string, compare func(v, value vec)) {
	t.plainFunction(name, "func(at *int64, x, values *"+elem+", rows, cols int)",
		"at[i] = the first position in row i of x of an element equal to values[i], or -1; cols is at least 1")
	at, x, values, rows, cols, left, offset, found := reg.RDI, reg.RSI, reg.RDX, reg.RBX, reg.R9, reg.RCX, reg.R8, reg.RAX
	t.Load(t.Param("at"), at)
	t.Load(t.Param("x"), x)
	t.Load(t.Param("values"), values)
	t.Load(t.Param("rows"), rows)
	t.Load(t.Param("cols"), cols)
	v, value, mask := t.regs[0], t.regs[1], t.regs[2]
	size, lanes := t.bits/8, operand.U32(uint32(t.lanes()))
	look := func(masked bool) {
		t.load(v, operand.Mem{Base: x, Index: offset, Scale: 1}, masked)
		compare(v, value)
		switch {
		case t.isa == avx512:
			t.KMOVW(reg.K2, reg.EAX)
		case t.bits == 32:
			t.VMOVMSKPS(v, reg.EAX)
		default:
			t.VMOVMSKPD(v, reg.EAX)
		}
		if masked {
			t.BZHIQ(left, found, found)
		}
		t.TESTQ(found, found)
		t.JNZ(operand.LabelRef("found"))
	}
	t.Label("row")
	t.broadcast(value, operand.Mem{Base: values})
	t.MOVQ(cols, left)
	t.XORQ(offset, offset)
	t.Label("vector")
	t.CMPQ(left, lanes)
	t.JL(operand.LabelRef("last"))
	look(false)
	t.ADDQ(operand.U32(uint32(t.bytes())), offset)
	t.SUBQ(lanes, left)
	t.JMP(operand.LabelRef("vector"))
	t.Label("last")
	t.TESTQ(left, left)
	t.JZ(operand.LabelRef("none"))
	t.lastMask(left, mask, found)
	look(true)
	t.Label("none")
	t.MOVQ(operand.I32(-1), found)
	t.JMP(operand.LabelRef("store"))
	t.Label("found")
	t.TZCNTQ(found, found)
	t.SHRQ(operand.U8(bits.TrailingZeros(uint(size))), offset)
	t.ADDQ(offset, found)
	t.Label("store")
	t.MOVQ(found, operand.Mem{Base: at})
	t.ADDQ(operand.U32(8), at)
	t.ADDQ(operand.U32(uint32(size)), values)
	t.LEAQ(operand.Mem{Base: x, Index: cols, Scale: uint8(size)}, x)
	t.DECQ(rows)
	t.JNZ(operand.LabelRef("row"))
	t.plainRet()
}
