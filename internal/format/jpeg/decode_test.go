package jpeg

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"image/jpeg"
	"math"
	"os"
	"strings"
	"testing"
)

// hills is a picture with slopes, edges and noise.
func hills(height, width int) []uint8 {
	pix := make([]uint8, 0, height*width*3)
	noise := uint32(1)
	for y := range height {
		for x := range width {
			noise = noise*1664525 + 1013904223
			pix = append(pix, uint8(x*3+y), uint8((x/5+y/7)%2*160+40), uint8(x*y/16)+uint8(noise>>29))
		}
	}
	return pix
}

// files are the files of the tests, which were written by libjpeg-turbo.
func files(t testing.TB) map[string]string {
	all := map[string]string{}
	found, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if name, ok := strings.CutSuffix(f.Name(), ".jpg"); ok {
			data, err := os.ReadFile("testdata/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(data)
		}
	}
	return all
}

// The pixels are those that TensorFlow 2.21 decodes. testdata/pixels has checksums of them, written
// by testdata/pixels.py.
func TestDecode(t *testing.T) {
	want, err := os.ReadFile("testdata/pixels")
	if err != nil {
		t.Fatal(err)
	}
	all, lines := files(t), strings.Split(strings.TrimSpace(string(want)), "\n")
	for _, line := range lines {
		var name, result string
		var o DecodeOptions
		if _, err := fmt.Sscanf(line, "%s %d %d %t %t %d %d %s", &name, &o.Channels, &o.Ratio, &o.Smooth, &o.Fast, &o.Left, &o.Width, &result); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got := "error"
		if p, err := Decode(t.Context(), all[name], o); err == nil {
			got = fmt.Sprintf("%dx%d:%08x", p.Height, p.Width, crc32.ChecksumIEEE(p.Pix))
		}
		if got != result {
			t.Errorf("%s %+v: got %s, want %s", name, o, got, result)
		}
	}
	if n := len(all) * 2 * 4 * 2 * 2 * 3; len(lines) != n {
		t.Errorf("%d lines, want %d", len(lines), n)
	}
}

// The standard library has another rounding.
func TestStandardLibrary(t *testing.T) {
	for name, data := range files(t) {
		img, err := jpeg.Decode(strings.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode(t.Context(), data, DecodeOptions{Channels: 3, Ratio: 1})
		if err != nil {
			t.Fatal(name, err)
		}
		sum := 0.0
		for i := range p.Height * p.Width {
			r, g, b, _ := img.At(i%p.Width, i/p.Width).RGBA()
			for c, v := range []uint32{r, g, b} {
				sum += math.Abs(float64(p.Pix[3*i+c]) - float64(v>>8))
			}
		}
		if mean := sum / float64(len(p.Pix)); mean > 1 {
			t.Errorf("%s: pixels differ by %g", name, mean)
		}
	}
}

// Damaged files end with an error or have pixels, and files that are cut do not decode.
func TestDamagedFiles(t *testing.T) {
	for name, data := range files(t) {
		body := len(data) - 2
		for n := range body {
			if p, err := Decode(t.Context(), data[:n], DecodeOptions{Channels: 3, Ratio: 1}); err == nil && n < body-8 {
				t.Errorf("%s: %d of %d bytes: %dx%d pixels", name, n, len(data), p.Height, p.Width)
			}
			bad := []byte(data)
			bad[n] ^= byte(1 + n%255)
			_, _ = Decode(t.Context(), string(bad[:min(len(bad), 1<<16)]), DecodeOptions{Channels: 1 + 2*(n%2), Ratio: 1 << (n % 4), Smooth: true})
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range files(f) {
		f.Add(data, true, uint8(0))
	}
	f.Fuzz(func(t *testing.T, data string, color bool, ratio uint8) {
		o := DecodeOptions{Channels: 1, Ratio: 1 << (ratio % 4), Smooth: true, Fast: ratio > 3}
		if color {
			o.Channels = 3
		}
		for i := 0; i+9 < len(data); i++ {
			frame := data[i] == 0xff && data[i+1] >= baseline && data[i+1] <= progressive
			if frame && (data[i+5] > 2 || data[i+7] > 2) {
				t.Skip("a large picture")
			}
		}
		if p, err := Decode(t.Context(), data, o); err == nil && len(p.Pix) != p.Height*p.Width*o.Channels {
			t.Errorf("%d values for %dx%d pixels", len(p.Pix), p.Height, p.Width)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := Encode(hills(480, 640), 480, 640, 3, Options{Quality: 90, Halve: true})
	for name, decode := range map[string]func() error{
		"fast": func() error {
			_, err := Decode(b.Context(), data, DecodeOptions{Channels: 3, Ratio: 1, Smooth: true, Fast: true})
			return err
		},
		"accurate": func() error {
			_, err := Decode(b.Context(), data, DecodeOptions{Channels: 3, Ratio: 1, Smooth: true})
			return err
		},
		"standard library": func() error {
			_, err := jpeg.Decode(bytes.NewReader([]byte(data)))
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
