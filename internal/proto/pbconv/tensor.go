package pbconv

import (
	"slices"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TensorFromProto returns the tensor of a message in any encoding, with one reference. Elements in
// tensor_content are shared with the message.
func TensorFromProto(p *pb.TensorProto) (tensor.Tensor, error) { return newReader().tensor(p) }

func (r *reader) tensor(p *pb.TensorProto) (tensor.Tensor, error) {
	if err := r.enter(); err != nil {
		return tensor.Tensor{}, err
	}
	defer r.leave()
	dtype, err := elementType(p.GetDtype())
	if err != nil {
		return tensor.Tensor{}, err
	}
	shape, err := ShapeFromProto(p.GetTensorShape())
	if err != nil {
		return tensor.Tensor{}, err
	}
	if len(p.GetTensorContent()) > 0 {
		// TensorFlow accepts these only from its own processes.
		if dtype == tensor.Bool && slices.ContainsFunc(p.GetTensorContent(), noBool) {
			return tensor.Tensor{}, status.InvalidArgumentf("Cannot parse tensor from proto: a bool is neither 0 nor 1")
		}
		return r.content(dtype, shape, p.GetTensorContent())
	}
	return r.fields(dtype, shape, p)
}

// elementType returns a valid element type of a tensor.
func elementType(p pb.DataType) (tensor.DType, error) {
	if d, ok := dtypeOf(p); ok && d.Valid() {
		return d, nil
	}
	return tensor.Invalid, status.InvalidArgumentf("a tensor cannot be of type %v", p)
}

// dtypeOf returns the type with the given number. ok is false if there is none.
func dtypeOf(p pb.DataType) (tensor.DType, bool) {
	if p < 0 || p > 0xff {
		return tensor.Invalid, false
	}
	return tensor.DType(p), true
}

// TensorToProto returns the message of a tensor for files and graphs. Strings, handles and variants
// are in the fields for their types, which every reader of such files supports. All other elements
// are in tensor_content and share the memory of the tensor.
func TensorToProto(t *tensor.Tensor) (*pb.TensorProto, error) { return new(writer).tensor(t) }

func (w *writer) tensor(t *tensor.Tensor) (*pb.TensorProto, error) {
	p, err := header(t)
	if err != nil {
		return nil, err
	}
	switch t.DType() {
	case tensor.String:
		vals := tensor.Values[string](t)
		if err := takeTexts(vals); err != nil {
			return nil, err
		}
		p.StringVal = make([][]byte, len(vals))
		for i, s := range vals {
			p.StringVal[i] = []byte(s)
		}
	case tensor.Resource:
		for _, h := range tensor.Values[*tensor.Handle](t) {
			p.ResourceHandleVal = append(p.ResourceHandleVal, HandleToProto(h))
		}
	case tensor.Variant:
		for _, v := range tensor.Values[tensor.VariantValue](t) {
			q, err := w.variant(v)
			if err != nil {
				return nil, err
			}
			p.VariantVal = append(p.VariantVal, q)
		}
	default:
		p.TensorContent = t.Bytes()
	}
	return p, nil
}

// TensorCopyToProto is TensorToProto for messages that outlive the reference to the tensor, such as
// answers that are written after it was released. They share no memory with it.
func TensorCopyToProto(t *tensor.Tensor) (*pb.TensorProto, error) {
	p, err := TensorToProto(t)
	if err == nil {
		p.TensorContent = slices.Clone(p.TensorContent)
	}
	return p, err
}

// TensorToWire returns the message of a tensor in the form of TensorFlow's services. All elements
// are in tensor_content. Numbers share the memory of the tensor.
func TensorToWire(t *tensor.Tensor) (*pb.TensorProto, error) {
	p, err := header(t)
	if err != nil {
		return nil, err
	}
	p.TensorContent = t.Bytes()
	if t.DType().Size() == 0 {
		p.TensorContent, err = EncodeElements(t)
	}
	return p, err
}

func header(t *tensor.Tensor) (*pb.TensorProto, error) {
	if !t.Initialized() {
		return nil, status.FailedPreconditionf("an uninitialized tensor cannot be encoded")
	}
	return &pb.TensorProto{Dtype: pb.DataType(t.DType()), TensorShape: ShapeToProto(t.Shape())}, nil
}
