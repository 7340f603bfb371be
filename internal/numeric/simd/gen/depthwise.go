package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Byte offsets in tapArgs of package channelwise.
const (
	tapX = 8 * iota
	tapF
	tapY
	tapPixels
	tapLines
	tapStepX
	tapStepY
	tapSkipX
	tapSkipY
	tapRowX
	tapColX
	tapRowF
	tapColF
	tapHeight
	tapWidth
	tapChannels
	tapLeft
)

// depthwise emits the kernels of depthwise convolution.
func depthwise(t *target) {
	t.correlation()
	for _, width := range slidWidths {
		t.slidCorrelation(width)
	}
	t.tapProducts()
	t.slidProducts()
}

// tapVecs returns the number of vectors of channels that are processed at a time.
func (t *target) tapVecs() int { return map[isa]int{avx512: 4, avx2: 2}[t.isa] }

// tapFunction starts a kernel that takes tapArgs in DI.
func (t *target) tapFunction(name, doc string) {
	name += fmt.Sprint(t.bits) + t.isa.suffix()
	t.begin(name, "func(args *byte)", doc)
	t.denormalsAreZero()
	t.Load(t.Param("args"), reg.RDI)
}

// byChannels emits a loop over the channels: most vectors at a time, then fewer, and a masked
// vector at the end. R8 is the offset in bytes and CX the number of remaining channels. mask is a
// register for AVX2.
func (t *target) byChannels(label string, most int, mask vec, part func(label string, vecs int, masked bool)) {
	next := func(n int) {
		t.ADDQ(operand.U32(uint32(n*t.bytes())), reg.R8)
		t.SUBQ(operand.U32(uint32(n*t.lanes())), reg.RCX)
	}
	t.XORQ(reg.R8, reg.R8)
	t.MOVQ(t.arg(tapChannels), reg.RCX)
	for vecs := most; vecs > 1; vecs /= 2 {
		name := fmt.Sprint(vecs, label)
		t.Label("channels" + name)
		t.CMPQ(reg.RCX, operand.U32(uint32(vecs*t.lanes())))
		t.JL(operand.LabelRef("fewer" + name))
		part(fmt.Sprint("v", name), vecs, false)
		next(vecs)
		t.JMP(operand.LabelRef("channels" + name))
		t.Label("fewer" + name)
	}
	t.Label("last" + label)
	t.TESTQ(reg.RCX, reg.RCX)
	t.JLE(operand.LabelRef("through" + label))
	t.lastMask(reg.RCX, mask, reg.RAX)
	part("v1"+label, 1, true)
	next(1)
	t.JMP(operand.LabelRef("last" + label))
	t.Label("through" + label)
}

// byLines emits the end of a loop over lines that starts at the label "line". x and y point to the
// end of the line.
func (t *target) byLines(x, y operand.Op) {
	t.ADDQ(t.arg(tapSkipX), x)
	t.ADDQ(t.arg(tapSkipY), y)
	t.DECQ(t.arg(tapLines))
	t.JNZ(operand.LabelRef("line"))
	t.ret()
}

// correlation emits y = the sum over each window of x times f.
func (t *target) correlation() {
	t.tapFunction("correlate", "y = the sum over each window of x times f")
	t.byPixels([]int{4, 2, 1}, t.tapVecs(), t.correlatePixels)
}

// byPixels emits the loops over lines of pixels, in groups of the given sizes, and over their
// channels. SI points to the first pixel of a group in x, BX in y, and R12 counts the remaining
// pixels.
func (t *target) byPixels(sizes []int, vecs int, part func(label string, pixels, vecs int, masked bool)) {
	t.MOVQ(t.arg(tapX), reg.RSI)
	t.MOVQ(t.arg(tapY), reg.RBX)
	t.Label("line")
	t.MOVQ(t.arg(tapPixels), reg.R12)
	for _, pixels := range sizes {
		name := fmt.Sprint("p", pixels)
		t.Label("pixels" + name)
		t.CMPQ(reg.R12, operand.U32(uint32(pixels)))
		t.JL(operand.LabelRef("fewer" + name))
		t.byChannels(name, vecs, t.regs[15], func(label string, vecs int, masked bool) { part(label, pixels, vecs, masked) })
		for range pixels {
			t.ADDQ(t.arg(tapStepX), reg.RSI)
			t.ADDQ(t.arg(tapStepY), reg.RBX)
		}
		t.SUBQ(operand.U32(uint32(pixels)), reg.R12)
		t.JMP(operand.LabelRef("pixels" + name))
		t.Label("fewer" + name)
	}
	t.byLines(reg.RSI, reg.RBX)
}

