package main

import (
	"math"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// softmax emits the computation, for each row of src, of its largest element and of the sum of the
// exponentials of the differences from it. If store is set, it also stores these exponentials
// divided by their sum. NaN elements reach the sum.
func (t *target) softmax(store bool) {
	if store {
		t.function("softmaxRows", "func(dst, src *%[1]s, rows, cols int, largest, sum *%[1]s)",
			"computes the largest element of each row of src, the sum of e^(src-largest), and dst = e^(src-largest)/sum")
		t.Load(t.Param("dst"), reg.RDI)
	} else {
		t.function("expSumRows", "func(src *%[1]s, rows, cols int, largest, sum *%[1]s)",
			"computes the largest element of each row of src and the sum of e^(src-largest)")
	}
	t.Load(t.Param("src"), reg.RSI)
	t.Load(t.Param("rows"), reg.RDX)
	t.Load(t.Param("cols"), reg.RBX)
	t.Load(t.Param("largest"), reg.R9)
	t.Load(t.Param("sum"), reg.R10)
	const half = 15 // horizontal overwrites it
	mask := t.regs[6]
	t.hold(slices.Concat(t.regs[7:half], t.regs[half+1:]), expConsts(t)...)
	row := func(p reg.Register, disp int) operand.Mem {
		return operand.Mem{Base: p, Index: reg.R8, Scale: 1, Disp: disp}
	}

	t.Label("row")
	acc, x, low := t.regs[:4], t.regs[4], t.regs[5]
	t.broadcast(low, t.constant(t.float(math.Inf(-1))))
	for _, a := range acc {
		t.mov(a, low)
	}
	t.MOVQ(reg.RBX, reg.RCX)
	t.namedLoop("Max", len(acc), mask, func(disp int, masked bool) {
		a := acc[disp/t.bytes()]
		if !masked {
			t.max(a, a, row(reg.RSI, disp))
			return
		}
		t.load(x, row(reg.RSI, disp), true)
		t.fillRest(x, low)
		t.max(a, a, x)
	})
	t.merge(acc, t.max)
	t.horizontal(acc[0], t.max)
	t.pick(t.VMOVSS, t.VMOVSD, xmm[0], operand.Mem{Base: reg.R9})
	largest := t.regs[1]
	t.broadcast(largest, xmm[0])

	sum, x, temp := t.regs[0], t.regs[2], t.regs[3:6]
	t.zero(sum)
	t.MOVQ(reg.RBX, reg.RCX)
	t.namedLoop("Exp", 2, mask, func(disp int, masked bool) {
		t.load(x, row(reg.RSI, disp), masked)
		t.sub(x, x, largest)
		expBody(t, x, temp)
		if store {
			t.store(row(reg.RDI, disp), x, masked)
		}
		if masked {
			t.clearRest(x)
		}
		t.add(sum, sum, x)
	})
	t.horizontal(sum, t.add)
	t.pick(t.VMOVSS, t.VMOVSD, xmm[0], operand.Mem{Base: reg.R10})

	if store {
		factor := t.regs[1]
		t.broadcast(sum, xmm[0])
		t.div(factor, t.krf(1, factor), sum)
		t.MOVQ(reg.RBX, reg.RCX)
		t.namedLoop("Scale", 4, mask, func(disp int, masked bool) {
			t.load(x, row(reg.RDI, disp), masked)
			t.mul(x, x, factor)
			t.store(row(reg.RDI, disp), x, masked)
		})
	}
	size := operand.Mem{Index: reg.RBX, Scale: uint8(t.bits / 8)}
	for _, p := range []reg.Register{reg.RSI, reg.RDI} {
		if p == reg.RSI || store {
			size.Base = p
			t.LEAQ(size, p)
		}
	}
	t.ADDQ(operand.U32(uint32(t.bits/8)), reg.R9)
	t.ADDQ(operand.U32(uint32(t.bits/8)), reg.R10)
	t.DECQ(reg.RDX)
	t.JNZ(operand.LabelRef("row"))
	t.ret()
}
