package summary

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

// TestImages compares pixels, because PNG encoders produce different bytes for the same image.
func TestImages(t *testing.T) {
	text, err := os.ReadFile("testdata/images.pixels")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSpace(string(text)), "\n\n")[1:]
	for i, block := range blocks {
		lines := strings.Split(block, "\n")
		in, err := kerneltest.ParseTensor(strings.TrimPrefix(lines[0], "image "))
		if err != nil {
			t.Fatal(err)
		}
		out := kerneltest.Run(t, "ImageSummary", map[string]any{"T": in.DType()}, tensor.Scalar("t"), in)
		values, err := summary.Unmarshal([]byte(tensor.Value[string](&out[0])))
		if err != nil || len(values) != len(lines)-1 {
			t.Fatalf("%d: %d images, want %d, %v", i, len(values), len(lines)-1, err)
		}
		for j, v := range values {
			m, ok := v.Data.(summary.Image)
			if !ok {
				t.Fatalf("%d: the value is a %T", i, v.Data)
			}
			got := fmt.Sprintf("%s %d %d %d %s", v.Tag, m.Height, m.Width, m.Channels, pixels(t, m.Encoded, m.Channels))
			if got != lines[j+1] {
				t.Errorf("%d: got  %s\nwant %s", i, got, lines[j+1])
			}
		}
	}
}

// pixels decodes an image and formats it as a tensor.
func pixels(t *testing.T, encoded []byte, channels int) string {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	size := m.Bounds().Size()
	var b strings.Builder
	fmt.Fprintf(&b, "uint8 [%d,%d,%d]", size.Y, size.X, channels)
	for y := range size.Y {
		for x := range size.X {
			c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
			for _, v := range []uint8{c.R, c.G, c.B, c.A}[:channels] {
				fmt.Fprintf(&b, " %d", v)
			}
		}
	}
	return b.String()
}
