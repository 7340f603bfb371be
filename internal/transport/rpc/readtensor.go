package rpc

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxExpansion bounds the elements that a message requests without containing them: in some
// encodings, the last value is repeated for all that are missing.
const maxExpansion = 1 << 31

// A decoder decodes a message with tensors.
type decoder struct {
	reader
	placed    []tensor.Tensor // tensors whose memory is among the buffers
	expansion int64           // bytes of repeated elements so far
	// error of the first invalid tensor in a message that is otherwise well formed
	bad *status.Error
}

// outcome returns the error of the whole message: errMalformed, or TensorFlow's error for an
// invalid tensor.
func (d *decoder) outcome() error {
	if d.err != nil {
		return d.err
	}
	if d.bad != nil {
		return d.bad
	}
	return nil
}

// namedTensor decodes a NamedTensorProto, the i-th of its kind.
func (d *decoder) namedTensor(kind string, i int) message.NamedTensor {
	var out message.NamedTensor
	d.take(protomem.Message)
	seen := false
	outer := d.enter()
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | lengthDelimited:
			out.Name = d.text()
		case 2<<3 | lengthDelimited:
			out.Tensor.Release()
			out.Tensor, seen = d.tensor(kind, i), true
		default:
			d.skip(key)
		}
	}
	d.leave(outer)
	if !seen {
		d.reject(kind, i, "it is missing")
	}
	return out
}

func (d *decoder) reject(kind string, i int, why any) {
	if d.bad == nil {
		d.bad = status.InvalidArgumentf("Invalid TensorProto for %s value %d: %v", kind, i, why)
	}
}

// plain is a TensorProto whose elements, if any, are in tensor_content.
type plain struct {
	dtype   uint64
	shape   tensor.Shape
	content reader
}

// tensor decodes a TensorProto, the i-th of its kind. Elements are copied once, from the buffers of
// the message to the tensor.
func (d *decoder) tensor(kind string, i int) tensor.Tensor {
	d.take(protomem.Message)
	outer := d.enter()
	whole := d.reader
	p, ok := d.plain()
	d.leave(outer)
	if d.err != nil {
		return tensor.Tensor{}
	}
	var t tensor.Tensor
	var err error
	if ok {
		t, err = p.tensor(d.placed)
	} else {
		t, err = d.general(whole)
	}
	if err != nil {
		d.reject(kind, i, err)
	}
	return t
}

// plain decodes the fields of a TensorProto. It reports false for an encoding other than
// tensor_content.
func (d *decoder) plain() (p plain, ok bool) {
	ok = true
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | varint:
			p.dtype = d.uvarint()
		case 2<<3 | lengthDelimited:
			var known bool
			p.shape, known = d.shape(p.shape)
			ok = ok && known
		case 4<<3 | lengthDelimited:
			p.content = d.value()
		default:
			field := key >> 3
			ok = ok && (field < 5 || field > 18)
			d.skip(key)
		}
	}
	return p, ok && (p.content.left > 0 || p.shape.NumElements() == 0)
}

// shape decodes a TensorShapeProto, appends its dimensions to dims, and reports whether its rank is
// known.
func (d *decoder) shape(dims tensor.Shape) (_ tensor.Shape, known bool) {
	known = true
	outer := d.enter()
	for d.more() {
		switch key := d.key(); key {
		case 2<<3 | lengthDelimited:
			dims = append(dims, d.dim())
		case 3<<3 | varint:
			known = !d.bool()
		default:
			d.skip(key)
		}
	}
	d.leave(outer)
	return dims, known
}

func (d *decoder) dim() (size int64) {
	outer := d.enter()
	for d.more() {
		switch key := d.key(); key {
		case 1<<3 | varint:
			size = d.int64()
		default:
			d.skip(key)
		}
	}
	d.leave(outer)
	return size
}

// tensor returns the tensor, after checking that its bytes are present. It uses the placed tensor
// that contains them, if there is one.
func (p *plain) tensor(placed []tensor.Tensor) (tensor.Tensor, error) {
	dtype := tensor.DType(min(p.dtype, 0xff))
	if !dtype.Valid() {
		return tensor.Tensor{}, status.InvalidArgumentf("a tensor cannot be of type %v", pb.DataType(p.dtype))
	}
	if err := p.shape.Check(); err != nil {
		return tensor.Tensor{}, err
	}
	size := dtype.Size()
	if size == 0 {
		content := p.content.rest()
		if p.content.err != nil {
			return tensor.Tensor{}, p.content.err
		}
		return pbconv.DecodeElements(dtype, p.shape, content)
	}
	if have := p.content.left; have%size != 0 || int64(have/size) != p.shape.NumElements() {
		return tensor.Tensor{}, status.InvalidArgumentf("%d bytes are not the content of a %v tensor of shape %v", have, dtype, p.shape)
	}
	t, err := p.elements(dtype, placed)
	if err != nil {
		return tensor.Tensor{}, err
	}
	if dtype == tensor.Bool {
		normalizeBools(t.Bytes())
	}
	return t, nil
}

// elements returns the tensor with its elements as received.
func (p *plain) elements(dtype tensor.DType, placed []tensor.Tensor) (tensor.Tensor, error) {
	if len(placed) > 0 && p.content.left >= minPlaced {
		p.content.fill()
		if t, ok := takePlaced(placed, p.content.cur[:min(p.content.left, len(p.content.cur))]); ok {
			return t.WithElements(dtype, p.shape)
		}
	}
	t, err := tensor.AllocShared(dtype, p.shape)
	if err == nil {
		p.content.copyTo(t.Bytes())
	}
	return t, err
}

// normalizeBools replaces every byte that is not zero by 1, Go's representation of true.
func normalizeBools(elems []byte) {
	for i, b := range elems {
		if b > 1 {
			elems[i] = 1
		}
	}
}

// general decodes a TensorProto in any other encoding.
func (d *decoder) general(r reader) (tensor.Tensor, error) {
	wire := r.rest()
	if r.err != nil {
		d.fail(r.err)
		return tensor.Tensor{}, nil
	}
	var p pb.TensorProto
	if err := (proto.UnmarshalOptions{RecursionLimit: maxNesting}).Unmarshal(wire, &p); err != nil {
		d.fail(errMalformed)
		return tensor.Tensor{}, nil
	}
	if err := d.expand(&p, int64(len(wire))); err != nil {
		return tensor.Tensor{}, err
	}
	return pbconv.TensorFromProto(&p)
}

// expand counts the elements of p that its bytes cannot contain.
func (d *decoder) expand(p *pb.TensorProto, wire int64) error {
	shape, err := pbconv.ShapeFromProto(p.GetTensorShape())
	if err != nil {
		return err
	}
	size := int64(16) // size of a string header, the largest element
	if missing := shape.NumElements() - wire; missing > 0 {
		if missing > (maxExpansion-d.expansion)/size {
			return status.ResourceExhaustedf("a tensor of shape %v in %d bytes exceeds the limit of one message", shape, wire)
		}
		d.expansion += missing * size
	}
	return nil
}
