package philox

import (
	"math"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// atLevels runs f at every vector level.
func atLevels(t *testing.T, f func(t *testing.T)) {
	for _, l := range simd.Levels()[1:] {
		t.Run(l.String(), func(t *testing.T) {
			defer simd.Force(simd.Force(l))
			f(t)
		})
	}
}

// filled returns n samples computed by portable Go.
func filled[T any](n int, g Generator, d *Distribution[T]) []T {
	defer simd.Force(simd.Force(simd.Generic))
	out := make([]T, n)
	d.Fill(g, out)
	return out
}

func testLevels[T comparable](t *testing.T, name string, d *Distribution[T]) {
	atLevels(t, func(t *testing.T) {
		for _, low := range []uint64{0, math.MaxUint32 - 40, 1<<63 - 1, math.MaxUint64 - 70} {
			g := At(0x123456789abcdef0, low, math.MaxUint64-1)
			for _, n := range []int{1, 3, 4, 5, 127, 128, 130, 1024, 1025, 4801} {
				got := make([]T, n)
				d.Fill(g, got)
				if want := filled(n, g, d); !slices.Equal(got, want) {
					at := slices.IndexFunc(got, func(T) bool { return true })
					for at < n && got[at] == want[at] {
						at++
					}
					t.Errorf("%s, %d from %#x: sample %d is %v, want %v", name, n, low, at, got[at], want[at])
				}
			}
		}
	})
}

func TestLevelsAgree(t *testing.T) {
	testLevels(t, "uniform", Uniform32)
	testLevels(t, "uniform float64", Uniform64)
	testLevels(t, "uniform half", UniformHalf)
	testLevels(t, "normal", NormalFloat32)
	testLevels(t, "normal float64", NormalFloat64)
	testLevels(t, "normal bfloat16", NormalBFloat)
	testLevels(t, "truncated normal", TruncatedFloat32)
	testLevels(t, "int64", UniformInt64[int64](-5, 1<<40))
}

// TestNormals tests a quarter of the possible arguments of the logarithm, the sine and the cosine.
func TestNormals(t *testing.T) {
	const block = 1 << 12
	words, want := make([]uint32, block), make([]float32, block)
	got := make([]float32, block)
	for first := uint32(0); first < 1<<23; first += 2 * block {
		for i := range uint32(block / 2) {
			words[2*i], words[2*i+1] = (first+i)*0x9e3779b1, first+i|0xff<<23
			want[2*i], want[2*i+1] = Normal32(words[2*i], words[2*i+1])
		}
		for _, l := range simd.Levels()[1:] {
			old := simd.Force(l)
			normals(got, words)
			simd.Force(old)
			for i, v := range got {
				if math.Float32bits(v) != math.Float32bits(want[i]) {
					t.Fatalf("%v: sample %d of the words %#x is %v, want %v", l, i%2, words[i&^1:i|1+1], v, want[i])
				}
			}
		}
	}
}

func BenchmarkFill(b *testing.B) {
	out := make([]float32, 1<<16)
	for _, bm := range []struct {
		name string
		d    *Distribution[float32]
	}{{"uniform", Uniform32}, {"normal", NormalFloat32}, {"truncated", TruncatedFloat32}} {
		for _, l := range simd.Levels() {
			b.Run(bm.name+"/"+l.String(), func(b *testing.B) {
				defer simd.Force(simd.Force(l))
				b.SetBytes(4 << 16)
				for b.Loop() {
					bm.d.Fill(New(1, 2), out)
				}
			})
		}
	}
}
