package data

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/format/unsized"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"filenames: string", "compression_type: string", "buffer_size: int64"}
	files := func(name, doc string, in []string, open opener) {
		register(opdef.Def{Name: name, Doc: doc, In: in, Attrs: []string{metadata}, Stateful: true, Class: opdef.FilesRead},
			func(n *node, ctx *kernel.Context) (dataset, error) { return newFiles(n, ctx, open) })
	}
	files("TextLineDataset", "Creates a dataset of the lines of text files.", in, openLines)
	files("TFRecordDataset", "Creates a dataset of the records of TFRecord files.", in, openRecords)
	files("TFRecordDatasetV2", "Creates a dataset of the records of TFRecord files, starting at a byte offset in each file.",
		append(in[:3:3], "byte_offsets: int64"), openRecords)
}

// recordReader reads the records of one file, then returns io.EOF.
type recordReader interface {
	record() (string, error)
}

// opener returns a reader of the records in a file's contents.
type opener func(f *fileio.File, compression string) (recordReader, error)

// filesDataset contains the records of files.
type filesDataset struct {
	spec
	files       fileio.Files
	names       []string
	offsets     []int64 // start offset in each file; nil for 0
	compression string
	open        opener
}

func newFiles(n *node, ctx *kernel.Context, open opener) (*filesDataset, error) {
	names, err := fileNames(ctx)
	if err != nil {
		return nil, err
	}
	d := &filesDataset{
		spec:  spec{[]tensor.DType{tensor.String}, []tensor.PartialShape{tensor.MakePartial()}},
		files: n.Files(), names: names, open: open,
	}
	if d.compression, err = compression(n, ctx); err != nil {
		return nil, err
	}
	if err := checkBuffer(n, ctx); err != nil {
		return nil, err
	}
	if n.Op.Name == "TFRecordDatasetV2" {
		d.offsets = append(d.offsets, tensor.Values[int64](ctx.Input(3))...)
		if len(d.offsets) > 0 && len(d.offsets) != len(names) {
			return nil, status.InvalidArgumentf("`byte_offsets` must be empty or have the size of `filenames`")
		}
	}
	return d, nil
}

// checkBuffer checks buffer_size, which has no other use. The buffer size of TFRecord files may be
// unspecified.
func checkBuffer(n *node, ctx *kernel.Context) error {
	size, err := scalar[int64](n, ctx, "buffer_size")
	switch {
	case err == nil && size <= 0 && strings.Contains(n.Op.Name, "CSV"):
		return status.InvalidArgumentf("buffer_size should be positive")
	case err != nil || size >= 0:
		return err
	case n.Op.Name == "TextLineDataset":
		return status.InvalidArgumentf("`buffer_size` must be >= 0 (0 == default)")
	case size == unspecified:
		return nil
	}
	return status.InvalidArgumentf("`buffer_size` must be >= 0 (0 == no buffering)")
}

// unspecified is the buffer size that means "not specified".
const unspecified = -1

// cmpError returns err, or an error with the given text if err is nil.
func cmpError(err error, text string) error {
	if err != nil {
		return err
	}
	return status.InvalidArgumentf("%s", text)
}

func fileNames(ctx *kernel.Context) ([]string, error) {
	in := ctx.Input(0)
	if in.Rank() > 1 {
		return nil, status.InvalidArgumentf("`filenames` must be a scalar or a vector.")
	}
	return append([]string(nil), tensor.Values[string](in)...), nil
}

func compression(n *node, ctx *kernel.Context) (string, error) {
	kind, err := scalar[string](n, ctx, "compression_type")
	if err != nil {
		return "", err
	}
	switch kind {
	case "", "ZLIB", "GZIP":
		return kind, nil
	}
	return "", status.InvalidArgumentf("Unsupported compression_type.")
}

func (d *filesDataset) cardinality() int64 { return unknown }

func (d *filesDataset) iterate(*run) (iterator, error) { return &filesIterator{d: d}, nil }

type filesIterator struct {
	d    *filesDataset
	i    int64 // index of the file
	n    int64 // index of the next record in the file
	file *fileio.File
	from recordReader // nil between files
}

func (it *filesIterator) next(r *run) (element, error) {
	for it.i < int64(len(it.d.names)) {
		if it.from == nil {
			if err := it.begin(r); err != nil {
				it.i++
				return nil, err
			}
		}
		it.file.Use(r.ctx.Context())
		text, err := it.from.record()
		if err == nil {
			it.n++
			return element{tensor.Scalar(text)}, nil
		}
		it.end()
		it.i++
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return nil, errEnd
}

// fileBuffer is the size of the buffer of an open file in bytes.
const fileBuffer = 1 << 18

// begin opens the current file. It is closed at its end, or by a finalizer if the iterator is
// dropped.
func (it *filesIterator) begin(r *run) error {
	name := it.d.names[it.i]
	if !membudget.Take(fileBuffer) {
		return status.ResourceExhaustedf("There is not enough memory for further open files of datasets (--memory-limit).")
	}
	f, err := it.d.files.In(r.ctx.Context()).Open(name)
	if err != nil {
		return err
	}
	if it.d.offsets != nil {
		if _, err := f.Seek(it.d.offsets[it.i], io.SeekStart); err != nil {
			f.Close()
			return err
		}
	}
	it.file, it.n = f, 0
	if it.from, err = it.d.open(f, it.d.compression); err != nil {
		it.end()
	}
	return err
}

func (it *filesIterator) end() {
	it.file.Close()
	it.file, it.from = nil, nil
}

// state saves the number of records read from the file; loading reads and skips them.
func (it *filesIterator) state(a *archive) {
	a.int(&it.i)
	a.int(&it.n)
	if !a.loading || a.err != nil || it.n == 0 || it.i >= int64(len(it.d.names)) {
		return
	}
	n := it.n
	if it.i < 0 {
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
		return
	}
	if err := it.begin(a.run); err != nil {
		a.fail(err)
		return
	}
	for it.n < n {
		if _, err := it.from.record(); err != nil {
			a.fail(status.DataLossf("%s has fewer records than when the iterator was saved", it.d.names[it.i]))
			return
		}
		it.n++
	}
}

// decompress returns a reader of the decompressed contents.
func decompress(r io.Reader, compression string) (*bufio.Reader, error) {
	var err error
	switch compression {
	case "GZIP":
		r, err = gzip.NewReader(r)
	case "ZLIB":
		r, err = zlib.NewReader(r)
	}
	switch {
	case errors.Is(err, io.EOF): // an empty file is valid
		return bufio.NewReader(strings.NewReader("")), nil
	case err != nil:
		return nil, status.DataLossf("cannot decompress: %v", err)
	}
	return bufio.NewReaderSize(r, fileBuffer), nil
}

// lines reads the lines of a text without their line ends.
type lines struct{ *bufio.Reader }

func openLines(f *fileio.File, compression string) (recordReader, error) {
	from, err := decompress(f, compression)
	return lines{from}, err
}

func (l lines) record() (string, error) {
	line, err := unsized.Line(l.Reader)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}

// records reads the records of a TFRecord file.
type records struct{ *record.Reader }

func openRecords(f *fileio.File, compression string) (recordReader, error) {
	from, err := record.NewReader(bufio.NewReaderSize(f, fileBuffer), record.Compression(compression))
	return records{from}, err
}

func (r records) record() (string, error) {
	b, err := r.Next()
	if err != nil {
		return "", err
	}
	return unsized.String(b)
}
