package parsing

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "DecodeWav", Doc: "Decodes a 16-bit PCM WAV file to a float tensor [samples, channels] in the range -1 to 1.",
		In:    []string{"contents: string"},
		Out:   []string{"audio: float32", "sample_rate: int32"},
		Attrs: []string{"desired_channels: int = -1", "desired_samples: int = -1"},
		Shape: func(c *opdef.ShapeContext) error {
			for _, dim := range []string{"channels", "samples"} {
				if n := c.Attrs.Int("desired_" + dim); n < -1 {
					return status.InvalidArgumentf("%s must be non-negative, got %d", dim, n)
				}
			}
			c.Out[0] = shapefn.Of(int64(c.Attrs.Int("desired_samples")), int64(c.Attrs.Int("desired_channels")))
			c.Out[1] = shapefn.Of()
			return shapefn.CheckRanks(c, 0, 0)
		},
	}, newDecodeWav)
	kernel.RegisterFunc(opdef.Def{
		Name: "EncodeWav", Doc: "Encodes audio [samples, channels] in the range -1 to 1 as a 16-bit PCM WAV file.",
		In:  []string{"audio: float32", "sample_rate: int32"},
		Out: []string{"contents: string"},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = shapefn.Of()
			return shapefn.CheckRanks(c, 0, 2, 0)
		},
	}, encodeWav)
}

// Constants of the RIFF WAVE format: a "RIFF" chunk contains chunks of a name, a length and that
// many bytes. "fmt " describes the samples in "data".
const (
	wavHeader = 44 // size of the written header in bytes
	wavPCM    = 1
	wavScale  = 1 << 15
)

// wavExtras lists the chunks that may precede the format chunk.
var wavExtras = []string{"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"}

// chunks reads a file sequentially.
type chunks struct{ rest string }

func (c *chunks) text(n int) (string, error) {
	if n > len(c.rest) {
		return "", status.InvalidArgumentf("Data too short when trying to read string")
	}
	s := c.rest[:n]
	c.rest = c.rest[n:]
	return s, nil
}

// number reads an unsigned integer of n bytes.
func (c *chunks) number(n int) (uint32, error) {
	if n > len(c.rest) {
		return 0, status.InvalidArgumentf("Data too short when trying to read string")
	}
	var b [4]byte
	copy(b[:], c.rest[:n])
	c.rest = c.rest[n:]
	return binary.LittleEndian.Uint32(b[:]), nil
}

func (c *chunks) expect(want string) error {
	got, err := c.text(len(want))
	if err == nil && got != want {
		err = status.InvalidArgumentf("Header mismatch: Expected %s but found %s", want, got)
	}
	return err
}

// wav holds the chunks of a file.
type wav struct {
	channels, rate uint32
	samples        string // two bytes per sample
}

func readWav(file string) (*wav, error) {
	c := &chunks{file}
	if err := c.expect("RIFF"); err != nil {
		return nil, err
	}
	if _, err := c.number(4); err != nil {
		return nil, err
	}
	if err := c.expect("WAVE"); err != nil {
		return nil, err
	}
	for {
		name, err := c.text(4)
		if err != nil {
			return nil, err
		}
		if name == "fmt " {
			break
		}
		if !slices.Contains(wavExtras, name) {
			return nil, status.InvalidArgumentf("Unexpected field %s", name)
		}
		n, err := c.number(4)
		if err != nil {
			return nil, err
		}
		if _, err := c.text(int(n)); err != nil {
			return nil, err
		}
	}
	w := &wav{}
	if err := w.readFormat(c); err != nil {
		return nil, err
	}
	return w, w.readData(c)
}

func (w *wav) readFormat(c *chunks) error {
	var size, format, perSecond, perFrame, bits uint32
	for _, field := range []struct {
		value *uint32
		bytes int
		check func() error
	}{
		{&size, 4, func() error {
			if size != 16 && size != 18 {
				return status.InvalidArgumentf("Bad format chunk size for WAV: Expected 16 or 18, but got%d", size)
			}
			return nil
		}},
		{&format, 2, func() error {
			if format != wavPCM {
				return status.InvalidArgumentf("Bad audio format for WAV: Expected 1 (PCM), but got%d", format)
			}
			return nil
		}},
		{&w.channels, 2, func() error {
			if w.channels < 1 {
				return status.InvalidArgumentf("Bad number of channels for WAV: Expected at least 1, but got %d", w.channels)
			}
			return nil
		}},
		{&w.rate, 4, nil}, {&perSecond, 4, nil}, {&perFrame, 2, nil},
		{&bits, 2, func() error { return w.checkBytes(bits, perFrame, perSecond) }},
	} {
		var err error
		if *field.value, err = c.number(field.bytes); err == nil && field.check != nil {
			err = field.check()
		}
		if err != nil {
			return err
		}
	}
	if size == 18 {
		c.rest = c.rest[min(2, len(c.rest)):]
	}
	return nil
}

