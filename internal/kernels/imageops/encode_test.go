package imageops

import (
	"image/png"
	"strings"
	"testing"
)

// TestRowsOfPNG encodes ramps and noise, which use all predictions, and decodes them.
func TestRowsOfPNG(t *testing.T) {
	const height, width, channels = 200, 256, 3
	ramp, noise := make([]byte, 0, height*width*channels), make([]byte, height*width*channels)
	for y := range height {
		for x := range width {
			ramp = append(ramp, byte(y), byte(x), byte((x+y)/2))
		}
	}
	state := uint32(1)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = byte(state >> 24)
		if i/channels/width > height/2 { // smooth lower half
			noise[i] /= 32
		}
	}
	for name, pix := range map[string][]byte{"ramp": ramp, "noise": noise} {
		text, err := encodePNG(pix, height, width, channels, 1, 7)
		if err != nil {
			t.Fatal(err)
		}
		const most = 1150 // the size limit in TensorFlow's test of this ramp
		if name == "ramp" && len(text) > most {
			t.Errorf("a ramp takes %d bytes, want at most %d", len(text), most)
		}
		img, err := png.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(pix); i += channels {
			r, g, b, _ := img.At(i/channels%width, i/channels/width).RGBA()
			if byte(r) != pix[i] || byte(g) != pix[i+1] || byte(b) != pix[i+2] {
				t.Fatalf("%s: pixel %d is %d %d %d, want %v", name, i/channels, byte(r), byte(g), byte(b), pix[i:i+channels])
			}
		}
	}
}
