package simd

import (
	"fmt"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// Between is a position between two pixels of a row, which start with elements Lower and Upper.
// Share is the weight of the upper one. The assembly depends on the layout.
type Between struct {
	Lower, Upper int
	Share        float32
}

var lerps struct {
	slices levels[func(dst, a, b *float32, n int, share float32)]
	pixels levels[func(dst, src *float32, places *byte, n, channels int)]
}

// Lerp computes dst = a + (b-a)*share.
func Lerp(dst, a, b []float32, share float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	l := Current()
	if l == Generic || lerps.slices[l-1] == nil {
		for i, x := range a {
			dst[i] = x + float32((b[i]-x)*share)
		}
		return
	}
	for i := 0; i < len(dst); i += piece {
		bulk.SafePoint()
		lerps.slices[l-1](&dst[i], &a[i], &b[i], min(piece, len(dst)-i), share)
	}
}

// LerpPixels interpolates the pixels of dst, of the given number of channels, at the positions
// places in src.
func LerpPixels(dst, src []float32, places []Between, channels int) {
	for i := range places {
		if p := &places[i]; uint(p.Lower) > uint(len(src)-channels) || uint(p.Upper) > uint(len(src)-channels) {
			panic(fmt.Sprintf("simd: pixels of %d elements at %d and %d of %d", channels, p.Lower, p.Upper, len(src)))
		}
	}
	if channels == 0 || len(places) == 0 {
		return
	}
	dst = dst[:len(places)*channels]
	l := Current()
	if l == Generic || lerps.pixels[l-1] == nil {
		for i, p := range places {
			to, a, b := dst[i*channels:][:channels], src[p.Lower:][:channels], src[p.Upper:][:channels]
			for c := range to {
				to[c] = a[c] + float32((b[c]-a[c])*p.Share)
			}
		}
		return
	}
	step := max(1, piece/4/channels)
	for i := 0; i < len(places); i += step {
		lerps.pixels[l-1](&dst[i*channels], &src[0], (*byte)(unsafe.Pointer(&places[i])), min(step, len(places)-i), channels)
	}
}
