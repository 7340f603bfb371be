package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// philox emits the random number generator and the conversions of its words to samples. Results
// must be bit-identical to those of the Go code in package philox. The kernels therefore perform
// the same operations, without fusing any.
func philox(t *target) {
	t.randomWords()
	t.stream(stream{
		name: "units", doc: "dst = the numbers in [0, 1) with the lower 23 bits of the words of src",
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

// unit converts the words of x to numbers in [0, 1).
func (t *target) unit(x vec) {
	t.and(x, x, t.k(unitBits))
	t.or(x, x, t.k(oneBits))
	t.sub(x, x, t.kf(1))
}

// Offsets in the argument place of randomWords: the lower halves of the counters of the lanes, the
// distance to the next vector of counters, the upper half of the counters, and the key.
const (
	placeLow  = 0
	placeStep = 64
	placeHigh = 72
	placeKey  = 80
)

// rounds is the number of rounds of Philox4x32-10.
const rounds = 10

// counters holds the registers of a vector of counters: the four words of each and two temporaries.
type counters struct{ a, b, c, d, t0, t1 vec }

// randomWords emits the generator. It processes several vectors of counters at a time. Each word
// occupies a 64-bit lane, as the multiplication requires. The upper halves of the lanes are
// undefined.
func (t *target) randomWords() {
	t.plainFunction("words", "func(dst *uint32, place *[11]uint64, n int)",
		"writes the outputs for n successive counters, a multiple of 32, and advances place")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("place"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	d := t.double() // for constants and shifts of 64 bits
	count := [...]int{2, 4}[t.isa]
	mul := [2]vec{t.regs[0], t.regs[1]}
	key := [2]vec{t.regs[2], t.regs[3]}
	d.broadcast(mul[0], d.constant(0xD2511F53))
	d.broadcast(mul[1], d.constant(0xCD9E8D57))
	s := make([]counters, count)
	for i := range s {
		r := t.regs[4+6*i:]
		s[i] = counters{r[0], r[1], r[2], r[3], r[4], r[5]}
	}
	if t.isa == avx512 {
		t.MOVL(operand.U32(0xaaaa), reg.EAX)
		t.KMOVW(reg.EAX, reg.K2)
	}
	t.Label("block")
	t.loadCounters(d, s, key)
	for r := range rounds {
		if r > 0 {
			t.addKey(key[0], 0x9E3779B9)
			t.addKey(key[1], 0xBB67AE85)
		}
		for i := range s {
			t.philoxRound(d, &s[i], mul, key)
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

// loadCounters loads the key and the counters at place, which SI points to, and advances place.
func (t *target) loadCounters(d *target, s []counters, key [2]vec) {
	at := func(disp int) operand.Mem { return operand.Mem{Base: reg.RSI, Disp: disp} }
	t.VPBROADCASTD(at(placeKey), key[0])
	t.VPBROADCASTD(at(placeKey+4), key[1])
	for i := range s {
		x := &s[i]
		if i == 0 {
			t.VMOVUPS(at(placeLow), x.a)
			t.VPBROADCASTQ(at(placeStep), x.t0)
		} else {
			t.VPADDQ(s[0].t0, s[i-1].a, x.a)
		}
	}
	t.VPADDQ(s[0].t0, s[len(s)-1].a, s[0].t1)
	t.VMOVUPS(s[0].t1, at(placeLow))
	for i := range s {
		x := &s[i]
		d.right(x.b, x.a, 32)
		t.VPBROADCASTQ(at(placeHigh), x.c)
		d.right(x.d, x.c, 32)
	}
}

// addKey adds a word to the words of a key.
func (t *target) addKey(key vec, word uint64) {
	if t.isa == avx512 {
		t.VPADDD_BCST(t.constant(word), key, key)
	} else {
		t.VPADDD(t.constant(word), key, key)
	}
}

// philoxRound emits a round of Philox4x32. It exchanges the roles of registers.
func (t *target) philoxRound(d *target, x *counters, mul, key [2]vec) {
	t.VPMULUDQ(mul[0], x.a, x.t0)
	t.VPMULUDQ(mul[1], x.c, x.t1)
	d.right(x.a, x.t1, 32)
	d.right(x.c, x.t0, 32)
	if t.isa == avx512 {
		const threefold = 0x96 // three-way exclusive or
		t.VPTERNLOGQ(operand.U8(threefold), key[0], x.b, x.a)
		t.VPTERNLOGQ(operand.U8(threefold), key[1], x.d, x.c)
	} else {
		t.xor(x.b, x.b, key[0])
		t.xor(x.d, x.d, key[1])
		t.xor(x.a, x.a, x.b)
		t.xor(x.c, x.c, x.d)
	}
	x.b, x.d, x.t0, x.t1 = x.t1, x.t0, x.b, x.d
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

// normals emits the Box-Muller transform: the conversion of two words at a time to two samples of
// the standard normal distribution.
func (t *target) normals() {
	t.plainFunction("normals", "func(dst *float32, words *uint32, n int, logs *[2][16]float64)",
		"computes n samples from n words, a multiple of 16, by the Box-Muller transform; dst may be words")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("words"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	t.Load(t.Param("logs"), reg.RDX)
	m := boxMuller{target: t, d: t.double()}
	m.holdConstants()
	t.Label("block")
	m.loadUniforms()
	m.radius()
	m.angle()
	m.samples()
	t.ADDQ(operand.U32(uint32(t.bytes())), reg.RSI)
	t.ADDQ(operand.U32(uint32(t.bytes())), reg.RDI)
	t.SUBQ(operand.U32(uint32(t.lanes())), reg.RCX)
	t.JG(operand.LabelRef("block"))
	t.plainRet()
}

// boxMuller emits the parts of normals. Registers 0 and 1 hold the uniform numbers, and then the
// radius and the angle.
type boxMuller struct {
	*target
	d      *target // for the parts in float64
	tables [4]vec  // AVX-512: the columns of logTable, in two registers each
}

func (m *boxMuller) holdConstants() {
	if m.isa != avx512 {
		return
	}
	r, d := m.regs, m.d
	for i := range m.tables {
		m.tables[i] = r[16+i]
		m.VMOVUPS(operand.Mem{Base: reg.RDX, Disp: 64 * i}, m.tables[i])
	}
	m.hold(r[20:23], unitConsts(m.target)...)
	d.hold(r[23:], d.floats(1, 2*math.Pi, 2/math.Pi, 0.5, math.Pi/2, math.Ln2)...)
}

// table looks up column i of logTable. It overwrites register 15 with AVX2.
func (m *boxMuller) table(dst, index vec, i int) {
	if m.isa == avx512 {
		m.VMOVAPD(index, dst)
		m.VPERMI2PD(m.tables[2*i+1], m.tables[2*i], dst)
		return
	}
	all := m.regs[15]
	m.VPCMPEQD(all, all, all)
	m.VGATHERDPD(all, operand.Mem{Base: reg.RDX, Index: m.half(index), Scale: 8, Disp: 128 * i}, dst)
}

// loadUniforms converts words to numbers in [0, 1): the even ones in register 0 and the odd ones in
// register 1.
func (m *boxMuller) loadUniforms() {
	r, half := m.regs, m.half
	u, v := r[0], r[1]
	m.VMOVUPS(operand.Mem{Base: reg.RSI}, u)
	m.unit(u)
	if m.isa == avx512 {
		m.d.right(v, u, 32)
		m.VPMOVQD(u, half(u))
		m.VPMOVQD(v, half(v))
	} else {
		m.VEXTRACTF128(operand.U8(1), u, half(r[2]))
		m.VSHUFPS(operand.U8(0xdd), half(r[2]), half(u), half(v))
		m.VSHUFPS(operand.U8(0x88), half(r[2]), half(u), half(u))
	}
}

// radius computes √(-2 ln u) in register 0.
func (m *boxMuller) radius() {
	d, r, half := m.d, m.regs, m.half
	u, hu := r[0], half(r[0])
	part, z, e := r[2], r[3], r[4]
	m.VMAXPS(m.constant(m.float(1.0e-7)), hu, hu)
	m.VPSUBD(m.constant(0x3f330000), hu, half(part))
	m.VPSRAD(operand.U8(23), half(part), half(e))
	m.VPAND(m.constant(0xff800000), half(part), half(z))
	m.VPSUBD(half(z), hu, half(z))
	m.VPSRLD(operand.U8(19), half(part), half(part))
	if m.isa == avx512 {
		m.VPMOVZXDQ(half(part), part)
	} else {
		m.VPAND(m.constant(15), half(part), half(part))
	}
	m.VCVTPS2PD(half(z), z)
	m.VCVTDQ2PD(half(e), e)
	inverse, sum, r2, y := r[5], r[6], r[7], r[8]
	m.table(inverse, part, 0)
	m.table(sum, part, 1)
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
	radius := hu
	m.narrow(u, y, false)
	m.VMULPS(m.constant(m.float(-2)), radius, radius)
	m.VSQRTPS(radius, radius)
}

// angle reduces 2πv to the nearest quarter turn and computes its sine and cosine in registers 9 and
// 10. Register 3 holds the number of the quadrant.
func (m *boxMuller) angle() {
	d, r, half := m.d, m.regs, m.half
	v, hv := r[1], half(r[1])
	x, q := r[2], half(r[3])
	m.VCVTPS2PD(hv, x)
	d.mul(x, x, d.kf(2*math.Pi))
	m.narrow(v, x, false)
	m.VCVTPS2PD(hv, x)
	turns := r[4]
	d.mul(turns, x, d.kf(2/math.Pi))
	d.add(turns, turns, d.kf(0.5))
	if m.isa == avx512 {
		m.VCVTTPD2DQ(turns, q)
	} else {
		m.VCVTTPD2DQY(turns, q)
	}
	m.VCVTDQ2PD(q, turns)
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
	m.narrow(r[9], s, false)
	m.narrow(r[10], c, false)
}

// samples turns the sine and the cosine into the quadrant, multiplies them by the radius and stores
// them alternately.
func (m *boxMuller) samples() {
	d, r, half := m.d, m.regs, m.half
	q, radius := half(r[3]), half(r[0])
	sin, cos, odd, first := half(r[9]), half(r[10]), half(r[11]), half(r[12])

	// Odd quadrants swap sine and cosine. Quadrants 2 and 3 negate the sine, quadrants 1 and 2 the
	// cosine.
	m.VPSLLD(operand.U8(31), q, odd)
	m.VBLENDVPS(odd, cos, sin, first)
	m.VBLENDVPS(odd, sin, cos, cos)
	m.VPSLLD(operand.U8(30), q, sin)
	m.VXORPS(odd, sin, odd) // bit 1 of q, and its sum with bit 0
	m.VPAND(m.constant(1<<31), sin, sin)
	m.VPAND(m.constant(1<<31), odd, odd)
	m.VXORPS(sin, first, first)
	m.VXORPS(odd, cos, cos)
	m.VMULPS(radius, first, first)
	m.VMULPS(radius, cos, cos)
	if m.isa == avx512 {
		m.VPMOVZXDQ(first, r[0])
		m.VPMOVZXDQ(cos, r[1])
		d.left(r[1], r[1], 32)
		m.or(r[0], r[0], r[1])
		m.VMOVUPS(r[0], operand.Mem{Base: reg.RDI})
	} else {
		m.VUNPCKLPS(cos, first, half(r[0]))
		m.VUNPCKHPS(cos, first, half(r[1]))
		m.VMOVUPS(half(r[0]), operand.Mem{Base: reg.RDI})
		m.VMOVUPS(half(r[1]), operand.Mem{Base: reg.RDI, Disp: 16})
	}
}
