package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// whole emits a loop over RCX elements, a multiple of the lanes. R8 is the index. The loop
// processes unroll vectors at a time, then single ones. body(u) processes the vector at element
// offset u*lanes.
func (t *target) whole(unroll int, body func(u int)) {
	step := operand.U32(uint32(unroll * t.lanes()))
	t.XORQ(reg.R8, reg.R8)
	t.SUBQ(step, reg.RCX)
	t.JL(operand.LabelRef("rest"))
	t.Label("block")
	for u := range unroll {
		body(u)
	}
	t.ADDQ(step, reg.R8)
	t.SUBQ(step, reg.RCX)
	t.JGE(operand.LabelRef("block"))
	t.Label("rest")
	t.ADDQ(step, reg.RCX)
	t.JZ(operand.LabelRef("done"))
	t.Label("single")
	body(0)
	t.ADDQ(operand.U32(uint32(t.lanes())), reg.R8)
	t.SUBQ(operand.U32(uint32(t.lanes())), reg.RCX)
	t.JG(operand.LabelRef("single"))
	t.Label("done")
}

// nth returns vector u of elements of size bytes, skip elements after the pointer in base.
func (t *target) nth(base reg.Register, size, u, skip int) operand.Mem {
	return operand.Mem{Base: base, Index: reg.R8, Scale: uint8(size), Disp: (u*t.lanes() + skip) * size}
}

// half returns the lower half of a vector register.
func (t *target) half(v vec) vec {
	if t.isa == avx512 {
		return v.AsY().(vec)
	}
	return v.AsX().(vec)
}

// place returns the address of a vector, plus skip elements.
type place func(skip int) operand.Mem

// conversion is a kernel that converts elements of one type to another.
type conversion struct {
	name, doc string
	dst, src  string // element types
	to, from  int    // their sizes in bytes
	consts    []uint64
	body      func(t *target, r []vec, dst, src place)
}

