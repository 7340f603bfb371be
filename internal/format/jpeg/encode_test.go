package jpeg

import (
	"image"
	"image/jpeg"
	"math/rand/v2"
	"strings"
	"testing"
)

// noisy returns an image of waves with noise of the given amplitude.
func noisy(height, width, channels, noise int) []uint8 {
	r := rand.New(rand.NewPCG(1, 2))
	pix := make([]uint8, height*width*channels)
	for i := range pix {
		y, x := i/channels/width, i/channels%width
		pix[i] = uint8(min(max(40+3*(y%50)+x%60+r.IntN(noise+1), 0), 255))
	}
	return pix
}

func decoded(t *testing.T, text string) image.Image {
	t.Helper()
	img, err := jpeg.Decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// distance returns the greatest difference of two images in any channel.
func distance(a, b image.Image) (most int) {
	r := a.Bounds()
	for y := range r.Dy() {
		for x := range r.Dx() {
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			for _, d := range []int{int(r1) - int(r2), int(g1) - int(g2), int(b1) - int(b2)} {
				most = max(most, d>>8, -d>>8)
			}
		}
	}
	return most
}

func source(pix []uint8, height, width, channels int) image.Image {
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range height * width {
		for c := range 3 {
			out.Pix[4*i+c] = pix[i*channels+c%channels]
		}
		out.Pix[4*i+3] = 255
	}
	return out
}

// checkModes encodes an image in all modes. All files must have the same coefficients.
func checkModes(t *testing.T, pix []uint8, height, width, channels, quality int, halve bool) image.Image {
	t.Helper()
	first := decoded(t, Encode(pix, height, width, channels, Options{Quality: quality, Halve: halve}))
	if first.Bounds() != image.Rect(0, 0, width, height) {
		t.Fatalf("the decoded image has the bounds %v, want %d by %d", first.Bounds(), width, height)
	}
	for _, o := range []Options{{Optimize: true}, {Progressive: true}} {
		o.Quality, o.Halve = quality, halve
		if d := distance(first, decoded(t, Encode(pix, height, width, channels, o))); d != 0 {
			t.Errorf("%d by %d by %d, %+v: the pixels differ from those of a baseline file by %d", height, width, channels, o, d)
		}
	}
	return first
}

func TestImages(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 1}, {1, 1, 3}, {7, 9, 3}, {16, 17, 3}, {33, 16, 3}, {40, 31, 1}, {64, 80, 3}} {
		pix := noisy(size[0], size[1], size[2], 20)
		full := checkModes(t, pix, size[0], size[1], size[2], 100, false)
		if d := distance(full, source(pix, size[0], size[1], size[2])); d > 4 {
			t.Errorf("%v: the best quality differs by %d", size, d)
		}
		checkModes(t, pix, size[0], size[1], size[2], 60, true)
	}
}

// TestRunsEnd encodes images that end runs of blocks early: more blocks without coefficients than
// one symbol can count, and more correction bits than libjpeg buffers.
func TestRunsEnd(t *testing.T) {
	checkModes(t, make([]uint8, 1500*1500), 1500, 1500, 1, 50, false)
	checkModes(t, noisy(256, 256, 1, 200), 256, 256, 1, 100, false)
}

// TestFiles compares with image/jpeg in the mode that both support. Both round as libjpeg does.
func TestFiles(t *testing.T) {
	const height, width = 40, 24
	pix := noisy(height, width, 1, 30)
	gray := &image.Gray{Pix: pix, Stride: width, Rect: image.Rect(0, 0, width, height)}
	var want strings.Builder
	if err := jpeg.Encode(&want, gray, &jpeg.Options{Quality: 80}); err != nil {
		t.Fatal(err)
	}
	got := Encode(pix, height, width, 1, Options{Quality: 80})
	if d := distance(decoded(t, got), decoded(t, want.String())); d != 0 {
		t.Errorf("pixels differ from image/jpeg's by %d", d)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add([]byte("\x00\xff\x80 seed of an image"), uint8(9), uint8(17), uint8(50), uint8(3))
	f.Add([]byte{}, uint8(1), uint8(40), uint8(100), uint8(0))
	f.Fuzz(func(t *testing.T, seed []byte, height, width, quality, flags uint8) {
		h, w, channels := int(height)+1, int(width)+1, 1+int(flags&2)
		pix := make([]uint8, h*w*channels)
		for i := range pix {
			if len(seed) > 0 {
				pix[i] = seed[i%len(seed)] + uint8(i/len(seed))
			}
		}
		checkModes(t, pix, h, w, channels, int(quality%101), flags&1 != 0)
	})
}

func BenchmarkEncode(b *testing.B) {
	const height, width = 512, 512
	pix := noisy(height, width, 3, 20)
	rgba := source(pix, height, width, 3)
	b.Run("own", func(b *testing.B) {
		b.SetBytes(int64(len(pix)))
		for b.Loop() {
			Encode(pix, height, width, 3, Options{Quality: 95, Halve: true})
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(pix)))
		for b.Loop() {
			var out strings.Builder
			if err := jpeg.Encode(&out, rgba, &jpeg.Options{Quality: 95}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
