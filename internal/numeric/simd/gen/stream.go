package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// stream is a kernel that processes slices of equal length elementwise. An output may be the same
// memory as an input, because each element of the outputs depends only on the elements of the
// inputs at the same index.
type stream struct {
	name    string
	doc     string
	in, out []string // parameters; an output that is also an input starts with its old value
	scalars []string // parameters of element type, kept in registers
	array   int      // length of the array p of further scalars
	consts  []uint64
	temps   int // registers that body may overwrite besides in and out
	unroll  int
	body    func(t *target, x vars)
}

// vars holds the registers of a kernel's body.
type vars struct {
	v    map[string]vec
	p    []vec // scalars of the array
	temp []vec
}

var pointers = []Register{RDI, RSI, RDX, RBX, R9, R10}

func (t *target) stream(s stream) {
	streams := unique(s.out, s.in)
	var params []string
	for _, p := range streams {
		params = append(params, p+" *%[1]s")
	}
	params = append(params, "n int")
	for _, p := range s.scalars {
		params = append(params, p+" %[1]s")
	}
	if s.array > 0 {
		params = append(params, fmt.Sprintf("p *[%d]%%[1]s", s.array))
	}
	t.function(s.name, "func("+strings.Join(params, ", ")+")", s.doc)

	ptr := map[string]Register{}
	for i, p := range streams {
		ptr[p] = pointers[i]
		t.Load(t.Param(p), pointers[i])
	}
	t.Load(t.Param("n"), RCX)
	x := vars{v: map[string]vec{}}
	free := t.regs
	take := func() vec {
		r := free[0]
		free = free[1:]
		return r
	}
	for _, p := range streams {
		x.v[p] = take()
	}
	for range s.temps {
		x.temp = append(x.temp, take())
	}
	for _, p := range s.scalars {
		x.v[p] = take()
		t.broadcastParam(x.v[p], p)
	}
	if s.array > 0 {
		t.Load(t.Param("p"), R11)
	}
	for i := range s.array {
		x.p = append(x.p, take())
		t.broadcast(x.p[i], operand.Mem{Base: R11, Disp: i * t.bits / 8})
	}
	mask := free[0]
	if t.isa == avx2 {
		free = free[1:]
	}
	t.hold(free, s.consts...)

	step := func(disp int, masked bool) {
		for _, p := range s.in {
			t.load(x.v[p], operand.Mem{Base: ptr[p], Index: R8, Scale: 1, Disp: disp}, masked)
		}
		t.macro(fmt.Sprintf("%s%d", s.name, t.bits), func() { s.body(t, x) })
		for _, p := range s.out {
			t.store(operand.Mem{Base: ptr[p], Index: R8, Scale: 1, Disp: disp}, x.v[p], masked)
		}
	}
	t.loop(s.unroll, mask, func(disp int, masked bool) {
		if masked {
			step(disp, true)
			return
		}
		t.vectorMacro(fmt.Sprintf("%s%d_vector", s.name, t.bits), disp, func() { step(disp, false) })
	})
	t.ret()
}

// loop emits a loop over RCX elements with byte offset R8: unroll vectors at a time, then single
// vectors, then a masked one for the rest. It overwrites RCX, RAX, R13 and mask.
func (t *target) loop(unroll int, mask vec, body func(disp int, masked bool)) {
	t.namedLoop("", unroll, mask, body)
}

// namedLoop is loop for functions with several loops. The name distinguishes their labels.
func (t *target) namedLoop(name string, unroll int, mask vec, body func(disp int, masked bool)) {
	step := operand.U32(uint32(unroll * t.lanes()))
	t.macro(fmt.Sprintf("START%d_%d", t.bits, unroll), func() {
		t.XORQ(R8, R8)
		t.SUBQ(step, RCX)
	})
	t.JL(operand.LabelRef("rest" + name))
	t.Label("block" + name)
	for u := range unroll {
		body(u*t.bytes(), false)
	}
	t.macro(fmt.Sprintf("NEXT%d_%d", t.bits, unroll), func() {
		t.ADDQ(operand.U32(uint32(unroll*t.bytes())), R8)
		t.SUBQ(step, RCX)
	})
	t.JGE(operand.LabelRef("block" + name))
	t.Label("rest" + name)
	t.ADDQ(step, RCX)
	t.JZ(operand.LabelRef("done" + name))
	if unroll > 1 {
		t.SUBQ(operand.U32(uint32(t.lanes())), RCX)
		t.JL(operand.LabelRef("last" + name))
		t.Label("single" + name)
		body(0, false)
		t.macro(fmt.Sprintf("NEXT%d_1", t.bits), func() {
			t.ADDQ(operand.U32(uint32(t.bytes())), R8)
			t.SUBQ(operand.U32(uint32(t.lanes())), RCX)
		})
		t.JGE(operand.LabelRef("single" + name))
		t.Label("last" + name)
		t.ADDQ(operand.U32(uint32(t.lanes())), RCX)
		t.JZ(operand.LabelRef("done" + name))
	}
	t.lastMask(RCX, mask, RAX)
	body(0, true)
	t.Label("done" + name)
}

func unique(lists ...[]string) []string {
	var all []string
	seen := map[string]bool{}
	for _, l := range lists {
		for _, s := range l {
			if !seen[s] {
				seen[s] = true
				all = append(all, s)
			}
		}
	}
	return all
}