// conversions emits the kernels that convert to and from float32, for whole vectors.
func conversions(t *target) {
	for _, c := range []conversion{
		{name: "fromUint8", doc: "dst = src", dst: "%[1]s", to: 4, src: "uint8", from: 1, body: fromUint8},
		{name: "fromInt8", doc: "dst = src", dst: "%[1]s", to: 4, src: "int8", from: 1, body: fromInt8},
		{name: "fromInt32", doc: "dst = src", dst: "%[1]s", to: 4, src: "int32", from: 4, body: fromInt32},
		{
			name: "toInt32", doc: "dst = src truncated, or the smallest integer if that overflows",
			dst: "int32", to: 4, src: "%[1]s", from: 4, body: toInt32,
		},
		{name: "fromHalf", doc: "dst = src", dst: "%[1]s", to: 4, src: "uint16", from: 2, body: fromHalf},
		{name: "toHalf", doc: "dst = src rounded to nearest even", dst: "uint16", to: 2, src: "%[1]s", from: 4, body: toHalf},
		{name: "fromBFloat", doc: "dst = src", dst: "%[1]s", to: 4, src: "uint16", from: 2, body: fromBFloat},
		{
			name: "toBFloat", doc: "dst = src rounded to nearest even", dst: "uint16", to: 2, src: "%[1]s", from: 4,
			consts: []uint64{1, 0x7fff, quietBit}, body: toBFloat,
		},
		{name: "toDouble", doc: "dst = src", dst: "float64", to: 8, src: "%[1]s", from: 4, body: toDouble},
		{name: "longFromInt", doc: "dst = src", dst: "int64", to: 8, src: "int32", from: 4, body: longFromInt},
		{name: "intFromLong", doc: "dst = the low halves of src", dst: "int32", to: 4, src: "int64", from: 8, body: intFromLong},
		{name: "fromLong", doc: "dst = src rounded to nearest even", dst: "%[1]s", to: 4, src: "int64", from: 8, body: fromLong},
		{
			name: "toLong", doc: "dst = src truncated, or the smallest integer if that overflows",
			dst: "int64", to: 8, src: "%[1]s", from: 4, body: toLong,
		},
		{name: "fromDouble", doc: "dst = src rounded to nearest even", dst: "%[1]s", to: 4, src: "float64", from: 8, body: fromDouble},
		{name: "wideInt8", doc: "dst = src", dst: "int32", to: 4, src: "int8", from: 1, body: widening((*build.Context).VPMOVSXBD)},
		{name: "wideUint8", doc: "dst = src", dst: "int32", to: 4, src: "uint8", from: 1, body: widening((*build.Context).VPMOVZXBD)},
		{name: "wideInt16", doc: "dst = src", dst: "int32", to: 4, src: "int16", from: 2, body: widening((*build.Context).VPMOVSXWD)},
		{name: "wideUint16", doc: "dst = src", dst: "int32", to: 4, src: "uint16", from: 2, body: widening((*build.Context).VPMOVZXWD)},
		{
			name: "toBytes", doc: "dst = the low bytes of src truncated to int32, 0 if that overflows",
			dst: "uint8", to: 1, src: "%[1]s", from: 4, body: toBytes,
		},
		{name: "longFromUint8", doc: "dst = src", dst: "int64", to: 8, src: "uint8", from: 1, body: longFromUint8},
		{name: "narrow8", doc: "dst = the low bytes of src", dst: "uint8", to: 1, src: "int32", from: 4, body: narrow8},
		{name: "narrow16", doc: "dst = the low halves of src", dst: "uint16", to: 2, src: "int32", from: 4, body: narrow16},
		{name: "doubleFromInt", doc: "dst = src", dst: "float64", to: 8, src: "int32", from: 4, body: doubleFromInt},
		{
			name: "intFromDouble", doc: "dst = src truncated, or the smallest integer if that overflows",
			dst: "int32", to: 4, src: "float64", from: 8, body: intFromDouble,
		},
		{
			name: "longFromDouble", doc: "dst = src truncated, or the smallest integer if that overflows",
			dst: "int64", to: 8, src: "float64", from: 8, body: longFromDouble,
		},
	} {
		if t.isa == avx2 && (c.name == "fromLong" || c.name == "toLong" || c.name == "longFromDouble") {
			continue // AVX2 has no such instruction
		}
		t.plainFunction(c.name, "func(dst *"+c.dst+", src *"+c.src+", n int)", c.doc)
		t.Load(t.Param("dst"), reg.RDI)
		t.Load(t.Param("src"), reg.RSI)
		t.Load(t.Param("n"), reg.RCX)
		t.hold(t.regs[12:], c.consts...)
		t.whole(4, func(u int) {
			c.body(t, t.regs[3*u:3*u+3],
				func(skip int) operand.Mem { return t.nth(reg.RDI, c.to, u, skip) },
				func(skip int) operand.Mem { return t.nth(reg.RSI, c.from, u, skip) })
		})
		t.plainRet()
	}
}

func fromUint8(t *target, r []vec, dst, src place) {
	t.VPMOVZXBD(src(0), r[0])
	t.VCVTDQ2PS(r[0], r[0])
	t.VMOVUPS(r[0], dst(0))
}

func fromInt8(t *target, r []vec, dst, src place) {
	t.VPMOVSXBD(src(0), r[0])
	t.VCVTDQ2PS(r[0], r[0])
	t.VMOVUPS(r[0], dst(0))
}

func fromInt32(t *target, r []vec, dst, src place) {
	t.VCVTDQ2PS(src(0), r[0])
	t.VMOVUPS(r[0], dst(0))
}

func toInt32(t *target, r []vec, dst, src place) {
	t.VCVTTPS2DQ(src(0), r[0])
	t.VMOVUPS(r[0], dst(0))
}

func fromHalf(t *target, r []vec, dst, src place) {
	t.VCVTPH2PS(src(0), r[0])
	t.VMOVUPS(r[0], dst(0))
}

