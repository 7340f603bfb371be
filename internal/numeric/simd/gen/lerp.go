package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lerps emits linear interpolation between two slices, and between pixels of a row. As in
// TensorFlow, products are rounded before they are added.
func lerps(t *target) {
	t.stream(stream{
		name: "lerp", doc: "dst = a + (b-a)*share", in: []string{"a", "b"}, out: []string{"dst"}, scalars: []string{"share"},
		temps: 1, unroll: 4,
		body: func(t *target, x vars) { t.between(x.v["dst"], x.v["a"], x.v["b"], x.v["share"], x.temp[0]) },
	})
	t.lerpPixels()
}

func (t *target) between(dst, a, b, share, tmp vec) {
	t.sub(tmp, b, a)
	t.mul(tmp, tmp, share)
	t.add(dst, a, tmp)
}

// Byte offsets in simd.Between, and its size.
const (
	betweenLower = 8 * iota
	betweenUpper
	betweenShare
	betweenSize
)

// lerpPixels emits the loop over the positions of a row. RSI points to the row, R9 to the position,
// and RDI to the output pixel.
func (t *target) lerpPixels() {
	t.function("lerpPixels", "func(dst, src *%[1]s, places *byte, n, channels int)",
		"pixel i of dst = the interpolation between the pixels of src that place i names")
	dst, src, places, n, channels, lower, upper := reg.RDI, reg.RSI, reg.R9, reg.RDX, reg.RBX, reg.R10, reg.R11
	t.Load(t.Param("dst"), dst)
	t.Load(t.Param("src"), src)
	t.Load(t.Param("places"), places)
	t.Load(t.Param("n"), n)
	t.Load(t.Param("channels"), channels)
	a, b, share, tmp, mask := t.regs[0], t.regs[1], t.regs[2], t.regs[3], t.regs[4]
	size := uint8(t.bits / 8)
	start := func() {
		t.MOVQ(operand.Mem{Base: places, Disp: betweenLower}, lower)
		t.MOVQ(operand.Mem{Base: places, Disp: betweenUpper}, upper)
		t.LEAQ(operand.Mem{Base: src, Index: lower, Scale: size}, lower)
		t.LEAQ(operand.Mem{Base: src, Index: upper, Scale: size}, upper)
		t.broadcast(share, operand.Mem{Base: places, Disp: betweenShare})
	}
	next := func(pixel string) {
		t.LEAQ(operand.Mem{Base: dst, Index: channels, Scale: size}, dst)
		t.ADDQ(operand.U32(betweenSize), places)
		t.DECQ(n)
		t.JNZ(operand.LabelRef(pixel))
		t.ret()
	}
	t.CMPQ(channels, operand.U32(uint32(t.lanes())))
	t.JG(operand.LabelRef("long"))
	t.lastMask(channels, mask, reg.RAX)
	t.Label("short")
	start()
	t.load(a, operand.Mem{Base: lower}, true)
	t.load(b, operand.Mem{Base: upper}, true)
	t.between(a, a, b, share, tmp)
	t.store(operand.Mem{Base: dst}, a, true)
	next("short")

	t.Label("long")
	start()
	t.MOVQ(channels, reg.RCX)
	t.loop(2, mask, func(disp int, masked bool) {
		at := func(base reg.Register) operand.Mem {
			return operand.Mem{Base: base, Index: reg.R8, Scale: 1, Disp: disp}
		}
		t.load(a, at(lower), masked)
		t.load(b, at(upper), masked)
		t.between(a, a, b, share, tmp)
		t.store(at(dst), a, masked)
	})
	next("long")
}
