package drivertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/tensor"
)

// bits returns a value in a type's bits, and the value that they stand for.
func bits(t tensor.DType, v float64) (uint64, float64) {
	switch t {
	case tensor.Float64:
		return math.Float64bits(v), v
	case tensor.Float16: // values of the tests are multiples of 1/64 below 4, which are exact
		return uint64(halfBits(v)), v
	case tensor.BFloat16:
		b := math.Float32bits(float32(v)) &^ 0xffff
		return uint64(b >> 16), float64(math.Float32frombits(b))
	}
	return uint64(math.Float32bits(float32(v))), float64(float32(v))
}

// value is the inverse of bits.
func value(t tensor.DType, b []byte) float64 {
	switch t {
	case tensor.Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case tensor.Float16:
		h := binary.LittleEndian.Uint16(b)
		sign, exp, frac := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
		switch exp {
		case 0:
			return sign * math.Ldexp(frac, -24)
		case 31:
			return sign * math.Inf(1)
		}
		return sign * math.Ldexp(1024+frac, exp-25)
	case tensor.BFloat16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}

// halfBits returns the bits of a multiple of 1/64 whose magnitude is below 4.
func halfBits(v float64) uint16 {
	if v == 0 {
		return 0
	}
	var sign uint16
	if v < 0 {
		sign, v = 0x8000, -v
	}
	frac, exp := math.Frexp(v) // v = frac * 2^exp, frac in [0.5, 1)
	return sign | uint16(exp+14)<<10 | uint16((2*frac-1)*1024)
}

// numbers are random elements of a type.
type numbers struct {
	values []float64
	bytes  []byte
}

func random(t tensor.DType, n int, seed uint64) numbers {
	r := rand.New(rand.NewPCG(seed, 7))
	out := numbers{make([]float64, n), make([]byte, n*t.Size())}
	for i := range n {
		var b [8]byte
		u, v := bits(t, float64(r.IntN(257)-128)/64)
		binary.LittleEndian.PutUint64(b[:], u)
		copy(out.bytes[i*t.Size():(i+1)*t.Size()], b[:])
		out.values[i] = v
	}
	return out
}

// tolerance is the allowed error of a sum of products, as a part of the sum of their magnitudes.
func tolerance(t tensor.DType, tf32 bool) float64 {
	switch {
	case t == tensor.Float64:
		return 1e-14
	case t == tensor.Float16:
		return 2e-3
	case t == tensor.BFloat16:
		return 1e-2
	case tf32:
		return 2e-3
	}
	return 2e-6
}

// BLAS checks products of all types and shapes that matter.
func BLAS(d driver.Device) []Outcome {
	lib, err := d.BLAS()
	if err != nil {
		return []Outcome{{Name: "library of products", Note: "none: " + err.Error()}}
	}
	out := []Outcome{{Name: "library of products", Note: lib.Name()}}
	for _, t := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
		for i := range 8 {
			p := driver.MatMul{Type: t, M: 37, N: 70, K: 53, TransA: i&1 > 0, TransB: i&2 > 0, Batch: 1, TF32: i&3 == 3}
			if i&4 > 0 {
				p.Batch, p.StrideA, p.StrideB, p.StrideC = 3, 37*53, 0, 37*70
			}
			o := Outcome{Name: fmt.Sprintf("product of %v, %v %v, batch of %d", t, p.TransA, p.TransB, p.Batch)}
			if o.Err = product(d, lib, p); errors.Is(o.Err, driver.ErrUnsupported) {
				o.Note, o.Err = "not supported", nil
			}
			out = append(out, o)
		}
	}
	return out
}

