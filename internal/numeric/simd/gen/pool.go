package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Byte offsets in poolArgs of package channelwise.
const (
	winX = 8 * iota
	winDX
	winY
	winDY
	winPixels
	winLines
	winStepX
	winStepY
	winSkipX
	winSkipY
	winRow
	winPlane
	winDepth
	winHeight
	winWidth
	winChannels
	winScale
	winLeft
)

// window is a pooling kernel. It iterates over the pixels of y, the vectors of their channels, and
// the elements of the corresponding window of x. The functions receive the number of the vector,
// which selects their registers.
type window struct {
	name, doc string
	vecs      int // largest number of vectors at a time
	consts    []uint64
	start     func(t *target, v int, y, dy operand.Mem, masked bool)
	each      func(t *target, v int, x, dx operand.Mem, masked bool)
	end       func(t *target, v int, y, dx operand.Mem, masked bool)
}

// windows emits the pooling kernels. They may use registers 0 to 8. Register 9 holds the scale and
// register 10 the mask.
func windows(t *target) {
	x, tmp, scale := t.regs[0], t.regs[1], t.regs[9]
	acc := t.regs[2:6]
	lowest := t.float(-math.MaxFloat32)
	if t.bits == 64 {
		lowest = t.float(-math.MaxFloat64)
	}
	t.window(window{
		name: "maxPool", doc: "y = the largest element of each window, ignoring NaN",
		vecs: 4, consts: []uint64{lowest},
		start: func(t *target, v int, _, _ operand.Mem, _ bool) { t.mov(acc[v], t.k(lowest)) },
		each: func(t *target, v int, m, _ operand.Mem, masked bool) {
			t.load(x, m, masked)
			t.max(acc[v], x, acc[v])
		},
		end: func(t *target, v int, y, _ operand.Mem, masked bool) { t.store(y, acc[v], masked) },
	})
	t.window(window{
		name: "avgPool", doc: "y = the sum of each window divided by the scale", vecs: 4,
		start: func(t *target, v int, _, _ operand.Mem, _ bool) { t.zero(acc[v]) },
		each: func(t *target, v int, m, _ operand.Mem, masked bool) {
			if !masked {
				t.add(acc[v], acc[v], m)
				return
			}
			t.load(x, m, true)
			t.add(acc[v], acc[v], x)
		},
		end: func(t *target, v int, y, _ operand.Mem, masked bool) {
			t.div(acc[v], acc[v], scale)
			t.store(y, acc[v], masked)
		},
	})
	t.window(window{
		name: "avgPoolGrad", doc: "dx += dy times the scale, for every element of each window", vecs: 4,
		start: func(t *target, v int, _, dy operand.Mem, masked bool) {
			t.load(acc[v], dy, masked)
			t.mul(acc[v], acc[v], scale)
		},
		each: func(t *target, v int, _, dx operand.Mem, masked bool) {
			t.load(x, dx, masked)
			t.add(x, x, acc[v])
			t.store(dx, x, masked)
		},
		end: func(*target, int, operand.Mem, operand.Mem, bool) {},
	})
	// open selects the lanes whose maximum has not been found yet: a mask in K3, or bits in a
	// register.
	y, dy, open := t.regs[2], t.regs[3], t.regs[4]
	t.window(window{
		name: "maxPoolGrad", doc: "dx += dy at the first element of each window that equals y, or at the first element if none does",
		vecs: 1, consts: []uint64{^uint64(0)},
		start: func(t *target, _ int, m, grad operand.Mem, masked bool) {
			t.load(y, m, masked)
			t.load(dy, grad, masked)
			if t.isa == avx512 {
				t.KXNORW(reg.K3, reg.K3, reg.K3)
			} else {
				t.mov(open, t.k(^uint64(0)))
			}
		},
		each: func(t *target, _ int, m, grad operand.Mem, masked bool) {
			t.load(x, m, masked)
			if t.isa == avx512 {
				t.pick(t.VCMPPS, t.VCMPPD, operand.U8(equal), y, x, reg.K2)
				t.KANDW(reg.K3, reg.K2, reg.K2)
				t.KANDNW(reg.K3, reg.K2, reg.K3)
			} else {
				t.pick(t.VCMPPS, t.VCMPPD, operand.U8(equal), y, x, tmp)
				t.VANDPS(open, tmp, tmp)
				t.VANDNPS(open, tmp, open)
			}
			t.addWhere(grad, dy, x, tmp, reg.K2, masked)
		},
		end: func(t *target, _ int, _, grad operand.Mem, masked bool) {
			t.addWhere(grad, dy, x, open, reg.K3, masked)
		},
	})
	t.nearPoolGrad()
}

// nearness is the distance of nearPoolGrad.
const nearness = 1e-5

// nearPoolGrad emits the gradient of max pooling in three dimensions.
func (t *target) nearPoolGrad() {
	x, tmp, y, dy := t.regs[0], t.regs[1], t.regs[2], t.regs[3]
	absolute := signBit(t) - 1
	t.window(window{
		name: "nearPoolGrad", doc: "dx += dy where x differs from y by less than a constant",
		vecs: 1, consts: []uint64{absolute, t.float(nearness)},
		start: func(t *target, _ int, m, grad operand.Mem, masked bool) {
			t.load(y, m, masked)
			t.load(dy, grad, masked)
		},
		each: func(t *target, _ int, m, grad operand.Mem, masked bool) {
			t.load(x, m, masked)
			t.sub(x, x, y)
			t.and(x, x, t.k(absolute))
			if t.isa == avx512 {
				t.pick(t.VCMPPS, t.VCMPPD, operand.U8(less), t.kf(nearness), x, reg.K2)
			} else {
				t.pick(t.VCMPPS, t.VCMPPD, operand.U8(less), t.kf(nearness), x, tmp)
			}
			t.addWhere(grad, dy, x, tmp, reg.K2, masked)
		},
		end: func(*target, int, operand.Mem, operand.Mem, bool) {},
	})
}