func toHalf(t *target, r []vec, dst, src place) {
	t.VMOVUPS(src(0), r[0])
	t.VCVTPS2PH(operand.U8(0), r[0], dst(0))
}

func fromBFloat(t *target, r []vec, dst, src place) {
	t.VPMOVZXWD(src(0), r[0])
	t.VPSLLD(operand.U8(16), r[0], r[0])
	t.VMOVUPS(r[0], dst(0))
}

const quietBit = 0x00400000

// toBFloat rounds by adding just below half a unit, or half a unit if the result would be odd. The
// bits of a NaN must not carry over.
func toBFloat(t *target, r []vec, dst, src place) {
	v, sum, bad := r[0], r[1], r[2]
	t.VMOVUPS(src(0), v)
	t.VPSRLD(operand.U8(16), v, sum)
	t.and(sum, sum, t.k(1))
	t.VPADDD(t.k(0x7fff), sum, sum)
	t.VPADDD(v, sum, sum)
	t.or(bad, v, t.k(quietBit))
	if t.isa == avx512 {
		t.VCMPPS(operand.U8(unordered), v, v, reg.K2)
		t.VMOVAPS(bad, reg.K2, sum)
		t.VPSRLD(operand.U8(16), sum, sum)
		t.VPMOVDW(sum, dst(0))
		return
	}
	t.VCMPPS(operand.U8(unordered), v, v, v)
	t.VBLENDVPS(v, bad, sum, sum)
	t.VPSRLD(operand.U8(16), sum, sum)
	t.VPACKUSDW(sum, sum, sum)
	t.VPERMQ(operand.U8(0x08), sum, sum)
	t.VMOVUPS(t.half(sum), dst(0))
}

func toDouble(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VCVTPS2PD(src(i*n), v)
	}
	for i, v := range r[:2] {
		t.VMOVUPS(v, dst(i*n))
	}
}

func longFromInt(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VPMOVSXDQ(src(i*n), v)
	}
	for i, v := range r[:2] {
		t.VMOVUPS(v, dst(i*n))
	}
}

func longFromUint8(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VPMOVZXBQ(src(i*n), v)
	}
	for i, v := range r[:2] {
		t.VMOVUPS(v, dst(i*n))
	}
}

func intFromLong(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	t.VMOVUPS(src(0), r[0])
	t.VMOVUPS(src(n), r[1])
	if t.isa == avx512 {
		t.VPMOVQD(r[0], dst(0))
		t.VPMOVQD(r[1], dst(n))
		return
	}
	t.VSHUFPS(operand.U8(0x88), r[1], r[0], r[0])
	t.VPERMQ(operand.U8(0xd8), r[0], r[0])
	t.VMOVUPS(r[0], dst(0))
}

func fromLong(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VCVTQQ2PS(src(i*n), t.half(v))
	}
	for i, v := range r[:2] {
		t.VMOVUPS(t.half(v), dst(i*n))
	}
}

func toLong(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VCVTTPS2QQ(src(i*n), v)
	}
	for i, v := range r[:2] {
		t.VMOVUPS(v, dst(i*n))
	}
}

func fromDouble(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VMOVUPS(src(i*n), v)
		if t.isa == avx512 {
			t.VCVTPD2PS(v, t.half(v))
		} else {
			t.VCVTPD2PSY(v, t.half(v))
		}
	}
	for i, v := range r[:2] {
		t.VMOVUPS(t.half(v), dst(i*n))
	}
}

// widening returns a body that widens shorter elements in memory to 32 bits.
func widening(move func(*build.Context, ...operand.Op)) func(t *target, r []vec, dst, src place) {
	return func(t *target, r []vec, dst, src place) {
		move(t.Context, src(0), r[0])
		t.VMOVUPS(r[0], dst(0))
	}
}