func product(d driver.Device, lib driver.BLAS, p driver.MatMul) error {
	b, err := newBench(d)
	if err != nil {
		return err
	}
	size := p.Type.Size()
	x, y := random(p.Type, p.Batch*p.M*p.K, 1), random(p.Type, p.Batch*p.K*p.N, 2)
	mx, my, mz := b.mem.Slice(256, len(x.bytes)), b.mem.Slice(1<<20, len(y.bytes)), b.mem.Slice(2<<20, p.Batch*p.M*p.N*size)
	got := make([]byte, mz.Size)
	if err := errors.Join(b.stream.ToDevice(mx, x.bytes), b.stream.ToDevice(my, y.bytes), b.stream.Fill(mz, 0xff), lib.MatMul(b.stream, mz, mx, my, p),
		b.stream.ToHost(got, mz), b.stream.Sync()); err != nil {
		return errors.Join(err, b.close())
	}
	at := func(trans bool, rows, cols, i, j int) int {
		if trans {
			return j*rows + i
		}
		return i*cols + j
	}
	for n := range p.Batch {
		for i := range p.M {
			for j := range p.N {
				sum, magnitude := 0.0, 1e-30
				for k := range p.K {
					v := x.values[n*p.StrideA+at(p.TransA, p.M, p.K, i, k)] * y.values[n*p.StrideB+at(p.TransB, p.K, p.N, k, j)]
					sum, magnitude = sum+v, magnitude+math.Abs(v)
				}
				v := value(p.Type, got[(n*p.StrideC+i*p.N+j)*size:])
				if e := math.Abs(v-sum) / magnitude; !(e <= tolerance(p.Type, p.TF32)) {
					return errors.Join(fmt.Errorf("product %d, element %d,%d is %g, want %g", n, i, j, v, sum), b.close())
				}
			}
		}
	}
	return b.close()
}

// convolutions are the shapes that DNN checks: plain, with one-sided padding, with strides and
// dilation, without padding, with groups, and of 1×1.
var convolutions = []driver.Conv{
	{Batch: 2, InH: 9, InW: 8, InC: 4, OutH: 9, OutW: 8, OutC: 6, KernelH: 3, KernelW: 3, PadTop: 1, PadLeft: 1, PadBottom: 1, PadRight: 1},
	{Batch: 2, InH: 8, InW: 8, InC: 3, OutH: 4, OutW: 4, OutC: 5, KernelH: 3, KernelW: 3, StrideH: 2, StrideW: 2, PadBottom: 1, PadRight: 1},
	{Batch: 1, InH: 12, InW: 11, InC: 2, OutH: 8, OutW: 7, OutC: 4, KernelH: 3, KernelW: 3, DilationH: 2, DilationW: 2},
	{Batch: 3, InH: 7, InW: 6, InC: 8, OutH: 3, OutW: 3, OutC: 8, KernelH: 5, KernelW: 4, StrideH: 2, StrideW: 2, PadTop: 1, PadBottom: 1, PadLeft: 1, PadRight: 1, Groups: 2},
	{Batch: 2, InH: 5, InW: 5, InC: 16, OutH: 5, OutW: 5, OutC: 8, KernelH: 1, KernelW: 1},
	{Batch: 2, InH: 7, InW: 9, InC: 8, OutH: 4, OutW: 5, OutC: 8, KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2, PadBottom: 1, PadRight: 1},
}