// storePixels emits the store of the registers, from the first one on, to pixels of y.
func (t *target) storePixels(pixels, vecs int, masked bool) {
	t.maskedMacro(fmt.Sprintf("STORE_PIXELS_%dX%d", pixels, vecs), masked, func() {
		t.LEAQ(operand.Mem{Base: reg.RBX, Index: reg.R8, Scale: 1}, reg.R10)
		for p := range pixels {
			if p > 0 {
				t.ADDQ(t.arg(tapStepY), reg.R10)
			}
			for v := range vecs {
				t.store(t.at(reg.R10, v), t.regs[p*vecs+v], masked)
			}
		}
	})
}

// startWindow sets R9 to the window of the first pixel in x, R14 to the filter, and RDX to the
// number of rows.
func (t *target) startWindow() {
	t.macro("START_WINDOW", func() {
		t.LEAQ(operand.Mem{Base: reg.RSI, Index: reg.R8, Scale: 1}, reg.R9)
		t.MOVQ(t.arg(tapF), reg.R14)
		t.ADDQ(reg.R8, reg.R14)
		t.MOVQ(t.arg(tapHeight), reg.RDX)
	})
}

func (t *target) nextWindowRow() {
	t.macro("NEXT_ROW", func() {
		t.ADDQ(t.arg(tapRowX), reg.R9)
		t.ADDQ(t.arg(tapRowF), reg.R14)
		t.DECQ(reg.RDX)
	})
}

// zeroFirst emits code that clears the first n registers.
func (t *target) zeroFirst(n int) {
	t.macro(fmt.Sprintf("ZERO_%d", n), func() {
		for i := range n {
			t.zero(t.regs[i])
		}
	})
}

// maskedMacro is like macro, for bodies with masked and unmasked forms of an element size.
func (t *target) maskedMacro(name string, masked bool, body func()) {
	if masked {
		name = fmt.Sprintf("%s_MASKED%d", name, t.bits)
	}
	t.macro(name, body)
}

// slidWidths lists the window widths of slidCorrelation.
var slidWidths = []int{3, 5}

// slidCorrelation emits correlate for windows of a fixed width at distance 1. It loads each element
// of x once for all pixels of a line whose windows contain it.
func (t *target) slidCorrelation(width int) {
	t.tapFunction(fmt.Sprint("correlate", width, "x"), fmt.Sprintf("is correlate for windows of width %d at distance 1 without gaps", width))
	sizes, vecs := []int{8, 4, 2, 1}, 2
	if t.isa == avx2 {
		sizes, vecs = []int{4, 2, 1}, map[int]int{3: 2, 5: 1}[width]
	}
	t.byPixels(sizes, vecs, func(label string, pixels, vecs int, masked bool) { t.slidPixels(label, width, pixels, vecs, masked) })
}

// slidPixels emits the loop over the rows of the window for some pixels and vectors.
func (t *target) slidPixels(label string, width, pixels, vecs int, masked bool) {
	acc := func(p, v int) vec { return t.regs[p*vecs+v] }
	f := func(e, v int) vec { return t.regs[(pixels+e)*vecs+v] }
	x := t.regs[14:16]
	if n := (pixels + width) * vecs; n > 14 && t.isa == avx512 {
		x = t.regs[n : n+2]
	}
	if t.isa == avx2 {
		x = t.regs[14:15]
	}
	t.zeroFirst(pixels * vecs)
	t.MOVQ(t.arg(tapColX), reg.RAX)
	t.startWindow()
	t.Label("row" + label)
	t.MOVQ(reg.R9, reg.R10)
	t.MOVQ(reg.R14, reg.R15)
	for e := range width {
		for v := range vecs {
			t.load(f(e, v), t.at(reg.R15, v), masked)
		}
		t.ADDQ(t.arg(tapColF), reg.R15)
	}
	for at := range pixels + width - 1 {
		for v := range vecs {
			x := x[v%len(x)]
			t.load(x, t.at(reg.R10, v), masked)
			for e := range width {
				if p := at - e; p >= 0 && p < pixels {
					t.fma(acc(p, v), f(e, v), x)
				}
			}
		}
		t.ADDQ(reg.RAX, reg.R10)
	}
	t.nextWindowRow()
	t.JNZ(operand.LabelRef("row" + label))
	t.storePixels(pixels, vecs, masked)
}

