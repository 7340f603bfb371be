package summary

import (
	"encoding/binary"
	"math"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Audio is an encoded sound.
type Audio struct {
	SampleRate  float32 // frames per second
	Channels    int64
	Frames      int64
	Encoded     []byte // a WAV file if [NewAudio] has made it
	ContentType string // MIME type, "audio/wav"
}

// NewAudio encodes samples as a WAV file with 16 bits per sample. samples holds frames, each with
// one sample in [-1, 1] per channel. The error has the code InvalidArgument.
func NewAudio(sampleRate float32, channels int, samples []float32) (Audio, error) {
	if channels <= 0 || len(samples)%channels != 0 || len(samples) > math.MaxInt32/2-64 || channels > math.MaxUint16 {
		return Audio{}, status.InvalidArgumentf("%d samples cannot be divided into frames of %d channels", len(samples), channels)
	}
	if !(sampleRate > 0) || sampleRate > math.MaxInt32 {
		return Audio{}, status.InvalidArgumentf("sample_rate must be > 0")
	}
	rate := uint32(max(math.RoundToEven(float64(sampleRate)), 1))
	size := uint32(2 * len(samples))
	b := append([]byte(nil), "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, 36+size)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1) // uncompressed
	b = binary.LittleEndian.AppendUint16(b, uint16(channels))
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*2*uint32(channels))
	b = binary.LittleEndian.AppendUint16(b, 2*uint16(channels))
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, size)
	for _, v := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(sample(v)))
	}
	return Audio{sampleRate, int64(channels), int64(len(samples) / channels), b, "audio/wav"}, nil
}

// sample converts a number in [-1, 1] to 16 bits.
func sample(v float32) int16 {
	return int16(max(math.MinInt16, min(math.MaxInt16, math.Round(float64(v*32768)))))
}

// Sounds encodes the first limit sounds of a batch: a float32 tensor of shape [batch, frames] or
// [batch, frames, channels]. The error has the code InvalidArgument.
func Sounds(t *tensor.Tensor, limit int, sampleRate float32) ([]Audio, error) {
	s := t.Shape()
	if len(s) < 2 || len(s) > 3 {
		return nil, status.InvalidArgumentf("Tensor must be 3-D or 2-D, got: %v", s)
	}
	if !(sampleRate > 0) {
		return nil, status.InvalidArgumentf("sample_rate must be > 0")
	}
	channels := 1
	if len(s) == 3 {
		channels = int(s[2])
	}
	size := int(s[1]) * channels
	sounds := make([]Audio, min(limit, int(s[0])))
	for i := range sounds {
		var err error
		if sounds[i], err = NewAudio(sampleRate, channels, tensor.Values[float32](t)[i*size:(i+1)*size]); err != nil {
			return nil, err
		}
	}
	return sounds, nil
}