// DNN checks convolutions and their gradients of all types, shapes and layouts.
func DNN(d driver.Device) []Outcome {
	lib, err := d.DNN()
	if err != nil {
		return []Outcome{{Name: "library of convolutions", Note: "none: " + err.Error()}}
	}
	out := []Outcome{{Name: "library of convolutions", Note: lib.Name()}}
	for _, t := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
		for i, c := range convolutions {
			for _, order := range []driver.ChannelOrder{driver.NHWC, driver.NCHW} {
				for kind := driver.ConvForward; kind <= driver.ConvBackwardFilter; kind++ {
					c := c
					c.Type, c.Channels, c.TF32 = t, order, false
					c.StrideH, c.StrideW = max(c.StrideH, 1), max(c.StrideW, 1)
					c.DilationH, c.DilationW, c.Groups = max(c.DilationH, 1), max(c.DilationW, 1), max(c.Groups, 1)
					o := Outcome{Name: fmt.Sprintf("convolution %d of %v, layout %d, kind %d", i, t, order, kind)}
					if o.Err = convolution(d, lib, kind, c); errors.Is(o.Err, driver.ErrUnsupported) {
						o.Note, o.Err = "not supported: "+o.Err.Error(), nil
					}
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// images returns the index of an element of x or y.
func images(order driver.ChannelOrder, height, width, channels int) func(n, h, w, c int) int {
	if order == driver.NCHW {
		return func(n, h, w, c int) int { return ((n*channels+c)*height+h)*width + w }
	}
	return func(n, h, w, c int) int { return ((n*height+h)*width+w)*channels + c }
}

// reference computes a convolution, and the sums of the magnitudes of the products.
func reference(kind driver.ConvKind, p driver.Conv, x, w, y []float64) (result, magnitude []float64) {
	ix, iy := images(p.Channels, p.InH, p.InW, p.InC), images(p.Channels, p.OutH, p.OutW, p.OutC)
	result = make([]float64, map[driver.ConvKind]int{driver.ConvForward: len(y), driver.ConvBackwardData: len(x), driver.ConvBackwardFilter: len(w)}[kind])
	magnitude = make([]float64, len(result))
	perIn, perOut := p.InC/p.Groups, p.OutC/p.Groups
	add := func(to int, a, b float64) {
		result[to] += a * b
		magnitude[to] += math.Abs(a * b)
	}
	tap := func(n, oh, ow, kh, kw int) {
		h, v := oh*p.StrideH+kh*p.DilationH-p.PadTop, ow*p.StrideW+kw*p.DilationW-p.PadLeft
		if h < 0 || h >= p.InH || v < 0 || v >= p.InW {
			return
		}
		for oc := range p.OutC {
			for c := range perIn {
				at, to := ix(n, h, v, oc/perOut*perIn+c), iy(n, oh, ow, oc)
				filter := ((kh*p.KernelW+kw)*perIn+c)*p.OutC + oc
				switch kind {
				case driver.ConvForward:
					add(to, x[at], w[filter])
				case driver.ConvBackwardData:
					add(at, y[to], w[filter])
				case driver.ConvBackwardFilter:
					add(filter, x[at], y[to])
				}
			}
		}
	}
	for n := range p.Batch {
		for oh := range p.OutH {
			for ow := range p.OutW {
				for k := range p.KernelH * p.KernelW {
					tap(n, oh, ow, k/p.KernelW, k%p.KernelW)
				}
			}
		}
	}
	return result, magnitude
}

func convolution(d driver.Device, lib driver.DNN, kind driver.ConvKind, p driver.Conv) error {
	b, err := newBench(d)
	if err != nil {
		return err
	}
	operands := [3]numbers{
		random(p.Type, p.Batch*p.InH*p.InW*p.InC, 1),
		random(p.Type, p.KernelH*p.KernelW*p.InC/p.Groups*p.OutC, 2),
		random(p.Type, p.Batch*p.OutH*p.OutW*p.OutC, 3),
	}
	result := map[driver.ConvKind]int{driver.ConvForward: 2, driver.ConvBackwardData: 0, driver.ConvBackwardFilter: 1}[kind]
	var mem [3]driver.Mem
	for i, o := range operands {
		mem[i] = b.mem.Slice(256+i<<20, len(o.bytes))
		if i != result {
			err = errors.Join(err, b.stream.ToDevice(mem[i], o.bytes))
		}
	}
	var scratch []driver.Mem
	got := make([]byte, mem[result].Size)
	err = errors.Join(err, b.stream.Fill(mem[result], 0xff), lib.Conv(b.stream, kind, mem[0], mem[1], mem[2], p, func(size int) (driver.Mem, bool) {
		m, err := d.Alloc(size)
		scratch = append(scratch, m)
		return m, err == nil
	}), b.stream.ToHost(got, mem[result]), b.stream.Sync())
	for _, m := range scratch {
		if m.Size > 0 {
			err = errors.Join(err, d.Free(m))
		}
	}
	if err = errors.Join(err, b.close()); err != nil {
		return err
	}
	want, magnitude := reference(kind, p, operands[0].values, operands[1].values, operands[2].values)
	for i := range want {
		v := value(p.Type, got[i*p.Type.Size():])
		if e := math.Abs(v-want[i]) / (magnitude[i] + 1e-30); !(e <= tolerance(p.Type, p.TF32)) && v != want[i] {
			return fmt.Errorf("element %d is %g, want %g", i, v, want[i])
		}
	}
	return nil
}
