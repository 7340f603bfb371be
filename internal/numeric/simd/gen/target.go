package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type isa int

const (
	avx2   isa = iota // AVX2 and FMA
	avx512            // AVX-512 F, DQ, BW and VL
)

func (i isa) String() string { return [...]string{"avx2", "avx512"}[i] }

// suffix returns the suffix of function names for the instruction set.
func (i isa) suffix() string { return [...]string{"AVX2", "AVX512"}[i] }

type vec = reg.VecPhysical

// target emits kernels for one instruction set and element type. Its operations take the
// destination first and the sources in Intel's order.
type target struct {
	*build.Context
	isa   isa
	bits  int // of an element
	regs  []vec
	mask  reg.Register // AVX2: register with the mask of the last vector
	table *constants
	held  map[uint64]vec // constants that the current function keeps in registers
	mxcsr operand.Mem
}

// constants is a table of vectors of 32 bytes. Each repeats one element, given as 64 bits.
type constants struct {
	mem   operand.Mem
	slot  map[uint64]int
	order []uint64
}

func newTarget(ctx *build.Context, isa isa, bits int) *target {
	t := &target{Context: ctx, isa: isa, bits: bits, table: &constants{slot: map[uint64]int{}}}
	n := 16
	if isa == avx512 {
		n = 32
	}
	for i := range n {
		if isa == avx512 {
			t.regs = append(t.regs, zmm[i])
		} else {
			t.regs = append(t.regs, ymm[i])
		}
	}
	name := fmt.Sprintf("vectors%d", bits)
	t.table.mem = operand.Mem{Symbol: operand.Symbol{Name: name, Static: true}, Base: reg.StaticBase}
	t.constant(^uint64(0)) // the first two entries are the window from which AVX2 loads its masks
	t.constant(0)
	return t
}

// double returns the target for the parts of a float32 kernel that compute in float64. It holds no
// constants in registers.
func (t *target) double() *target {
	d := *t
	d.bits, d.held = 64, map[uint64]vec{}
	return &d
}

// finish writes the table of constants.
func (t *target) finish() {
	t.StaticGlobal(t.table.mem.Symbol.Name)
	t.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, v := range t.table.order {
		for range 4 {
			t.AppendDatum(operand.U64(v))
		}
	}
}

// constant returns the address of a vector of v, the bits of an element.
func (t *target) constant(v uint64) operand.Mem {
	if t.bits == 32 {
		v = v&math.MaxUint32 | v<<32
	}
	i, ok := t.table.slot[v]
	if !ok {
		i = len(t.table.order)
		t.table.slot[v] = i
		t.table.order = append(t.table.order, v)
	}
	return t.table.mem.Offset(32 * i)
}

