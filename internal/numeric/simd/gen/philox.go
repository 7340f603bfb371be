package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// philox emits the generator of random words, and what makes samples of them. Everything is
// computed as package philox computes it in Go, operation by operation, for the bits must be the
// same: nothing is fused.
func philox(t *target) {
	t.randomWords()
	t.stream(stream{
		name: "units", doc: "dst = the numbers in [0, 1) that the lower 23 bits of the words of src give",
		in: []string{"src"}, out: []string{"dst"}, consts: unitConsts(t), unroll: 4,
		body: func(t *target, x vars) {
			t.mov(x.v["dst"], x.v["src"])
			t.unit(x.v["dst"])
		},
	})
	t.normals()
}

const (
	unitBits = 1<<23 - 1
	oneBits  = 127 << 23
)

func unitConsts(t *target) []uint64 { return append([]uint64{unitBits, oneBits}, t.floats(1)...) }

// unit makes a number in [0, 1) of the words of x.
func (t *target) unit(x vec) {
	t.and(x, x, t.k(unitBits))
	t.or(x, x, t.k(oneBits))
	t.sub(x, x, t.kf(1))
}

// Places in the argument of randomWords: the lower halves of the counters of the lanes, how far the
// next vector of counters is, the upper half, and the key.
const (
	placeLow  = 0
	placeStep = 64
	placeHigh = 72
	placeKey  = 80
)

// rounds of Philox4x32.
const rounds = 10