// correlatePixels emits the loops over the window for some pixels and vectors.
func (t *target) correlatePixels(label string, pixels, vecs int, masked bool) {
	acc := func(p, v int) vec { return t.regs[p*vecs+v] }
	f := t.regs[pixels*vecs : pixels*vecs+vecs]
	x := t.regs[14]
	t.zeroFirst(pixels * vecs)
	t.MOVQ(t.arg(tapStepX), reg.RAX)
	if pixels == 4 {
		t.LEAQ(operand.Mem{Base: reg.RAX, Index: reg.RAX, Scale: 2}, reg.R13)
	}
	t.startWindow()
	t.Label("row" + label)
	t.MOVQ(reg.R9, reg.R10)
	t.MOVQ(reg.R14, reg.R15)
	t.MOVQ(t.arg(tapWidth), reg.R11)
	t.Label("element" + label)
	for v := range vecs {
		t.load(f[v], t.at(reg.R15, v), masked)
	}
	for p := range pixels {
		m := [...]operand.Mem{
			{Base: reg.R10}, {Base: reg.R10, Index: reg.RAX, Scale: 1}, {Base: reg.R10, Index: reg.RAX, Scale: 2},
			{Base: reg.R10, Index: reg.R13, Scale: 1},
		}[p]
		for v := range vecs {
			t.fmaFrom(acc(p, v), f[v], m.Offset(v*t.bytes()), x, masked)
		}
	}
	t.ADDQ(t.arg(tapColX), reg.R10)
	t.ADDQ(t.arg(tapColF), reg.R15)
	t.DECQ(reg.R11)
	t.JNZ(operand.LabelRef("element" + label))
	t.nextWindowRow()
	t.JNZ(operand.LabelRef("row" + label))
	t.storePixels(pixels, vecs, masked)
}

// tapProducts emits f += the sum over the pixels of y times their windows of x, for three elements
// of a window row at a time.
func (t *target) tapProducts() {
	t.tapFunction("tapProducts", "f += the sum over the pixels of y times their windows of x")
	t.productLines(t.tapVecs(), func(label string, vecs int, masked bool) {
		t.MOVQ(reg.R14, reg.R9)
		t.MOVQ(reg.R15, reg.R12)
		t.MOVQ(t.arg(tapWidth), reg.R11)
		for _, taps := range []int{3, 2, 1} {
			name := fmt.Sprint("t", taps, label)
			t.Label("taps" + name)
			t.CMPQ(reg.R11, operand.U32(uint32(taps)))
			t.JL(operand.LabelRef("fewer" + name))
			t.productsOf(name, taps, vecs, masked)
			t.SUBQ(operand.U32(uint32(taps)), reg.R11)
			t.JMP(operand.LabelRef("taps" + name))
			t.Label("fewer" + name)
		}
	})
}

// productLines emits the loops over lines, their channels and the rows of the window. SI points to
// the first pixel of the line in x, DX in y. R14 points to the first element of the window row and
// R15 to that of the filter, for the channels from R8 on.
func (t *target) productLines(vecs int, row func(label string, vecs int, masked bool)) {
	t.MOVQ(t.arg(tapX), reg.RSI)
	t.MOVQ(t.arg(tapY), reg.RDX)
	t.Label("line")
	t.byChannels("", vecs, t.regs[15], func(label string, vecs int, masked bool) {
		t.LEAQ(operand.Mem{Base: reg.RSI, Index: reg.R8, Scale: 1}, reg.R14)
		t.MOVQ(t.arg(tapF), reg.R15)
		t.ADDQ(reg.R8, reg.R15)
		t.MOVQ(t.arg(tapHeight), reg.RAX)
		t.MOVQ(reg.RAX, t.arg(tapLeft))
		t.Label("row" + label)
		row(label, vecs, masked)
		t.ADDQ(t.arg(tapRowX), reg.R14)
		t.ADDQ(t.arg(tapRowF), reg.R15)
		t.DECQ(t.arg(tapLeft))
		t.JNZ(operand.LabelRef("row" + label))
	})
	t.MOVQ(t.arg(tapPixels), reg.RAX)
	for _, step := range []struct {
		size int
		of   reg.Register
	}{{tapStepX, reg.RSI}, {tapStepY, reg.RDX}} {
		t.MOVQ(t.arg(step.size), reg.RBX)
		t.IMULQ(reg.RAX, reg.RBX)
		t.ADDQ(reg.RBX, step.of)
	}
	t.byLines(reg.RSI, reg.RDX)
}

// fmaFrom emits sum += factor * m. A masked m is loaded into scratch.
func (t *target) fmaFrom(sum, factor vec, m operand.Mem, scratch vec, masked bool) {
	if masked {
		t.load(scratch, m, true)
		t.fma(sum, factor, scratch)
		return
	}
	t.fma(sum, factor, m)
}

