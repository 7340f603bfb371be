package fft

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The time for a row of a spectrogram follows from attributes, so the rows end with their step.
func TestSpectraEndWithTheirStep(t *testing.T) {
	spectrogram, err := tensor.Zeros(tensor.Float32, tensor.Shape{1, 10, 2})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelledAt(t, 5, "Mfcc", opdef.Attrs{"filterbank_channel_count": int64(256), "dct_coefficient_count": int64(256)},
		spectrogram, tensor.Scalar[int32](16_000))
	samples, err := tensor.Zeros(tensor.Float32, tensor.Shape{1000, 1})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelledAt(t, 5, "AudioSpectrogram", opdef.Attrs{"window_size": int64(100), "stride": int64(1)}, samples)
}
