package data

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// failing returns a function that reads an error.
func failing(err error) func(context.Context, int) iter.Seq2[Element, error] {
	return func(context.Context, int) iter.Seq2[Element, error] { return failed(err) }
}

// maxLine bounds the length of a line, in bytes, so that a file that is not text cannot take all
// memory.
const maxLine = 16 << 20

// TextLines returns the lines of files, without their ends, as string scalars. Files whose names
// end in ".gz" are decompressed.
func TextLines(paths ...string) *Dataset {
	spec := []Spec{{tensor.String, tensor.MakePartial()}}
	return source(spec, unknown, func(context.Context, int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			for _, path := range paths {
				if !readLines(path, yield) {
					return
				}
			}
		}
	}, func(p *pipeline) op.Output { return p.lines(spec, paths) })
}

// lines adds a data set for each run of files that are compressed, or not, and concatenates them.
func (p *pipeline) lines(spec []Spec, paths []string) op.Output {
	runs := [][]string{{}}
	for i, path := range paths {
		if i > 0 && isCompressed(path) != isCompressed(paths[i-1]) {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], path)
	}
	types, shapes := components(spec)
	var all op.Output
	for i, run := range runs {
		compression := ""
		if len(run) > 0 && isCompressed(run[0]) {
			compression = "GZIP"
		}
		d := op.TextLineDataset(p.s, op.Const(p.s, run), op.Const(p.s, compression), p.number(fileBuffer))
		if i > 0 {
			d = op.ConcatenateDataset(p.s, all, d, types, shapes)
		}
		all = d
	}
	return all
}

// fileBuffer is the number of bytes of a file that a worker reads at a time, as in TensorFlow.
const fileBuffer = 256 << 10

func isCompressed(path string) bool { return strings.HasSuffix(path, ".gz") }

// readLines yields the lines of a file. It returns false after an error or the end of the loop.
func readLines(path string, yield func(Element, error) bool) bool {
	f, err := open(path)
	if err != nil {
		yield(nil, err)
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if !yield(Element{tensor.Scalar(lines.Text())}, nil) {
			return false
		}
	}
	if err := lines.Err(); err != nil {
		yield(nil, status.Errorf(status.DataLoss, "data: %s: %w", path, err))
		return false
	}
	return true
}

// open opens a file, and decompresses it if its name ends in ".gz".
func open(path string) (io.ReadCloser, error) {
	f, err := fileio.Files{}.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if !isCompressed(path) {
		return f, nil
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		f.Close()
		return nil, status.Errorf(status.DataLoss, "data: %s: %w", path, err)
	}
	return &unzipped{z, f}, nil
}

// unzipped closes the file below a decompressing reader.
type unzipped struct {
	*gzip.Reader
	file *fileio.File
}

// Close implements [io.Closer].
func (u *unzipped) Close() error { return errors.Join(u.Reader.Close(), u.file.Close()) }

// ReadIDX returns the tensor of a file in the format of the MNIST data sets. A file whose name ends
// in ".gz" is decompressed.
func ReadIDX(path string) (tensor.Tensor, error) {
	f, err := open(path)
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer f.Close()
	t, err := parseIDX(bufio.NewReader(f))
	if err != nil {
		return tensor.Tensor{}, status.Errorf(status.CodeOf(err), "%s: %w", path, err)
	}
	return t, nil
}

// idxTypes are the element types of the format, by their code.
var idxTypes = map[byte]tensor.DType{
	0x08: tensor.Uint8, 0x09: tensor.Int8, 0x0b: tensor.Int16, 0x0c: tensor.Int32, 0x0d: tensor.Float32, 0x0e: tensor.Float64,
}

func parseIDX(r io.Reader) (tensor.Tensor, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || head[0] != 0 || head[1] != 0 {
		return tensor.Tensor{}, status.DataLossf("data: not an IDX file")
	}
	dtype, ok := idxTypes[head[2]]
	if !ok {
		return tensor.Tensor{}, status.DataLossf("data: the IDX file has the unknown element type %#x", head[2])
	}
	sizes := make([]uint32, head[3])
	if err := binary.Read(r, binary.BigEndian, sizes); err != nil {
		return tensor.Tensor{}, status.Errorf(status.DataLoss, "data: the IDX file ends in its header: %w", err)
	}
	shape := make(tensor.Shape, len(sizes))
	for i, n := range sizes {
		shape[i] = int64(n)
	}
	if err := shape.Check(); err != nil {
		return tensor.Tensor{}, err
	}
	// The file is read before the tensor is allocated, so that its size bounds the memory.
	want := shape.NumElements() * int64(dtype.Size())
	b, err := io.ReadAll(io.LimitReader(r, want))
	if err != nil || int64(len(b)) != want {
		return tensor.Tensor{}, status.DataLossf("data: the IDX file has %d bytes of elements, want %d for shape %v", len(b), want, shape)
	}
	swap(b, dtype.Size())
	t, err := tensor.Alloc(dtype, shape)
	if err == nil {
		copy(t.Bytes(), b)
	}
	return t, err
}

// swap reverses the bytes of elements of the given size.
func swap(b []byte, size int) {
	for i := 0; size > 1 && i < len(b); i += size {
		for lo, hi := i, i+size-1; lo < hi; lo, hi = lo+1, hi-1 {
			b[lo], b[hi] = b[hi], b[lo]
		}
	}
}

// IDX returns the rows of files in the format of the MNIST data sets, such as images and labels.
func IDX(paths ...string) (*Dataset, error) {
	var columns []any
	for _, path := range paths {
		t, err := ReadIDX(path)
		if err != nil {
			return nil, err
		}
		columns = append(columns, t)
	}
	return FromSlices(columns...)
}
