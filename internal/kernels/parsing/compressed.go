package parsing

import (
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "DecodeCompressed", Doc: "Decompresses strings.",
		In:    []string{"bytes: string"},
		Out:   []string{"output: string"},
		Attrs: []string{"compression_type: string = ''"},
		Shape: opdef.SameShape,
	}, newDecodeCompressed)
}

func newDecodeCompressed(c *kernel.Construction) (kernel.Kernel, error) {
	open, ok := map[string]func(io.Reader) (io.Reader, error){
		"":     func(r io.Reader) (io.Reader, error) { return r, nil },
		"ZLIB": func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
		"GZIP": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"ZSTD": nil, // see openZstd
	}[c.Attrs.String("compression_type")]
	if !ok {
		return nil, status.InvalidArgumentf("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
	}
	isZstd, isGzip := c.Attrs.String("compression_type") == "ZSTD", c.Attrs.String("compression_type") == "GZIP"
	return kernel.Func(func(ctx *kernel.Context) error {
		out, err := ctx.AllocateLike(0, ctx.Input(0))
		if err != nil {
			return err
		}
		dst := tensor.Values[string](out)
		at := progress(ctx.Context())
		for i, s := range tensor.Values[string](ctx.Input(0)) {
			if err := at.Pass(len(s)); err != nil {
				return err
			}
			var header zstd.Header
			if isZstd && (header.Decode([]byte(s[:min(len(s), zstd.HeaderMaxSize)])) != nil || !header.HasFCS) {
				return status.InvalidArgumentf("Failed to determine decompressed size")
			}
			// a string shorter than the header is compared as far as it goes
			if isGzip && len(s) >= 2 && s[:2] != gzipMagic {
				return status.DataLossf("inflate() failed with error -3: incorrect header check")
			}
			with := open
			if isZstd {
				with = openZstd(&header)
			}
			dst[i], err = decompress(&endingReader{strings.NewReader(s), ctx.Context()}, with)
			switch {
			case err != nil && ctx.Context().Err() != nil:
				return ctx.Context().Err()
			case err != nil && isZstd:
				return status.InvalidArgumentf("Failed to decompress zstd input: %w", err)
			case err != nil:
				return status.DataLossf("inflate() failed with error -3: %w", err)
			}
		}
		return nil
	}), nil
}

// openZstd returns a function that opens a string whose first frame has the given header. It asks
// for the memory of the window, which a decoder takes at once: a string of 14 bytes can claim 512
// MiB.
func openZstd(header *zstd.Header) func(io.Reader) (io.Reader, error) {
	const smallest = 8 << 20 // of the largest window of further frames
	size := header.WindowSize
	if header.SingleSegment {
		size = header.FrameContentSize
	}
	membudget.MustTake(int64(min(size, 1<<40))) //nolint:gosec // it is smaller
	window := min(max(header.WindowSize, smallest), zstd.MaxWindowSize)
	return func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	}
}

// gzipMagic is the prefix of gzip files.
const gzipMagic = "\x1f\x8b"

// endingReader reads until a context ends. A decompressor reads a few bytes for megabytes of text.
type endingReader struct {
	from io.Reader
	ctx  context.Context //nolint:containedctx // used within one call of a kernel
}

func (r *endingReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(b)
}

// decompress returns the decompressed data of s, up to the end if s is truncated. The result is
// limited to 2 GiB, as in TensorFlow.
func decompress(s io.Reader, open func(io.Reader) (io.Reader, error)) (string, error) {
	r, err := open(s)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if c, ok := r.(interface{ Close() }); ok { // zstd readers must be closed explicitly
		defer c.Close()
	}
	return readText(io.LimitReader(r, math.MaxInt32))
}

// readText reads until r ends, also in the middle of something. It counts the memory that it takes
// for pieces of the text, and then for all of it.
func readText(r io.Reader) (string, error) {
	const smallest, largest = 4 << 10, 1 << 20
	var pieces [][]byte
	size, next := 0, smallest
	for {
		piece := membudget.Make[byte](next)
		next = min(2*next, largest)
		n, err := io.ReadFull(r, piece)
		pieces, size = append(pieces, piece[:n]), size+n
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return "", err
		}
		membudget.MustTake(int64(size))
		var text strings.Builder
		text.Grow(size)
		for _, piece := range pieces {
			text.Write(piece)
		}
		return text.String(), nil
	}
}