func (w *wav) checkBytes(bits, perFrame, perSecond uint32) error {
	switch {
	case bits != 16:
		return status.InvalidArgumentf("Can only read 16-bit WAV files, but received %d", bits)
	case perFrame != 2*w.channels:
		return status.InvalidArgumentf("Bad bytes per sample in WAV header: Expected %d but got %d", 2*w.channels, perFrame)
	case uint64(perSecond) != uint64(perFrame)*uint64(w.rate):
		return status.InvalidArgumentf("Bad bytes per second in WAV header: Expected %d but got %d (sample_rate=%d, bytes_per_sample=%d)",
			uint64(perFrame)*uint64(w.rate), perSecond, w.rate, perFrame)
	}
	return nil
}

func (w *wav) readData(c *chunks) error {
	found := false
	for c.rest != "" {
		name, err := c.text(4)
		if err != nil {
			return err
		}
		size, err := c.number(4)
		if err != nil {
			return err
		}
		switch {
		case size > math.MaxInt32:
			return status.InvalidArgumentf("WAV data chunk '%s' is too large: %d bytes, but the limit is %d", name, size, math.MaxInt32)
		case name != "data":
			c.rest = c.rest[min(int(size), len(c.rest)):]
			continue
		case found:
			return status.InvalidArgumentf("More than one data chunk found in WAV")
		}
		found = true
		if w.samples, err = c.text(int(size / (2 * w.channels) * (2 * w.channels))); err != nil {
			return err
		}
	}
	if !found {
		return status.InvalidArgumentf("No data chunk found in WAV")
	}
	return nil
}

func newDecodeWav(c *kernel.Construction) (kernel.Kernel, error) {
	channels, samples := c.Attrs.Int("desired_channels"), c.Attrs.Int("desired_samples")
	return kernel.Func(func(ctx *kernel.Context) error {
		if s := ctx.Input(0).Shape(); len(s) != 0 {
			return status.InvalidArgumentf("contents must be scalar, got shape %v", s)
		}
		w, err := readWav(tensor.Value[string](ctx.Input(0)))
		if err != nil {
			return err
		}
		has, n := int(w.channels), len(w.samples)/2/int(w.channels)
		shape := tensor.Shape{int64(n), int64(has)}
		if samples != -1 {
			shape[0] = int64(samples)
		}
		if channels != -1 {
			shape[1] = int64(channels)
		}
		out, err := ctx.AllocateZeros(0, shape)
		if err != nil {
			return err
		}
		// Channels beyond those in the file repeat its last one. Samples beyond its end are
		// silence.
		dst, width := tensor.Values[float32](out), int(shape[1])
		for i := range min(n, int(shape[0])) {
			for ch := range width {
				at := 2 * (i*has + min(ch, has-1))
				v := int16(uint16(w.samples[at]) | uint16(w.samples[at+1])<<8)
				dst[i*width+ch] = float32(v) / wavScale
			}
		}
		ctx.SetOutput(1, tensor.Scalar(int32(w.rate)))
		return nil
	}), nil
}

func encodeWav(ctx *kernel.Context) error {
	audio, rates := ctx.Input(0), ctx.Input(1)
	switch {
	case audio.Rank() != 2:
		return status.InvalidArgumentf("audio must be 2-dimensional%v", audio.Shape())
	case rates.Rank() != 0:
		return status.InvalidArgumentf("Input sample_rate should be a scalar tensor, got %v instead.", rates.Shape())
	case audio.NumElements() >= math.MaxInt32:
		return status.InvalidArgumentf("Cannot encode audio with >= max int32 elements")
	}
	rate, channels := intarg.Scalar(rates), audio.Dim(1)
	switch {
	case rate <= 0:
		return status.InvalidArgumentf("sample_rate must be in (0, 2^32), got: %d", uint64(rate))
	case channels == 0 || channels > math.MaxUint16:
		return status.InvalidArgumentf("num_channels must be in (0, 2^16), got: %d", channels)
	}
	size := 2 * audio.NumElements()
	b := membudget.MakeCap[byte](wavHeader + size)
	le := binary.LittleEndian
	b = le.AppendUint32(append(b, "RIFF"...), uint32(wavHeader-8+size))
	b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
	b = le.AppendUint16(le.AppendUint16(b, wavPCM), uint16(channels))
	b = le.AppendUint32(le.AppendUint32(b, uint32(rate)), uint32(rate)*2*uint32(channels))
	b = le.AppendUint16(le.AppendUint16(b, uint16(2*channels)), 16)
	b = le.AppendUint32(append(b, "data"...), uint32(size))
	for _, v := range tensor.Values[float32](audio) {
		s := int16(0) // NaN samples become silence
		if v == v {
			s = int16(max(math.MinInt16, min(math.MaxInt16, math.Round(float64(v*wavScale)))))
		}
		b = le.AppendUint16(b, uint16(s))
	}
	membudget.MustTake(int64(len(b))) // of the copy
	ctx.SetOutput(0, tensor.Scalar(string(b)))
	return nil
}