// float returns the bits of v as an element.
func (t *target) float(v float64) uint64 {
	if t.bits == 32 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// bytes returns the size of a vector, and lanes its number of elements.
func (t *target) bytes() int { return [...]int{32, 64}[t.isa] }
func (t *target) lanes() int { return t.bytes() * 8 / t.bits }

// function starts a function with a name followed by the element size and the instruction set. The
// function treats denormal numbers as zero, like TensorFlow's kernels. Arithmetic on them is a
// hundred times slower on many processors.
func (t *target) function(name, params string, doc string) {
	t.plainFunction(name, params, doc)
	t.denormalsAreZero()
}

// plainFunction is like function, for functions without arithmetic, to which denormal numbers do
// not matter. Such a function returns by plainRet.
func (t *target) plainFunction(name, params string, doc string) {
	t.begin(fmt.Sprintf("%s%d%s", name, t.bits, t.isa.suffix()), strings.ReplaceAll(params, "%[1]s", t.elem()), doc)
}

// formula matches documentation that starts with an assignment.
var formula = regexp.MustCompile(`^[^ ]+( i of [^ ]+)? [-+]?= `)

// begin starts a function with a full name. doc is a sentence without the name and the full stop,
// or the assignment that the function computes.
func (t *target) begin(name, signature, doc string) {
	if formula.MatchString(doc) {
		doc = "computes " + doc
	}
	t.Function(name)
	t.Attributes(attr.NOSPLIT)
	t.SignatureExpr(signature)
	t.Doc(name + " " + doc + ".")
	t.Pragma("noescape")
	t.held = map[uint64]vec{}
}

func (t *target) denormalsAreZero() {
	t.mxcsr = t.AllocLocal(8)
	t.macro("DENORMALS_ARE_ZERO", func() {
		t.STMXCSR(t.mxcsr)
		t.MOVL(t.mxcsr, reg.EAX)
		t.ORL(operand.U32(0x8040), reg.EAX) // flush to zero, denormals are zero
		t.MOVL(reg.EAX, t.mxcsr.Offset(4))
		t.LDMXCSR(t.mxcsr.Offset(4))
	})
}

func (t *target) ret() {
	t.macro("RESTORE_MODE", func() {
		t.LDMXCSR(t.mxcsr)
		t.VZEROUPPER()
	})
	t.RET()
}

func (t *target) plainRet() {
	t.VZEROUPPER()
	t.RET()
}

func (t *target) elem() string { return fmt.Sprintf("float%d", t.bits) }

// hold keeps constants in registers for the rest of the function, as long as there are registers in
// regs.
func (t *target) hold(regs []vec, values ...uint64) {
	for i, v := range values {
		if i == len(regs) {
			return
		}
		t.broadcast(regs[i], t.constant(v))
		t.held[v] = regs[i]
	}
}

// k returns a constant as the last source of an operation: its register, or its address. AVX-512
// accepts an address only for add, sub, mul, mov and fused products.
func (t *target) k(v uint64) operand.Op {
	if r, ok := t.held[v]; ok {
		return r
	}
	return t.constant(v)
}

// inTable reports whether an operand is a constant in memory. For AVX-512 the table holds only half
// of each vector.
func (t *target) inTable(m operand.Op) bool {
	mem, ok := m.(operand.Mem)
	return ok && mem.Symbol == t.table.mem.Symbol
}

// kf returns a constant number as an operand.
func (t *target) kf(v float64) operand.Op { return t.k(t.float(v)) }

// kr returns a constant as a register. It loads the constant into tmp unless a register holds it.
func (t *target) kr(v uint64, tmp vec) vec {
	if r, ok := t.held[v]; ok {
		return r
	}
	t.mov(tmp, t.k(v))
	return tmp
}

func (t *target) krf(v float64, tmp vec) vec { return t.kr(t.float(v), tmp) }

func (t *target) broadcast(dst vec, m operand.Op) {
	if t.bits == 32 {
		t.VBROADCASTSS(m, dst)
	} else {
		t.VBROADCASTSD(m, dst)
	}
}

// broadcastParam fills dst with a parameter of element type.
func (t *target) broadcastParam(dst vec, name string) {
	p, err := t.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	t.broadcast(dst, p.Addr)
}

// pick emits the operation for the element type.
func (t *target) pick(single, double func(...operand.Op), ops ...operand.Op) {
	if t.isa == avx512 && slices.ContainsFunc(ops, t.inTable) {
		panic("AVX-512 operations hold their constants in registers")
	}
	if t.bits == 32 {
		single(ops...)
	} else {
		double(ops...)
	}
}

// spread is like pick, for operations that AVX-512 also has with a broadcast memory operand as the
// first of ops.
func (t *target) spread(single, double, single1, double1 func(...operand.Op), ops ...operand.Op) {
	if t.isa == avx512 && t.inTable(ops[0]) {
		if t.bits == 32 {
			single1(ops...)
		} else {
			double1(ops...)
		}
		return
	}
	t.pick(single, double, ops...)
}

func (t *target) add(dst, a vec, b operand.Op) {
	t.spread(t.VADDPS, t.VADDPD, t.VADDPS_BCST, t.VADDPD_BCST, b, a, dst)
}

func (t *target) sub(dst, a vec, b operand.Op) {
	t.spread(t.VSUBPS, t.VSUBPD, t.VSUBPS_BCST, t.VSUBPD_BCST, b, a, dst)
}

func (t *target) mul(dst, a vec, b operand.Op) {
	t.spread(t.VMULPS, t.VMULPD, t.VMULPS_BCST, t.VMULPD_BCST, b, a, dst)
}

func (t *target) div(dst, a vec, b operand.Op) { t.pick(t.VDIVPS, t.VDIVPD, b, a, dst) }
func (t *target) sqrt(dst vec, a operand.Op)   { t.pick(t.VSQRTPS, t.VSQRTPD, a, dst) }

// max and min return b if either source is NaN or both are zeros.
func (t *target) max(dst, a vec, b operand.Op) { t.pick(t.VMAXPS, t.VMAXPD, b, a, dst) }
func (t *target) min(dst, a vec, b operand.Op) { t.pick(t.VMINPS, t.VMINPD, b, a, dst) }

// fma: dst += a*b. fnma: dst -= a*b. horner: dst = dst*a + b.
func (t *target) fma(dst, a vec, b operand.Op) {
	t.spread(t.VFMADD231PS, t.VFMADD231PD, t.VFMADD231PS_BCST, t.VFMADD231PD_BCST, b, a, dst)
}

func (t *target) fnma(dst, a vec, b operand.Op) {
	t.spread(t.VFNMADD231PS, t.VFNMADD231PD, t.VFNMADD231PS_BCST, t.VFNMADD231PD_BCST, b, a, dst)
}

func (t *target) horner(dst, a vec, b operand.Op) {
	t.spread(t.VFMADD213PS, t.VFMADD213PD, t.VFMADD213PS_BCST, t.VFMADD213PD_BCST, b, a, dst)
}

func (t *target) and(dst, a vec, b operand.Op) { t.pick(t.VANDPS, t.VANDPS, b, a, dst) }
func (t *target) or(dst, a vec, b operand.Op)  { t.pick(t.VORPS, t.VORPS, b, a, dst) }
func (t *target) xor(dst, a vec, b operand.Op) { t.pick(t.VXORPS, t.VXORPS, b, a, dst) }

// plus, minus and the shifts treat elements as integers.
func (t *target) plus(dst, a vec, b operand.Op)  { t.pick(t.VPADDD, t.VPADDQ, b, a, dst) }
func (t *target) minus(dst, a vec, b operand.Op) { t.pick(t.VPSUBD, t.VPSUBQ, b, a, dst) }
func (t *target) left(dst, a vec, n int)         { t.pick(t.VPSLLD, t.VPSLLQ, operand.U8(n), a, dst) }
func (t *target) right(dst, a vec, n int)        { t.pick(t.VPSRLD, t.VPSRLQ, operand.U8(n), a, dst) }

// mantissa returns the number of mantissa bits after the point.
func (t *target) mantissa() int { return by(t, 23, 52) }

// by returns the value for the target's element type.
func by[V any](t *target, single, double V) V {
	if t.bits == 32 {
		return single
	}
	return double
}

// round rounds to an integer.
func (t *target) round(mode uint8, dst, a vec) {
	if t.isa == avx512 {
		t.pick(t.VRNDSCALEPS, t.VRNDSCALEPD, operand.U8(mode), a, dst)
	} else {
		t.pick3(t.VROUNDPS, t.VROUNDPD, operand.U8(mode), a, dst)
	}
}

// Rounding modes; none of them raises a flag.
const (
	nearest = 8 // ties to even
	down    = 9
	up      = 10
)

func (t *target) zero(dst vec) { t.VXORPS(dst, dst, dst) }

func (t *target) mov(dst vec, a operand.Op) {
	if t.isa == avx512 && t.inTable(a) {
		t.broadcast(dst, a)
		return
	}
	t.VMOVUPS(a, dst)
}

// Comparison predicates. They are false if a source is NaN, except for unordered.
const (
	less      = 0x11
	greater   = 0x1e
	unordered = 0x03
	equal     = 0x00
)

// choose sets dst to yes where a compares with b as pred says, and leaves it unchanged elsewhere.
// It overwrites tmp.
func (t *target) choose(dst vec, pred int, a vec, b operand.Op, yes, tmp vec) {
	p := operand.U8(pred)
	if t.isa == avx512 {
		t.pick(t.VCMPPS, t.VCMPPD, p, b, a, reg.K2)
		t.pick(t.VMOVAPS, t.VMOVAPD, yes, reg.K2, dst)
		return
	}
	t.pick(t.VCMPPS, t.VCMPPD, p, b, a, tmp)
	if t.bits == 32 {
		t.VBLENDVPS(tmp, yes, dst, dst)
	} else {
		t.VBLENDVPD(tmp, yes, dst, dst)
	}
}

// keep sets dst to a where x compares with y as pred says, and to zero elsewhere. It overwrites
// tmp.
func (t *target) keep(dst vec, pred int, x vec, y operand.Op, a, tmp vec) {
	p := operand.U8(pred)
	if t.isa == avx512 {
		t.pick(t.VCMPPS, t.VCMPPD, p, y, x, reg.K2)
		t.pick3(t.VMOVAPS_Z, t.VMOVAPD_Z, a, reg.K2, dst)
		return
	}
	t.pick(t.VCMPPS, t.VCMPPD, p, y, x, tmp)
	t.VANDPS(a, tmp, dst)
}

// load and store move a vector. If masked, they move only the elements that lastMask selects. The
// other elements of a loaded vector are zero.
func (t *target) load(dst vec, m operand.Mem, masked bool) {
	switch {
	case !masked:
		t.VMOVUPS(m, dst)
	case t.isa == avx512:
		t.pick3(t.VMOVUPS_Z, t.VMOVUPD_Z, m, reg.K1, dst)
	default:
		t.pick3(t.VMASKMOVPS, t.VMASKMOVPD, m, t.mask, dst)
	}
}

func (t *target) store(m operand.Mem, src vec, masked bool) {
	switch {
	case !masked:
		t.VMOVUPS(src, m)
	case t.isa == avx512:
		t.pick(t.VMOVUPS, t.VMOVUPD, src, reg.K1, m)
	default:
		t.pick3(t.VMASKMOVPS, t.VMASKMOVPD, src, t.mask, m)
	}
}

func (t *target) pick3(single, double func(a, b, c operand.Op), a, b, c operand.Op) {
	if t.bits == 32 {
		single(a, b, c)
	} else {
		double(a, b, c)
	}
}

// lastMask selects the first n elements of a vector, or all if n is larger. AVX-512 keeps the mask
// in K1, AVX2 in r. It overwrites scratch and R13.
func (t *target) lastMask(n reg.Register, r vec, scratch reg.Register) {
	t.macro(fmt.Sprintf("LAST_MASK%d", t.bits), func() { t.setMask(n, r, scratch) })
}

func (t *target) setMask(n reg.Register, r vec, scratch reg.Register) {
	t.MOVQ(operand.U32(uint32(t.lanes())), scratch)
	t.CMPQ(n, scratch)
	t.CMOVQLT(n, scratch)
	if t.isa == avx512 {
		t.MOVQ(operand.I32(-1), reg.R13)
		t.BZHIQ(scratch, reg.R13, scratch)
		t.KMOVW(scratch.(reg.GP).As32(), reg.K1)
		return
	}
	t.mask = r
	t.NEGQ(scratch)
	t.LEAQ(t.table.mem.Offset(32), reg.R13)
	t.VMOVUPS(operand.Mem{Base: reg.R13, Index: scratch, Scale: uint8(t.bits / 8)}, r)
}

// fillRest sets the elements of v that lastMask does not select to those of other.
func (t *target) fillRest(v, other vec) {
	switch {
	case t.isa == avx512:
		t.pick(t.VBLENDMPS, t.VBLENDMPD, v, other, reg.K1, v)
	case t.bits == 32:
		t.VBLENDVPS(t.mask, v, other, v)
	default:
		t.VBLENDVPD(t.mask, v, other, v)
	}
}

// clearRest sets the elements of v that lastMask does not select to zero.
func (t *target) clearRest(v vec) {
	if t.isa == avx512 {
		t.pick3(t.VMOVAPS_Z, t.VMOVAPD_Z, v, reg.K1, v)
	} else {
		t.VANDPS(v, t.mask.(vec), v)
	}
}
