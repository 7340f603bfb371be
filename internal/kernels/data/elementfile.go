package data

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"

	"github.com/golang/snappy"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/format/unsized"
	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Element files use version 1 of TensorFlow's snapshot format: byte strings, each preceded by its
// length in 8 bytes. Without compression, or with compression of the whole file, each string is an
// element, a serialized SnapshotRecord. With Snappy, an element is two strings: the metadata of its
// components, and the compressed components.
const elementsVersion = 1

type elementWriter struct {
	file   *fileio.File
	buf    *bufio.Writer
	gzip   *gzip.Writer // nil unless the whole file is compressed
	to     io.Writer
	snappy bool
}

func createElements(files fileio.Files, name string, compression string) (*elementWriter, error) {
	file, err := files.Truncate(name)
	if err != nil {
		return nil, err
	}
	w := &elementWriter{file: file, buf: bufio.NewWriterSize(file, 1<<16), snappy: compression == string(record.Snappy)}
	w.to = w.buf
	if compression == string(record.GZIP) {
		w.gzip = gzip.NewWriter(w.buf)
		w.to = w.gzip
	}
	return w, nil
}

func (w *elementWriter) bytes(b []byte) error {
	if _, err := w.to.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(b)))); err != nil {
		return err
	}
	_, err := w.to.Write(b)
	return err
}

func (w *elementWriter) message(m proto.Message) error {
	b, err := pbconv.Marshal(m)
	if err != nil {
		return err
	}
	return w.bytes(b)
}

func (w *elementWriter) write(e element) error {
	if !w.snappy {
		m := &pb.SnapshotRecord{}
		for i := range e {
			p, err := pbconv.TensorToProto(&e[i])
			if err != nil {
				return err
			}
			m.Tensor = append(m.Tensor, p)
		}
		return w.message(m)
	}
	m := &pb.SnapshotTensorMetadata{}
	var all []byte
	for i := range e {
		b := e[i].Bytes()
		if !hasRawBytes(e[i].DType()) {
			p, err := pbconv.TensorToProto(&e[i])
			if err == nil {
				b, err = pbconv.Marshal(p)
			}
			if err != nil {
				return err
			}
		}
		m.TensorMetadata = append(m.TensorMetadata, &pb.TensorMetadata{TensorShape: pbconv.ShapeToProto(e[i].Shape()), TensorSizeBytes: int64(len(b))})
		all = membudget.AppendAll(all, b...)
	}
	if err := w.message(m); err != nil {
		return err
	}
	return w.bytes(snappy.Encode(nil, all))
}

// hasRawBytes reports whether the memory of a tensor of the type is its serialized form.
func hasRawBytes(dtype tensor.DType) bool {
	return dtype != tensor.String && dtype != tensor.Variant && dtype != tensor.Resource
}

// size flushes the writer and returns the length of the file.
func (w *elementWriter) size() (int64, error) {
	if w.gzip != nil {
		if err := w.gzip.Flush(); err != nil {
			return 0, err
		}
	}
	if err := w.buf.Flush(); err != nil {
		return 0, err
	}
	return w.file.Size()
}

func (w *elementWriter) close() error {
	var err error
	if w.gzip != nil {
		err = w.gzip.Close()
	}
	return errors.Join(err, w.buf.Flush(), w.file.Close())
}

type elementReader struct {
	types  []tensor.DType
	file   *fileio.File
	from   io.Reader
	snappy bool
}

func openElements(files fileio.Files, name string, compression string, types []tensor.DType) (*elementReader, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	r := &elementReader{types: types, file: file, snappy: compression == string(record.Snappy)}
	if compression != string(record.GZIP) {
		compression = ""
	}
	if r.from, err = decompress(file, compression); err != nil {
		file.Close()
		return nil, err
	}
	return r, nil
}

// bytes returns the next string, or errEnd at the end of the file.
func (r *elementReader) bytes() ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r.from, head[:]); errors.Is(err, io.EOF) {
		return nil, errEnd
	} else if err != nil {
		return nil, r.damaged()
	}
	size := binary.LittleEndian.Uint64(head[:])
	if size > 1<<40 {
		return nil, r.damaged()
	}
	b, err := unsized.Exactly(nil, r.from, int64(size))
	if status.CodeOf(err) == status.ResourceExhausted {
		return nil, err
	}
	if err != nil {
		return nil, r.damaged()
	}
	return b, nil
}

func (r *elementReader) damaged() error {
	return status.DataLossf("%s is damaged", r.file.Name())
}

func (r *elementReader) read() (element, error) {
	b, err := r.bytes()
	if err != nil {
		return nil, err
	}
	if r.snappy {
		return r.readSnappy(b)
	}
	m := &pb.SnapshotRecord{}
	if protomem.Unmarshal(b, m) != nil || len(m.GetTensor()) != len(r.types) {
		return nil, r.damaged()
	}
	e := element(membudget.Make[tensor.Tensor](len(m.GetTensor())))
	for i, p := range m.GetTensor() {
		if e[i], err = pbconv.TensorFromProto(p); err != nil {
			e[:i].release()
			return nil, status.DataLossf("Unable to parse tensor from proto.")
		}
	}
	return e, nil
}

func (r *elementReader) readSnappy(head []byte) (element, error) {
	m := &pb.SnapshotTensorMetadata{}
	if protomem.Unmarshal(head, m) != nil || len(m.GetTensorMetadata()) != len(r.types) {
		return nil, status.DataLossf("Could not parse SnapshotTensorMetadata")
	}
	packed, err := r.bytes()
	if err != nil {
		return nil, r.damaged()
	}
	size, err := snappy.DecodedLen(packed)
	if err != nil {
		return nil, status.Internalf("Failed to perform snappy decompression.")
	}
	membudget.MustTake(int64(size))
	all, err := snappy.Decode(nil, packed)
	if err != nil {
		return nil, status.Internalf("Failed to perform snappy decompression.")
	}
	e := element(membudget.MakeCap[tensor.Tensor](len(r.types)))
	for i, c := range m.GetTensorMetadata() {
		n := c.GetTensorSizeBytes()
		if n < 0 || n > int64(len(all)) {
			e.release()
			return nil, r.damaged()
		}
		t, err := storedComponent(r.types[i], c.GetTensorShape(), all[:n])
		if err != nil {
			e.release()
			return nil, err
		}
		e, all = append(e, t), all[n:]
	}
	return e, nil
}

// storedComponent decodes a component of an element.
func storedComponent(dtype tensor.DType, p *pb.TensorShapeProto, b []byte) (tensor.Tensor, error) {
	if !hasRawBytes(dtype) {
		m := &pb.TensorProto{}
		if protomem.Unmarshal(b, m) != nil {
			return tensor.Tensor{}, status.Internalf("Could not parse TensorProto")
		}
		return pbconv.TensorFromProto(m)
	}
	shape, err := pbconv.ShapeFromProto(p)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return pbconv.DecodeElements(dtype, shape, b)
}

func (r *elementReader) close() { r.file.Close() }
