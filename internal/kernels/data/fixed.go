package data

import (
	"errors"
	"fmt"
	"io"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"filenames: string", "header_bytes: int64", "record_bytes: int64", "footer_bytes: int64", "buffer_size: int64"}
	doc := "Creates a dataset of the fixed-length records of files. The header and footer of each file are skipped."
	register(opdef.Def{Name: "FixedLengthRecordDataset", Doc: doc, In: in, Attrs: []string{metadata}, Stateful: true, Class: opdef.FilesRead}, newFixed)
	register(opdef.Def{
		Name: "FixedLengthRecordDatasetV2", Doc: doc, In: append(in[:5:5], "compression_type: string"),
		Attrs: []string{metadata}, Stateful: true, Class: opdef.FilesRead,
	}, newFixed)
}

func newFixed(n *node, ctx *kernel.Context) (dataset, error) {
	names, err := fileNames(ctx)
	if err != nil {
		return nil, err
	}
	v, err := n.scalars(ctx, "header_bytes", "record_bytes", "footer_bytes", "buffer_size")
	if err != nil {
		return nil, err
	}
	switch {
	case v[0] < 0:
		return nil, status.InvalidArgumentf("`header_bytes` must be >= 0")
	case v[1] <= 0:
		return nil, status.InvalidArgumentf("`record_bytes` must be > 0")
	case v[2] < 0:
		return nil, status.InvalidArgumentf("`footer_bytes` must be >= 0")
	case v[3] < 0:
		return nil, status.InvalidArgumentf("`buffer_size` must be >= 0")
	}
	d := &filesDataset{spec: spec{[]tensor.DType{tensor.String}, []tensor.PartialShape{tensor.MakePartial()}}, files: n.Files(), names: names}
	if len(n.Inputs) > 5 {
		if d.compression, err = compression(n, ctx); err != nil {
			return nil, err
		}
	}
	d.open = func(r io.Reader, compression string) (recordReader, error) {
		return openFixed(r, compression, v[0], v[1], v[2])
	}
	return d, nil
}

// fixed reads fixed-length records between a header and a footer.
type fixed struct {
	body []byte
	size int64
}

func openFixed(r io.Reader, compression string, header, size, footer int64) (recordReader, error) {
	from, err := decompress(r, compression)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(from)
	if _, known := errors.AsType[*status.Error](err); known {
		return nil, err // of the file
	}
	if err != nil {
		return nil, status.DataLossf("cannot read: %v", err)
	}
	body := int64(len(all)) - header - footer
	if body < 0 || body%size != 0 {
		file := ""
		if f, ok := r.(*fileio.File); ok {
			file = fmt.Sprintf(" %q", f.Name())
		}
		return nil, status.InvalidArgumentf("Excluding the header (%d bytes) and footer (%d bytes), input file%s has body length %d bytes, "+
			"which is not an exact multiple of the record length (%d bytes).", header, footer, file, body, size)
	}
	return &fixed{all[header : header+body], size}, nil
}

func (f *fixed) record() (string, error) {
	if len(f.body) == 0 {
		return "", io.EOF
	}
	text := string(f.body[:f.size])
	f.body = f.body[f.size:]
	return text, nil
}