// lowBytes and lowHalves are shuffles that move the low bytes or halves of four 32-bit integers to
// the front, twice.
const (
	lowBytes  = 0x0c080400
	lowHalves = 0x0d0c090805040100
)

func narrow8(t *target, r []vec, dst, src place) {
	t.VMOVUPS(src(0), r[0])
	t.storeBytes(dst, r)
}

// toBytes truncates. Values that overflow int32 become the smallest int32, whose low byte is 0.
func toBytes(t *target, r []vec, dst, src place) {
	t.VCVTTPS2DQ(src(0), r[0])
	t.storeBytes(dst, r)
}

// storeBytes stores the low bytes of the integers in r[0].
func (t *target) storeBytes(dst place, r []vec) {
	if t.isa == avx512 {
		t.VPMOVDB(r[0], dst(0))
		return
	}
	t.VPSHUFB(t.constant(lowBytes), r[0], r[0])
	t.VEXTRACTF128(operand.U8(1), r[0], t.half(r[1]))
	t.VPUNPCKLDQ(t.half(r[1]), t.half(r[0]), t.half(r[0]))
	t.VMOVQ(t.half(r[0]), dst(0))
}

func narrow16(t *target, r []vec, dst, src place) {
	t.VMOVUPS(src(0), r[0])
	if t.isa == avx512 {
		t.VPMOVDW(r[0], dst(0))
		return
	}
	t.VPSHUFB(t.double().constant(lowHalves), r[0], r[0])
	t.VPERMQ(operand.U8(0x08), r[0], r[0])
	t.VMOVUPS(t.half(r[0]), dst(0))
}

func doubleFromInt(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VCVTDQ2PD(src(i*n), v)
	}
	for i, v := range r[:2] {
		t.VMOVUPS(v, dst(i*n))
	}
}

func intFromDouble(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VMOVUPS(src(i*n), v)
		if t.isa == avx512 {
			t.VCVTTPD2DQ(v, t.half(v))
		} else {
			t.VCVTTPD2DQY(v, t.half(v))
		}
	}
	for i, v := range r[:2] {
		t.VMOVUPS(t.half(v), dst(i*n))
	}
}

func longFromDouble(t *target, r []vec, dst, src place) {
	n := t.lanes() / 2
	for i, v := range r[:2] {
		t.VCVTTPD2QQ(src(i*n), v)
	}
	for i, v := range r[:2] {
		t.VMOVUPS(v, dst(i*n))
	}
}

// Comparison predicates; with NaN only notEqual holds.
const (
	lessEqual    = 0x12
	greaterEqual = 0x1d
	notEqual     = 0x04
)

// comparisons emits the kernels that compare whole vectors to booleans, and those that select
// elements by booleans.
func comparisons(t *target) {
	preds := []struct {
		name, doc string
		pred      int
	}{
		{"equal", "a == b", equal},
		{"notEqual", "a != b", notEqual},
		{"less", "a < b", less},
		{"lessEqual", "a <= b", lessEqual},
		{"greater", "a > b", greater},
		{"greaterEqual", "a >= b", greaterEqual},
	}
	for i, p := range preds {
		floats := func(v vec, other operand.Op) bool {
			if t.isa == avx512 {
				t.pick(t.VCMPPS, t.VCMPPD, operand.U8(p.pred), other, v, reg.K2)
			} else {
				t.pick(t.VCMPPS, t.VCMPPD, operand.U8(p.pred), other, v, v)
			}
			return false
		}
		if i < 4 {
			t.comparison(p.name, p.doc, t.elem(), false, floats)
		}
		t.comparison(p.name+"Scalar", p.doc, t.elem(), true, floats)
		if p.pred == less || p.pred == equal {
			t.comparison(p.name+"Magnitude", "|a|"+p.doc[1:], t.elem(), true, func(v vec, other operand.Op) bool {
				t.and(v, v, t.k(signBit(t)-1))
				return floats(v, other)
			})
		}
	}
	t.blend()
}

const ones = 0x0101010101010101

