package cases

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/weft-ml/weft/tensor"
)

// sizes are the element types' sizes in bytes.
var sizes = map[string]int{
	"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
	"b8": 1, "c64": 8, "c128": 16,
}

func isFloat(t string) bool { return t == "f16" || t == "bf16" || t == "f32" || t == "f64" }

// put stores a number as element i of a type.
func put(t string, b []byte, i int, v float64) {
	switch t {
	case "f16":
		binary.NativeEndian.PutUint16(b[2*i:], uint16(tensor.Float16Of(float32(v))))
	case "bf16":
		binary.NativeEndian.PutUint16(b[2*i:], uint16(tensor.BFloat16Of(float32(v))))
	case "f32":
		binary.NativeEndian.PutUint32(b[4*i:], math.Float32bits(float32(v)))
	case "f64":
		binary.NativeEndian.PutUint64(b[8*i:], math.Float64bits(v))
	case "c64":
		put("f32", b, 2*i, v)
		put("f32", b, 2*i+1, v/2+1)
	case "c128":
		put("f64", b, 2*i, v)
		put("f64", b, 2*i+1, v/2+1)
	case "b8":
		b[i] = 0
		if v > 0 {
			b[i] = 1
		}
	case "u8", "i8":
		b[i] = byte(int64(v))
	case "u16", "i16":
		binary.NativeEndian.PutUint16(b[2*i:], uint16(int64(v)))
	case "u32", "i32":
		binary.NativeEndian.PutUint32(b[4*i:], uint32(int64(v)))
	case "u64", "i64":
		binary.NativeEndian.PutUint64(b[8*i:], uint64(int64(v)))
	}
}

// get returns element i of a real type.
func get(t string, b []byte, i int) float64 {
	switch t {
	case "f16":
		return float64(tensor.Float16Elem(binary.NativeEndian.Uint16(b[2*i:])).Float32())
	case "bf16":
		return float64(tensor.BFloat16Elem(binary.NativeEndian.Uint16(b[2*i:])).Float32())
	case "f32":
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])))
	default:
		return math.Float64frombits(binary.NativeEndian.Uint64(b[8*i:]))
	}
}

// numbers returns n elements whose values f gives.
func numbers(t string, n int64, f func(i int) float64) *Buffer {
	b := &Buffer{Type: t, Data: make([]byte, int(n)*sizes[t])}
	for i := range int(n) {
		put(t, b.Data, i, f(i))
	}
	return b
}

// out returns n elements that the kernel sets. They start as garbage.
func out(t string, n int64) *Buffer {
	b := &Buffer{Type: t, Data: make([]byte, int(n)*sizes[t]), Out: true}
	for i := range b.Data {
		b.Data[i] = 0x5a
	}
	return b
}

// inout returns a buffer that the kernel updates.
func inout(b *Buffer) *Buffer {
	b.Out = true
	return b
}

// Precision bits and smallest exponents of the floating-point types.
var formats = map[string]struct{ bits, least int }{"f16": {11, -14}, "bf16": {8, -126}, "f32": {24, -126}, "f64": {53, -1022}}

// ulps returns the distance of two numbers in units of the last place of want.
func ulps(t string, got, want float64) float64 {
	switch {
	case got == want || got != got && want != want:
		return 0
	case math.IsInf(want, 0) || want != want || got != got:
		return math.Inf(1)
	}
	f := formats[t]
	_, e := math.Frexp(want)
	unit := math.Ldexp(1, max(e-1, f.least)-f.bits+1)
	return math.Abs(got-want) / unit
}

// Compare compares the results of a case with those of its twin. It returns the largest difference
// in units of the last place, and an error if a result differs by more than the case allows.
func Compare(c *Case, got, want [][]byte) (worst float64, err error) {
	n := 0
	for _, a := range c.Args {
		b, ok := a.(*Buffer)
		if !ok || !b.Out {
			continue
		}
		g, w := got[n], want[n]
		n++
		t, size := b.Type, sizes[b.Type]
		if t == "c64" || t == "c128" {
			t, size = map[string]string{"c64": "f32", "c128": "f64"}[t], size/2
		}
		for i := range len(g) / size {
			if string(g[i*size:(i+1)*size]) == string(w[i*size:(i+1)*size]) {
				continue
			}
			if !isFloat(t) {
				return math.Inf(1), fmt.Errorf("%v: output %d, element %d: bytes %x, want %x", c, n-1, i, g[i*size:(i+1)*size], w[i*size:(i+1)*size])
			}
			x, y := get(t, g, i), get(t, w, i)
			d := ulps(t, x, y)
			if math.Abs(x-y) > c.Rel*math.Abs(y)+c.Abs || c.Rel+c.Abs == 0 {
				worst = max(worst, d)
				if !(d <= c.ULP) && err == nil {
					err = fmt.Errorf("%v: output %d, element %d: %g, want %g (%.3g ulp)", c, n-1, i, x, y, d)
				}
			}
		}
	}
	return worst, err
}
