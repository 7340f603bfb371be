package ioops

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerReader("TextLineReader", "Returns a handle to a reader of the lines of text files.", []string{"skip_header_lines: int = 0"}, nil, false,
		func(a opdef.Attrs) (format, error) {
			skip := a.Int("skip_header_lines")
			return format{open: openLines(skip)}, atLeastZero(a, "skip_header_lines")
		})
	registerReader("WholeFileReader", "Returns a handle to a reader that produces whole files.", nil, nil, false,
		func(opdef.Attrs) (format, error) { return format{openWhole, true}, nil })
	registerReader("IdentityReader", "Returns a handle to a reader that produces the file names it dequeues.", nil, nil, false,
		func(opdef.Attrs) (format, error) { return format{openName, true}, nil })
	registerReader("TFRecordReader", "Returns a handle to a reader of TFRecord files.",
		nil, []string{"compression_type: string = ''"}, false,
		func(a opdef.Attrs) (format, error) {
			return format{open: openFramed(a.String("compression_type"))}, nil
		})
	registerReader("FixedLengthRecordReader", "Returns a handle to a reader of fixed-length records.",
		[]string{"header_bytes: int = 0", "record_bytes: int", "footer_bytes: int = 0", "hop_bytes: int = 0"},
		[]string{"encoding: string = ''"}, true, fixedFormat)
}

func fixedFormat(a opdef.Attrs) (format, error) {
	s := sizes{int64(a.Int("header_bytes")), int64(a.Int("record_bytes")), int64(a.Int("footer_bytes")), int64(a.Int("hop_bytes"))}
	err := atLeastZero(a, "header_bytes", "record_bytes", "footer_bytes", "hop_bytes")
	if s.hop == 0 {
		s.hop = s.record
	}
	return format{open: openFixed(s, a.String("encoding"))}, err
}

func atLeastZero(a opdef.Attrs, names ...string) error {
	for _, name := range names {
		if v := a.Int(name); v < 0 {
			return status.InvalidArgumentf("%s must be >= 0 not %d", name, v)
		}
	}
	return nil
}

// registerReader registers the two operations that create one kind of reader. The attributes in
// more come last; if newer is set, only the newer operation has them.
func registerReader(name, doc string, attrs, more []string, newer bool, make func(opdef.Attrs) (format, error)) {
	impl := kernel.Any(func(c *kernel.Construction) (kernel.Kernel, error) {
		f, err := make(c.Attrs)
		if err != nil {
			return nil, err
		}
		full := name + " '" + c.Node + "'"
		return resource.Maker[*Reader]{
			Create: func(*kernel.Context, string) (*Reader, error) { return newReader(full, c.Files(), f), nil },
		}.Kernel(c)
	})
	//sizedmake:ok attributes of an operation
	old := slices.Concat(attrs, []string{"container: string = ''", "shared_name: string = ''"})
	//sizedmake:ok attributes of an operation
	all := slices.Concat(old, more)
	if !newer {
		old = all
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, Out: []string{"reader_handle: Ref(string)"}, Attrs: old, Stateful: true, Class: opdef.FilesRead, Shape: resource.NamesShape,
		},
		Kernels: impl,
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name + "V2", Doc: doc, Out: []string{"reader_handle: resource"}, Attrs: all, Stateful: true, Class: opdef.FilesRead,
			Shape: opdef.ScalarShape,
		},
		Kernels: impl,
	})
}