// comparison emits a map to booleans. compare sets the truth of each element in K2 or, with AVX2,
// in all bits of the element of v. With AVX2 it may return the negated truth and report that.
func (t *target) comparison(name, doc, elem string, scalar bool, compare func(v vec, other operand.Op) (negated bool)) {
	params := "func(dst *bool, a, b *" + elem + ", n int)"
	if scalar {
		params = "func(dst *bool, a *" + elem + ", n int, b " + elem + ")"
	}
	t.plainFunction(name, params, "dst = "+doc)
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("a"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	b := t.regs[14]
	if scalar {
		t.broadcastParam(b, "b")
	} else {
		t.Load(t.Param("b"), reg.RDX)
	}
	t.hold([]vec{t.regs[15], t.regs[13]}, ones, signBit(t)-1)
	size := t.bits / 8
	t.whole(4, func(u int) {
		v, other, dst := t.regs[2*u], operand.Op(b), t.nth(reg.RDI, 1, u, 0)
		if !scalar {
			other = t.nth(reg.RDX, size, u, 0)
		}
		t.VMOVUPS(t.nth(reg.RSI, size, u, 0), v)
		negated := compare(v, other)
		if t.isa == avx512 {
			t.VMOVDQU8_Z(t.regs[15].AsX(), reg.K2, v.AsX())
			if t.bits == 32 {
				t.VMOVDQU(v.AsX(), dst)
			} else {
				t.VMOVQ(v.AsX(), dst)
			}
			return
		}
		x, high := v.AsX(), t.regs[2*u+1].AsX()
		t.VEXTRACTF128(operand.U8(1), v, high)
		t.VPACKSSDW(high, x, x)
		t.VPACKSSWB(x, x, x)
		if t.bits == 64 {
			t.VPACKSSWB(x, x, x)
		}
		if negated {
			t.VPANDN(t.regs[15].AsX(), x, x)
		} else {
			t.VPAND(t.regs[15].AsX(), x, x)
		}
		if t.bits == 32 {
			t.VMOVQ(x, dst)
		} else {
			t.VMOVD(x, dst)
		}
	})
	t.plainRet()
}

// blend emits the selection of elements of a or b.
func (t *target) blend() {
	t.plainFunction("blend", "func(dst, a, b *%[1]s, cond *bool, n int)", "dst = a where cond, b elsewhere")
	t.Load(t.Param("dst"), reg.RDI)
	t.Load(t.Param("a"), reg.RSI)
	t.Load(t.Param("b"), reg.RDX)
	t.Load(t.Param("cond"), reg.RBX)
	t.Load(t.Param("n"), reg.RCX)
	zero := t.regs[15]
	t.zero(zero)
	size := t.bits / 8
	t.whole(4, func(u int) {
		v, mask := t.regs[2*u], t.regs[2*u+1]
		a, cond := t.nth(reg.RSI, size, u, 0), t.nth(reg.RBX, 1, u, 0)
		t.VMOVUPS(t.nth(reg.RDX, size, u, 0), v)
		if t.isa == avx512 {
			if t.bits == 32 {
				t.VMOVDQU(cond, mask.AsX())
			} else {
				t.VMOVQ(cond, mask.AsX())
			}
			t.VPTESTMB(mask.AsX(), mask.AsX(), reg.K2)
			t.pick(t.VMOVUPS, t.VMOVUPD, a, reg.K2, v)
		} else {
			if t.bits == 32 {
				t.VPMOVZXBD(cond, mask)
				t.VPCMPGTD(zero, mask, mask)
				t.VPBLENDVB(mask, a, v, v)
			} else {
				t.VPMOVZXBQ(cond, mask)
				t.VPCMPGTQ(zero, mask, mask)
				t.VPBLENDVB(mask, a, v, v)
			}
		}
		t.VMOVUPS(v, t.nth(reg.RDI, size, u, 0))
	})
	t.plainRet()
}