// randomWords computes several vectors of counters at a time, each word in a lane of 64 bits, as
// the multiplication wants it; the upper halves hold what must not be looked at.
func (t *target) randomWords() {
	t.plainFunction("words", "func(dst *uint32, place *[11]uint64, n int)",
		"writes the outputs for n successive counters, a multiple of 32; place goes ahead")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("place"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	at := func(disp int) operand.Mem { return operand.Mem{Base: reg.RSI, Disp: disp} }
	d := t.double() // constants and shifts of 64 bits
	count := [...]int{2, 4}[t.isa]
	regs := t.regs
	take := func() vec {
		r := regs[0]
		regs = regs[1:]
		return r
	}
	mul0, mul1, k0, k1 := take(), take(), take(), take()
	d.broadcast(mul0, d.constant(0xD2511F53))
	d.broadcast(mul1, d.constant(0xCD9E8D57))
	type stream struct{ a, b, c, d, t0, t1 vec }
	s := make([]stream, count)
	for i := range s {
		s[i] = stream{take(), take(), take(), take(), take(), take()}
	}
	weyl := func(k vec, w uint64) {
		if t.isa == avx512 {
			t.VPADDD_BCST(t.constant(w), k, k)
		} else {
			t.VPADDD(t.constant(w), k, k)
		}
	}
	if t.isa == avx512 {
		t.MOVL(operand.U32(0xaaaa), reg.EAX)
		t.KMOVW(reg.EAX, reg.K2)
	}
	t.Label("block")
	t.VPBROADCASTD(at(placeKey), k0)
	t.VPBROADCASTD(at(placeKey+4), k1)
	for i := range s {
		x := &s[i]
		if i == 0 {
			t.VMOVUPS(at(placeLow), x.a)
			t.VPBROADCASTQ(at(placeStep), x.t0)
		} else {
			t.VPADDQ(s[0].t0, s[i-1].a, x.a)
		}
	}
	t.VPADDQ(s[0].t0, s[count-1].a, s[0].t1)
	t.VMOVUPS(s[0].t1, at(placeLow))
	for i := range s {
		x := &s[i]
		d.right(x.b, x.a, 32)
		t.VPBROADCASTQ(at(placeHigh), x.c)
		d.right(x.d, x.c, 32)
	}
	for r := range rounds {
		if r > 0 {
			weyl(k0, 0x9E3779B9)
			weyl(k1, 0xBB67AE85)
		}
		for i := range s {
			x := &s[i]
			t.VPMULUDQ(mul0, x.a, x.t0)
			t.VPMULUDQ(mul1, x.c, x.t1)
			d.right(x.a, x.t1, 32)
			d.right(x.c, x.t0, 32)
			if t.isa == avx512 {
				const threefold = 0x96 // exclusive or of three
				t.VPTERNLOGQ(operand.U8(threefold), k0, x.b, x.a)
				t.VPTERNLOGQ(operand.U8(threefold), k1, x.d, x.c)
			} else {
				t.xor(x.b, x.b, k0)
				t.xor(x.d, x.d, k1)
				t.xor(x.a, x.a, x.b)
				t.xor(x.c, x.c, x.d)
			}
			x.b, x.d, x.t0, x.t1 = x.t1, x.t0, x.b, x.d
		}
	}
	for i := range s {
		x := &s[i]
		t.pairs(x.b, x.a)
		t.pairs(x.d, x.c)
		t.VPUNPCKLQDQ(x.d, x.b, x.t0)
		t.VPUNPCKHQDQ(x.d, x.b, x.t1)
		t.VMOVUPS(x.t0, operand.Mem{Base: reg.RDI, Disp: 2 * i * t.bytes()})
		t.VMOVUPS(x.t1, operand.Mem{Base: reg.RDI, Disp: (2*i + 1) * t.bytes()})
	}
	t.ADDQ(operand.U32(uint32(2*count*t.bytes())), reg.RDI)
	t.SUBQ(operand.U32(uint32(count*t.bytes()/8)), reg.RCX)
	t.JG(operand.LabelRef("block"))
	t.plainRet()
}

// pairs moves the words of second above those of first, in the register of second.
func (t *target) pairs(second, first vec) {
	t.VPSLLQ(operand.U8(32), second, second)
	if t.isa == avx512 {
		t.VMOVDQA32(second, reg.K2, first)
		t.VMOVDQA64(first, second)
	} else {
		t.VPBLENDD(operand.U8(0xaa), second, first, second)
	}
}

// normals makes two samples of the standard normal distribution of each two words.
func (t *target) normals() {
	t.plainFunction("normals", "func(dst *float32, words *uint32, n int, logs *[2][16]float64)",
		"makes n samples of n words, a multiple of 16, by the Box-Muller transform; dst may be words")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("words"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	t.Load(t.Param("logs"), reg.RDX)
	d := t.double()
	half := t.half
	r := t.regs
	var tables [4]vec
	if t.isa == avx512 {
		for i := range tables {
			tables[i] = r[16+i]
			t.VMOVUPS(operand.Mem{Base: reg.RDX, Disp: 64 * i}, tables[i])
		}
		t.hold(r[20:23], unitConsts(t)...)
		d.hold(r[23:], d.floats(1, 2*math.Pi, 2/math.Pi, 0.5, math.Pi/2, math.Ln2)...)
	}
	table := func(dst, index vec, i int) {
		if t.isa == avx512 {
			t.VMOVAPD(index, dst)
			t.VPERMI2PD(tables[2*i+1], tables[2*i], dst)
			return
		}
		all := r[15]
		t.VPCMPEQD(all, all, all)
		t.VGATHERDPD(all, operand.Mem{Base: reg.RDX, Index: t.half(index), Scale: 8, Disp: 128 * i}, dst)
	}
	t.Label("block")
	u, v := r[0], r[1]
	t.VMOVUPS(operand.Mem{Base: reg.RSI}, u)
	t.unit(u)
	if t.isa == avx512 {
		d.right(v, u, 32)
		t.VPMOVQD(u, half(u))
		t.VPMOVQD(v, half(v))
	} else {
		t.VEXTRACTF128(operand.U8(1), u, t.half(r[2]))
		t.VSHUFPS(operand.U8(0xdd), t.half(r[2]), t.half(u), t.half(v))
		t.VSHUFPS(operand.U8(0x88), t.half(r[2]), t.half(u), t.half(u))
	}

	// The radius.
	hu, hv := half(u), half(v)
	part, z, e := r[2], r[3], r[4]
	t.VMAXPS(t.constant(t.float(1.0e-7)), hu, hu)
	t.VPSUBD(t.constant(0x3f330000), hu, half(part))
	t.VPSRAD(operand.U8(23), half(part), half(e))
	t.VPAND(t.constant(0xff800000), half(part), half(z))
	t.VPSUBD(half(z), hu, half(z))
	t.VPSRLD(operand.U8(19), half(part), half(part))
	if t.isa == avx512 {
		t.VPMOVZXDQ(half(part), part)
	} else {
		t.VPAND(t.constant(15), half(part), half(part))
	}
	t.VCVTPS2PD(half(z), z)
	t.VCVTDQ2PD(half(e), e)
	inverse, sum, r2, y := r[5], r[6], r[7], r[8]
	table(inverse, part, 0)
	table(sum, part, 1)
	d.mul(z, z, inverse)
	d.sub(z, z, d.kf(1)) // r of x = 2^exponent * c * (1+r)
	d.mul(r2, z, z)
	d.mul(y, z, d.kf(0x1.5575b0be00b6ap-2))
	d.sub(y, y, d.kf(0x1.ffffef20a4123p-2))
	d.mul(inverse, r2, d.kf(0x1.00ea348b88334p-2))
	d.sub(y, y, inverse)
	d.mul(e, e, d.kf(math.Ln2))
	d.add(sum, sum, e)
	d.add(sum, sum, z)
	d.mul(y, y, r2)
	d.add(y, y, sum)
	radius := half(u)
	t.narrow(u, y, false)
	t.VMULPS(t.constant(t.float(-2)), radius, radius)
	t.VSQRTPS(radius, radius)

	// The angle.
	x, q := r[2], half(r[3])
	t.VCVTPS2PD(hv, x)
	d.mul(x, x, d.kf(2*math.Pi))
	t.narrow(v, x, false)
	t.VCVTPS2PD(hv, x)
	turns := r[4]
	d.mul(turns, x, d.kf(2/math.Pi))
	d.add(turns, turns, d.kf(0.5))
	if t.isa == avx512 {
		t.VCVTTPD2DQ(turns, q)
	} else {
		t.VCVTTPD2DQY(turns, q)
	}
	t.VCVTDQ2PD(q, turns)
	d.mul(turns, turns, d.kf(math.Pi/2))
	d.sub(x, x, turns)
	x2, x3, s, c, p := r[4], r[5], r[6], r[7], r[8]
	d.mul(x2, x, x)
	d.mul(x3, x2, x)
	d.mul(s, x3, d.kf(0x1.555545995a603p-3))
	d.sub(s, x, s)
	d.mul(x3, x3, x2)
	d.mul(p, x2, d.kf(0x1.994eb3774cf24p-13))
	d.mov(c, d.kf(0x1.1107605230bc4p-7))
	d.sub(p, c, p)
	d.mul(x3, x3, p)
	d.add(s, s, x3)
	x4 := r[5]
	d.mul(x4, x2, x2)
	d.mul(p, x2, d.kf(0x1.ffffffd0c621cp-2))
	d.mov(c, d.kf(1))
	d.sub(c, c, p)
	d.mul(p, x4, d.kf(0x1.55553e1068f19p-5))
	d.add(c, c, p)
	d.mul(x4, x4, x2)
	d.mul(p, x2, d.kf(0x1.99343027bf8c3p-16))
	d.sub(p, p, d.kf(0x1.6c087e89a359dp-10))
	d.mul(p, p, x4)
	d.add(c, c, p)
	sin, cos, odd, first := half(r[9]), half(r[10]), half(r[11]), half(r[12])
	t.narrow(r[9], s, false)
	t.narrow(r[10], c, false)

	// Odd quadrants swap the two; the second and the third turn the sine around, the first and the
	// second the cosine.
	t.VPSLLD(operand.U8(31), q, odd)
	t.VBLENDVPS(odd, cos, sin, first)
	t.VBLENDVPS(odd, sin, cos, cos)
	t.VPSLLD(operand.U8(30), q, sin)
	t.VXORPS(odd, sin, odd) // bit 1 of q, and its sum with bit 0
	t.VPAND(t.constant(1<<31), sin, sin)
	t.VPAND(t.constant(1<<31), odd, odd)
	t.VXORPS(sin, first, first)
	t.VXORPS(odd, cos, cos)
	t.VMULPS(radius, first, first)
	t.VMULPS(radius, cos, cos)
	if t.isa == avx512 {
		t.VPMOVZXDQ(first, r[0])
		t.VPMOVZXDQ(cos, r[1])
		d.left(r[1], r[1], 32)
		t.or(r[0], r[0], r[1])
		t.VMOVUPS(r[0], operand.Mem{Base: reg.RDI})
	} else {
		t.VUNPCKLPS(cos, first, t.half(r[0]))
		t.VUNPCKHPS(cos, first, t.half(r[1]))
		t.VMOVUPS(t.half(r[0]), operand.Mem{Base: reg.RDI})
		t.VMOVUPS(t.half(r[1]), operand.Mem{Base: reg.RDI, Disp: 16})
	}
	t.ADDQ(operand.U32(uint32(t.bytes())), reg.RSI)
	t.ADDQ(operand.U32(uint32(t.bytes())), reg.RDI)
	t.SUBQ(operand.U32(uint32(t.lanes())), reg.RCX)
	t.JG(operand.LabelRef("block"))
	t.plainRet()
}
