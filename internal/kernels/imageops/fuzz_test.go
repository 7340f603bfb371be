package imageops

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// FuzzDecode passes arbitrary files to the decoder. It must return an image or an InvalidArgument
// error.
func FuzzDecode(f *testing.F) {
	for _, file := range []string{"testdata/decode.txt", "testdata/webp.txt"} {
		cases, err := kerneltest.ReadCases(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range cases {
			if c.Kind == "case" && c.In[0].Rank() == 0 {
				f.Add(tensor.Value[string](&c.In[0]))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data string) {
		node, err := kerneltest.NewEnv().Make("DecodeImage", opdef.Attrs{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := node.Run(tensor.Scalar(data)); err != nil && status.CodeOf(err) != status.InvalidArgument {
			t.Fatal(err)
		}
	})
}

// TestPNGRoundTrip checks that decoding an encoded image returns the same pixels.
func TestPNGRoundTrip(t *testing.T) {
	env := kerneltest.NewEnv()
	for channels := int64(1); channels <= 4; channels++ {
		pix := make([]uint16, 2*3*channels)
		for i := range pix {
			pix[i] = uint16(i * 2711)
		}
		in, err := tensor.FromSlice(tensor.Shape{2, 3, channels}, pix)
		if err != nil {
			t.Fatal(err)
		}
		text := env.Run(t, "EncodePng", opdef.Attrs{"T": tensor.Uint16}, in)
		out := env.Run(t, "DecodePng", opdef.Attrs{"dtype": tensor.Uint16}, text)
		if diff := kerneltest.Diff(&out, &in, 0); diff != "" {
			t.Errorf("%d channels: %s", channels, diff)
		}
	}
}