// addWhere adds a to the memory at m in the lanes that k (AVX-512) or bits (AVX2) selects. It
// overwrites x and bits.
func (t *target) addWhere(m operand.Mem, a, x, bits vec, k reg.Register, masked bool) {
	t.load(x, m, masked)
	if t.isa == avx512 {
		t.pick(t.VADDPS, t.VADDPD, a, x, k, x)
	} else {
		t.VANDPS(a, bits, bits)
		t.add(x, x, bits)
	}
	t.store(m, x, masked)
}

// window emits the loops around a kernel. SI points to the pixel's window in x and BX to the pixel
// in y. R14 is the offset from x to dx, and R15 from y to dy. The arguments hold the counts of
// lines and pixels. Their pointers are not modified, because the garbage collector may read them.
func (t *target) window(w window) {
	t.begin(fmt.Sprint(w.name, t.bits, t.isa.suffix()), "func(args *byte)", w.doc)
	t.denormalsAreZero()
	t.Load(t.Param("args"), reg.RDI)
	t.hold(t.regs[11:], w.consts...)
	t.broadcast(t.regs[9], t.arg(winScale))
	t.MOVQ(t.arg(winX), reg.RSI)
	t.MOVQ(t.arg(winY), reg.RBX)
	t.MOVQ(t.arg(winDX), reg.R14)
	t.SUBQ(reg.RSI, reg.R14)
	t.MOVQ(t.arg(winDY), reg.R15)
	t.SUBQ(reg.RBX, reg.R15)

	t.Label("line")
	t.MOVQ(t.arg(winPixels), reg.RAX)
	t.MOVQ(reg.RAX, t.arg(winLeft))
	t.Label("pixel")
	t.XORQ(reg.R8, reg.R8)
	t.MOVQ(t.arg(winChannels), reg.RCX)
	for vecs := w.vecs; vecs > 0; vecs /= 2 {
		if vecs == 1 && w.vecs > 1 {
			break // the masked code handles a single vector
		}
		label := fmt.Sprint(vecs)
		t.Label("channels" + label)
		t.CMPQ(reg.RCX, operand.U32(uint32(vecs*t.lanes())))
		t.JL(operand.LabelRef("fewer" + label))
		t.windowChannels(w, label, vecs, false)
		t.JMP(operand.LabelRef("channels" + label))
		t.Label("fewer" + label)
	}
	t.TESTQ(reg.RCX, reg.RCX)
	t.JZ(operand.LabelRef("next"))
	t.Label("single")
	t.lastMask(reg.RCX, t.regs[10], reg.RAX)
	t.windowChannels(w, "Single", 1, true)
	t.JG(operand.LabelRef("single"))
	t.Label("next")
	t.ADDQ(t.arg(winStepX), reg.RSI)
	t.ADDQ(t.arg(winStepY), reg.RBX)
	t.DECQ(t.arg(winLeft))
	t.JNZ(operand.LabelRef("pixel"))
	t.ADDQ(t.arg(winSkipX), reg.RSI)
	t.ADDQ(t.arg(winSkipY), reg.RBX)
	t.DECQ(t.arg(winLines))
	t.JNZ(operand.LabelRef("line"))
	t.ret()
}

// windowChannels emits the loop over the window for the given number of vectors of channels, from
// offset R8 on, and advances R8.
func (t *target) windowChannels(w window, label string, vecs int, masked bool) {
	each := func(part func(*target, int, operand.Mem, operand.Mem, bool), a, b operand.Mem) {
		for v := range vecs {
			part(t, v, a.Offset(v*t.bytes()), b.Offset(v*t.bytes()), masked)
		}
	}
	at := func(base, index reg.Register) operand.Mem { return operand.Mem{Base: base, Index: index, Scale: 1} }
	y := at(reg.RBX, reg.R8)
	t.LEAQ(at(reg.RBX, reg.R15), reg.RAX)
	each(w.start, y, at(reg.RAX, reg.R8))
	t.LEAQ(at(reg.RSI, reg.R8), reg.R9)
	t.MOVQ(reg.R9, reg.R12)
	t.MOVQ(t.arg(winDepth), reg.R13)
	t.MOVQ(t.arg(winChannels), reg.RAX)
	t.SHLQ(operand.U8(map[int]uint8{32: 2, 64: 3}[t.bits]), reg.RAX)
	t.Label("plane" + label)
	t.MOVQ(t.arg(winHeight), reg.RDX)
	t.Label("row" + label)
	t.MOVQ(reg.R9, reg.R10)
	t.MOVQ(t.arg(winWidth), reg.R11)
	t.Label("element" + label)
	each(w.each, operand.Mem{Base: reg.R10}, at(reg.R10, reg.R14))
	t.ADDQ(reg.RAX, reg.R10)
	t.DECQ(reg.R11)
	t.JNZ(operand.LabelRef("element" + label))
	t.ADDQ(t.arg(winRow), reg.R9)
	t.DECQ(reg.RDX)
	t.JNZ(operand.LabelRef("row" + label))
	t.ADDQ(t.arg(winPlane), reg.R9)
	t.DECQ(reg.R13)
	t.JNZ(operand.LabelRef("plane" + label))
	each(w.end, y, at(reg.R12, reg.R14))
	t.ADDQ(operand.U32(uint32(vecs*t.bytes())), reg.R8)
	t.SUBQ(operand.U32(uint32(vecs*t.lanes())), reg.RCX)
}
