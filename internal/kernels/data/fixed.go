package data

import (
	"bytes"
	"errors"
	"io"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/unsized"
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
	d.open = func(f *fileio.File, compression string) (recordReader, error) {
		return openFixed(f, compression, v[0], v[1], v[2])
	}
	return d, nil
}

// fixed reads fixed-length records between a header and a footer.
type fixed struct {
	in   io.Reader
	left int64 // bytes of the records that have not been read
	size int64
	buf  []byte
}

// openFixed checks the length of the records before the first is read. The length of a compressed
// file is known once all of it has been decompressed.
func openFixed(f *fileio.File, compression string, header, size, footer int64) (recordReader, error) {
	in, err := decompress(f, compression)
	if err != nil {
		return nil, err
	}
	out := &fixed{in: in, size: size}
	var length int64
	if compression == "" {
		if length, err = f.Size(); err != nil {
			return nil, err
		}
	} else {
		all, err := unsized.All(in)
		if err != nil {
			return nil, cannotRead(err)
		}
		length, out.in = int64(len(all)), bytes.NewReader(all)
	}
	out.left = length - header - footer
	if out.left < 0 || out.left%size != 0 {
		return nil, status.InvalidArgumentf("Excluding the header (%d bytes) and footer (%d bytes), input file %q has body length %d bytes, "+
			"which is not an exact multiple of the record length (%d bytes).", header, footer, f.Name(), out.left, size)
	}
	if _, err := io.CopyN(io.Discard, out.in, header); err != nil {
		return nil, cannotRead(err)
	}
	return out, nil
}

func cannotRead(err error) error {
	if _, known := errors.AsType[*status.Error](err); known {
		return err // of the file
	}
	return status.DataLossf("cannot read: %v", err)
}

func (f *fixed) record() (string, error) {
	if f.left <= 0 {
		return "", io.EOF
	}
	var err error
	if f.buf, err = unsized.Exactly(f.buf[:0], f.in, f.size); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file has become shorter
		}
		return "", cannotRead(err)
	}
	f.left -= f.size
	return unsized.String(f.buf)
}