// productsOf emits the loop over the pixels for the given number of window elements, which start at
// R9 in x and R12 in f, and advances both.
func (t *target) productsOf(label string, taps, vecs int, masked bool) {
	acc := func(e, v int) vec { return t.regs[e*vecs+v] }
	y, x := t.regs[taps*vecs:taps*vecs+vecs], t.regs[14]
	t.zeroFirst(taps * vecs)
	t.MOVQ(reg.R9, reg.R10)
	t.LEAQ(operand.Mem{Base: reg.RDX, Index: reg.R8, Scale: 1}, reg.RBX)
	t.MOVQ(t.arg(tapPixels), reg.R13)
	t.MOVQ(t.arg(tapColX), reg.RAX)
	t.Label("pixel" + label)
	for v := range vecs {
		t.load(y[v], t.at(reg.RBX, v), masked)
	}
	for e := range taps {
		m := [...]operand.Mem{
			{Base: reg.R10}, {Base: reg.R10, Index: reg.RAX, Scale: 1}, {Base: reg.R10, Index: reg.RAX, Scale: 2},
		}[e]
		for v := range vecs {
			t.fmaFrom(acc(e, v), y[v], m.Offset(v*t.bytes()), x, masked)
		}
	}
	t.ADDQ(t.arg(tapStepX), reg.R10)
	t.ADDQ(t.arg(tapStepY), reg.RBX)
	t.DECQ(reg.R13)
	t.JNZ(operand.LabelRef("pixel" + label))
	t.addTaps(taps, vecs, x, masked)
	for range taps {
		t.ADDQ(reg.RAX, reg.R9)
	}
}

// slidProducts emits tapProducts for windows of width three at distance 1. It processes four pixels
// at a time and loads an element of x once for the three window elements that it meets. It uses the
// registers of tapProducts.
func (t *target) slidProducts() {
	const width = 3
	most := map[isa]int{avx512: 4, avx2: 1}[t.isa]
	t.tapFunction("tapProducts3x", "is tapProducts for windows of width 3 at distance 1 without gaps")
	t.productLines(most, func(label string, vecs int, masked bool) {
		acc := func(e, v int) vec { return t.regs[e*vecs+v] }
		y := func(p, v int) vec { return t.regs[(width+p)*vecs+v] }
		x := t.regs[(width+4)*vecs:]
		t.zeroFirst(width * vecs)
		t.MOVQ(reg.R14, reg.R10)
		t.LEAQ(operand.Mem{Base: reg.RDX, Index: reg.R8, Scale: 1}, reg.RBX)
		t.MOVQ(t.arg(tapPixels), reg.R13)
		t.MOVQ(t.arg(tapColX), reg.RAX)
		for _, pixels := range []int{4, 1} {
			name := fmt.Sprint(pixels, label)
			t.Label("pixels" + name)
			t.CMPQ(reg.R13, operand.U32(uint32(pixels)))
			t.JL(operand.LabelRef("fewer" + name))
			t.MOVQ(reg.R10, reg.R9)
			for at := range pixels + width - 1 {
				for v := range vecs {
					if at < pixels {
						t.load(y(at, v), t.at(reg.RBX, v), masked)
					}
					x := x[v%2]
					t.load(x, t.at(reg.R9, v), masked)
					for e := range width {
						if p := at - e; p >= 0 && p < pixels {
							t.fma(acc(e, v), y(p, v), x)
						}
					}
				}
				if at < pixels {
					t.ADDQ(t.arg(tapStepY), reg.RBX)
					t.ADDQ(reg.RAX, reg.R10)
				}
				t.ADDQ(reg.RAX, reg.R9)
			}
			t.SUBQ(operand.U32(uint32(pixels)), reg.R13)
			t.JMP(operand.LabelRef("pixels" + name))
			t.Label("fewer" + name)
		}
		t.MOVQ(reg.R15, reg.R12)
		t.addTaps(width, vecs, x[0], masked)
	})
}

// addTaps adds the registers, from the first one on, to elements of f at R12, and advances R12.
func (t *target) addTaps(taps, vecs int, x vec, masked bool) {
	t.maskedMacro(fmt.Sprintf("ADD_TAPS%d_%dX%d", t.bits, taps, vecs), masked, func() {
		for e := range taps {
			for v := range vecs {
				m, acc := t.at(reg.R12, v), t.regs[e*vecs+v]
				t.load(x, m, masked)
				t.add(acc, acc, x)
				t.store(m, acc, masked)
			}
			t.ADDQ(t.arg(tapColF), reg.R12)
		}
	})
}
