package ioops

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/status"
)

// single is a file that is one record. What cannot be read is tried again, as TensorFlow does.
type single struct {
	key  string
	read func(path string) (string, error)
}

func (s single) next() (*entry, error) {
	value, err := s.read(s.key)
	if err != nil {
		return nil, err
	}
	return &entry{s.key, value}, io.EOF
}

func (single) close() error { return nil }

// openName gives names instead of files.
func openName(path string) (records, error) {
	return single{path, func(path string) (string, error) { return path, nil }}, nil
}

func openWhole(path string) (records, error) {
	return single{path, func(path string) (string, error) {
		b, err := fileio.Read(path)
		return string(b), err
	}}, nil
}

// opened is a file that is being read.
type opened struct {
	path string
	file *os.File
	n    int64 // records so far
}

func (o *opened) close() error { return o.file.Close() }

// key returns the name of record n.
func (o *opened) key(n int64) string { return o.path + ":" + strconv.FormatInt(n, 10) }

func openFile(path string) (opened, error) {
	f, err := os.Open(path)
	if err != nil {
		return opened{}, fileio.Error(path, err)
	}
	return opened{path: path, file: f}, nil
}

const readerBuffer = 256 << 10

// lines is a text file of which every line is a record.
type lines struct {
	opened
	in *bufio.Reader
}

// openLines returns the constructor of readers that pass over some lines at the beginning.
func openLines(skip int) func(string) (records, error) {
	return func(path string) (records, error) {
		o, err := openFile(path)
		if err != nil {
			return nil, err
		}
		l := &lines{o, bufio.NewReaderSize(o.file, readerBuffer)}
		for l.n < int64(skip) && err == nil {
			_, err = l.next()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			_ = o.close() // it was only read
			return nil, err
		}
		return l, nil
	}
}

func (l *lines) next() (*entry, error) {
	line, err := l.in.ReadString('\n')
	switch {
	case errors.Is(err, io.EOF) && line == "":
		return nil, io.EOF
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fileio.Error(l.path, err)
	}
	l.n++
	return &entry{l.key(l.n), strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")}, nil
}

// framed is a file of records in TensorFlow's format.
type framed struct {
	opened
	in *record.Reader
}

// openFramed returns the constructor of readers of compressed files. Like TensorFlow it takes a
// compression that it does not know for none.
func openFramed(compression string) func(string) (records, error) {
	c := record.Compression(compression)
	if c != record.ZLIB && c != record.GZIP {
		c = record.None
	}
	return func(path string) (records, error) {
		o, err := openFile(path)
		if err != nil {
			return nil, err
		}
		in, err := record.NewReader(o.file, c)
		if err != nil {
			_ = o.close() // it was only read
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
	return &entry{f.key(at), string(b)}, nil
}

// sizes says where the records of a file lie that all have one size.
type sizes struct{ header, record, footer, hop int64 }

// fixed is a file of records of one size, which may overlap or lie apart.
type fixed struct {
	opened
	sizes
	in    io.Reader
	ahead []byte // read so far of what begins at the last record
}

func openFixed(s sizes, encoding string) func(string) (records, error) {
	return func(path string) (records, error) {
		o, err := openFile(path)
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
			_ = o.close() // it was only read
			return nil, err
		}
		return f, nil
	}
}

// decompress returns what a file holds in one of the encodings that TensorFlow knows; others are
// none.
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

// skip passes over bytes; io.EOF if there are fewer.
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
	case errors.As(err, new(*os.PathError)):
		return fileio.Error(f.path, err)
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
	more, err := io.ReadAll(io.LimitReader(f.in, missing)) // memory grows with what is there
	if err == nil && int64(len(more)) < missing {
		err = io.EOF
	}
	if err != nil {
		return nil, f.translate(err)
	}
	f.ahead = append(f.ahead, more...)
	f.n++
	return &entry{f.key(f.n - 1), string(f.ahead[:f.record])}, nil
}

// advance goes from one record to the next.
func (f *fixed) advance() error {
	have := int64(len(f.ahead))
	if f.hop <= have {
		f.ahead = f.ahead[f.hop:]
		return nil
	}
	f.ahead = nil
	return f.skip(f.hop - have)
}
