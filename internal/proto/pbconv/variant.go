package pbconv

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// variants returns a variant tensor. Elements of unregistered types keep their encoded form,
// tensor.EncodedVariant. Missing elements and those without a type are nil.
func (r *reader) variants(shape tensor.Shape, ps []*pb.VariantTensorDataProto) (tensor.Tensor, error) {
	n := shape.NumElements()
	ps = ps[:min(int64(len(ps)), n)]
	if err := r.expand(n-int64(len(ps)), wordSize); err != nil {
		return tensor.Tensor{}, err
	}
	t, err := tensor.Zeros(tensor.Variant, shape)
	if err != nil {
		return tensor.Tensor{}, err
	}
	out := tensor.Values[tensor.VariantValue](&t)
	for i, p := range ps {
		if p.GetTypeName() == "" {
			continue
		}
		v, err := r.variant(p)
		if err == nil {
			out[i].Value, err = v.Decode()
		}
		if err != nil {
			return tensor.Tensor{}, status.InvalidArgumentf("variant of type '%s': %w", p.GetTypeName(), err)
		}
	}
	return t, nil
}

func (r *reader) variant(p *pb.VariantTensorDataProto) (tensor.EncodedVariant, error) {
	v := tensor.EncodedVariant{TypeName: p.GetTypeName(), Metadata: p.GetMetadata()}
	for i, q := range p.GetTensors() {
		t, err := r.tensor(q)
		if err != nil {
			return v, status.InvalidArgumentf("tensor %d: %w", i, err)
		}
		v.Tensors = append(v.Tensors, t)
	}
	return v, nil
}

// maxNested bounds the variants within those of a tensor that is encoded. Lists of lists may share
// elements, so that a few lists make an encoded form without end.
const maxNested = 1 << 18

// maxNestedDepth bounds variants that are nested in one another. No decoder of messages accepts
// more than 10,000 levels, and a variant takes two of them, so nothing could read more. Each level
// would take kilobytes of the stack.
const maxNestedDepth = 5000

// writer counts the variants that were encoded within others.
type writer struct{ depth, nested int }

func (w *writer) variant(v tensor.VariantValue) (*pb.VariantTensorDataProto, error) {
	if w.depth > 0 {
		w.nested++
	}
	if w.nested > maxNested {
		return nil, status.ResourceExhaustedf("a value with more than %d variants in it cannot be encoded", maxNested)
	}
	if w.depth >= maxNestedDepth {
		return nil, status.ResourceExhaustedf("variants that are nested more than %d deep cannot be encoded", maxNestedDepth)
	}
	w.depth++
	defer func() { w.depth-- }()
	enc, err := v.Encode()
	if err != nil {
		return nil, err
	}
	p := &pb.VariantTensorDataProto{TypeName: enc.TypeName, Metadata: enc.Metadata}
	for i := range enc.Tensors {
		t, err := w.tensor(&enc.Tensors[i])
		if status.CodeOf(err) == status.ResourceExhausted {
			return nil, err // the same at all levels: each would copy the text
		}
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "variant of type '%s', tensor %d: %w", enc.TypeName, i, err)
		}
		p.Tensors = append(p.Tensors, t)
	}
	return p, nil
}
