package simd

import (
	"slices"
	"testing"
)

func TestLerp(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, n := range lengths {
			a, b := random[float32](n, -9, 9), random[float32](n, -9, 9)
			dst, check := guarded[float32](n, 0, 1)
			Lerp(dst, a, b, 0.3)
			check(t)
			for i, got := range dst {
				if want := a[i] + float32((b[i]-a[i])*0.3); got != want {
					t.Fatalf("element %d of %d is %v, want %v", i, n, got, want)
				}
			}
		}
	})
}

func TestLerpPixels(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, channels := range []int{0, 1, 3, 4, 8, 9, 16, 17, 40, 64, 100} {
			src := random[float32](7*channels, -9, 9)
			var places []Between
			for i := range 6 {
				places = append(places, Between{i * channels, (i + i%2) * channels, float32(i) / 7})
			}
			dst, check := guarded[float32](len(places)*channels, 0, 1)
			LerpPixels(dst, src, places, channels)
			check(t)
			for i, p := range places {
				want := slices.Repeat([]float32{0}, channels)
				Lerp(want, src[p.Lower:], src[p.Upper:], p.Share)
				if got := dst[i*channels:][:channels]; !slices.Equal(got, want) {
					t.Fatalf("pixel %d of %d channels is %v, want %v", i, channels, got, want)
				}
			}
		}
		defer func() {
			if recover() == nil {
				t.Error("no panic for a pixel that is not there")
			}
		}()
		LerpPixels(make([]float32, 3), make([]float32, 5), []Between{{0, 3, 0}}, 3)
	})
}
