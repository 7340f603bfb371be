package ioops

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/format/unsized"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// single is a file that is one record. A failed read is retried on the next call, as in TensorFlow.
type single struct {
	files fileio.Files
	key   string
	read  func(files fileio.Files, path string) (string, error)
}

func (s *single) next() (*entry, error) {
	value, err := s.read(s.files, s.key)
	if err != nil {
		return nil, err
	}
	return &entry{s.key, value}, io.EOF
}

func (s *single) use(ctx context.Context) { s.files = s.files.In(ctx) }

func (*single) close() error { return nil }

// opener opens a file as records.
type opener func(files fileio.Files, path string) (records, error)

// openName returns the file name as the only record.
func openName(files fileio.Files, path string) (records, error) {
	return &single{files, path, func(_ fileio.Files, path string) (string, error) { return path, nil }}, nil
}

func openWhole(files fileio.Files, path string) (records, error) {
	return &single{files, path, wholeFile}, nil
}

// opened is an open file.
type opened struct {
	path string
	file *fileio.File
	n    int64 // number of records read
}

func (o *opened) close() error { return o.file.Close() }

func (o *opened) use(ctx context.Context) { o.file.Use(ctx) }

// key returns the name of record n.
func (o *opened) key(n int64) string { return o.path + ":" + strconv.FormatInt(n, 10) }

// openFile opens a file, and asks for the memory of its buffer.
func openFile(files fileio.Files, path string) (opened, error) {
	if !membudget.Take(readerBuffer) {
		return opened{}, status.ResourceExhaustedf("There is not enough memory for further files of readers (--memory-limit).")
	}
	f, err := files.Open(path)
	return opened{path: path, file: f}, err
}

const readerBuffer = 256 << 10

// lines is a text file with one record for each line.
type lines struct {
	opened
	in *bufio.Reader
}

// openLines returns the constructor of readers that skip the first lines of a file.
func openLines(skip int) opener {
	return func(files fileio.Files, path string) (records, error) {
		o, err := openFile(files, path)
		if err != nil {
			return nil, err
		}
		l := &lines{o, bufio.NewReaderSize(o.file, readerBuffer)}
		for l.n < int64(skip) && err == nil {
			_, err = l.next()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			_ = o.close() // an error does not matter after reading
			return nil, err
		}
		return l, nil
	}
}

func (l *lines) next() (*entry, error) {
	line, err := unsized.Line(l.in)
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, fileio.Error(l.path, err)
	}
	l.n++
	return &entry{l.key(l.n), strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")}, nil
}

// framed is a TFRecord file.
type framed struct {
	opened
	in *record.Reader
}

// openFramed returns the constructor of readers of compressed files. An unknown compression means
// none, as in TensorFlow.
func openFramed(compression string) opener {
	c := record.Compression(compression)
	if c != record.ZLIB && c != record.GZIP {
		c = record.None
	}
	return func(files fileio.Files, path string) (records, error) {
		o, err := openFile(files, path)
		if err != nil {
			return nil, err
		}
		in, err := record.NewReader(o.file, c)
		if err != nil {
			_ = o.close() // an error does not matter after reading
			return nil, err
		}
		return &framed{o, in}, nil
	}
}

func (f *framed) next() (*entry, error) {
	at := f.in.Offset()
	b, err := f.in.Next()
	if err != nil {
		return nil, err
	}
	value, err := unsized.String(b)
	return &entry{f.key(at), value}, err
}

// sizes describes the layout of a file of fixed-length records, in bytes.
type sizes struct{ header, record, footer, hop int64 }

// fixed is a file of fixed-length records, which may overlap or have gaps between them.
type fixed struct {
	opened
	sizes
	in    io.Reader
	ahead []byte // bytes read from the start of the last record on
}

func openFixed(s sizes, encoding string) opener {
	return func(files fileio.Files, path string) (records, error) {
		o, err := openFile(files, path)
		if err != nil {
			return nil, err
		}
		f := &fixed{opened: o, sizes: s}
		if f.in, err = decompress(bufio.NewReaderSize(o.file, readerBuffer), encoding); err == nil {
			err = f.skip(s.header)
		}
		if errors.Is(err, io.EOF) {
			err = status.OutOfRangef("reached end of file")
		}
		if err != nil {
			_ = o.close() // an error does not matter after reading
			return nil, err
		}
		return f, nil
	}
}

// decompress returns a reader of the decompressed file for the encodings that TensorFlow supports.
// Any other encoding means none.
func decompress(in io.Reader, encoding string) (io.Reader, error) {
	var out io.Reader
	var err error
	switch encoding {
	case "ZLIB":
		out, err = zlib.NewReader(in)
	case "GZIP":
		out, err = gzip.NewReader(in)
	default:
		return in, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged(err)
	}
	return out, err
}

func damaged(err error) error { return status.DataLossf("inflate() failed: %v", err) }

// skip skips n bytes. It returns io.EOF if there are fewer.
func (f *fixed) skip(n int64) error {
	_, err := io.CopyN(io.Discard, f.in, n)
	return f.translate(err)
}

func (f *fixed) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.EOF
	}
	if _, known := errors.AsType[*status.Error](err); known {
		return err // of the file
	}
	return damaged(err)
}

func (f *fixed) next() (*entry, error) {
	if f.n > 0 {
		if err := f.advance(); err != nil {
			return nil, err
		}
	}
	missing := f.record + f.footer - int64(len(f.ahead))
	var err error
	if f.ahead, err = unsized.Exactly(f.ahead, f.in, missing); err != nil {
		return nil, f.translate(err)
	}
	f.n++
	value, err := unsized.String(f.ahead[:f.record])
	return &entry{f.key(f.n - 1), value}, err
}

// advance moves to the start of the next record.
func (f *fixed) advance() error {
	have := int64(len(f.ahead))
	if f.hop <= have {
		f.ahead = f.ahead[f.hop:]
		return nil
	}
	f.ahead = nil
	return f.skip(f.hop - have)
}
