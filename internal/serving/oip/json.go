package oip

import (
	"net/http"
	"strconv"

	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/internal/serving/jsontensor"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// jsonRequest is a request over HTTP.
type jsonRequest struct {
	request
	id        string
	hasID     bool
	binary    map[string]bool // setting of outputs that have one
	allBinary bool            // for the others
}

// parse parses a request. tail are the bytes of binary inputs.
func parse(text, tail []byte) (q *jsonRequest, err error) {
	doc, err := jsondoc.Parse(text)
	if err != nil {
		return nil, status.InvalidArgumentf("failed to parse the request JSON buffer: %w", err)
	}
	list, ok := doc.Member("inputs")
	if !ok || list.Kind() != jsondoc.Array {
		return nil, status.InvalidArgumentf("the request has no list of inputs")
	}
	inputs := map[string]tensor.Tensor{}
	q = &jsonRequest{binary: map[string]bool{}}
	q.inputs = inputs
	defer func() {
		if err != nil {
			servable.Release(inputs)
		}
	}()
	if id, ok := doc.Member("id"); ok {
		if id.Kind() != jsondoc.String {
			return nil, status.InvalidArgumentf("the id of a request must be a string")
		}
		q.id, q.hasID = id.Text(), true
	}
	for v := range list.Elements() {
		if tail, err = q.input(v, tail); err != nil {
			return q, err
		}
	}
	if len(tail) > 0 {
		return q, status.InvalidArgumentf("unexpected additional input data: %d bytes", len(tail))
	}
	if p, ok := doc.Member("parameters"); ok {
		if name, ok := p.Member("signature_name"); ok && name.Kind() == jsondoc.String {
			q.signature = name.Text()
		}
		all, ok := p.Member("binary_data_output")
		q.allBinary = ok && all.Kind() == jsondoc.True
	}
	outputs, ok := doc.Member("outputs")
	if !ok {
		return q, nil
	}
	if outputs.Kind() != jsondoc.Array {
		return q, status.InvalidArgumentf("the outputs of a request must be a list")
	}
	for v := range outputs.Elements() {
		name, ok := v.Member("name")
		if !ok || name.Kind() != jsondoc.String {
			return q, status.InvalidArgumentf("every output needs a name")
		}
		q.outputs = append(q.outputs, name.Text())
		if p, ok := v.Member("parameters"); ok {
			if b, ok := p.Member("binary_data"); ok {
				q.binary[name.Text()] = b.Kind() == jsondoc.True
			}
		}
	}
	return q, nil
}

// input adds an input, and returns the bytes that other inputs have.
func (q *jsonRequest) input(v jsondoc.Value, tail []byte) (rest []byte, err error) {
	name, ok := v.Member("name")
	kind, okKind := v.Member("datatype")
	dims, okShape := v.Member("shape")
	if !ok || !okKind || !okShape || name.Kind() != jsondoc.String || kind.Kind() != jsondoc.String || dims.Kind() != jsondoc.Array {
		return nil, status.InvalidArgumentf("every input needs name, shape and datatype")
	}
	d, err := dtypeOf(kind.Text())
	if err != nil {
		return nil, err
	}
	shape := tensor.Shape{}
	for e := range dims.Elements() {
		n, ok := e.Int64()
		if e.Kind() != jsondoc.Number || !ok {
			return nil, status.InvalidArgumentf("input '%s': a dimension is no integer", name.Text())
		}
		shape = append(shape, n)
	}
	if err := checkShape(name.Text(), shape); err != nil {
		return nil, err
	}
	if _, twice := q.inputs[name.Text()]; twice {
		return nil, status.InvalidArgumentf("input '%s' is given twice", name.Text())
	}
	size, binary, err := binarySize(v)
	data, hasData := v.Member("data")
	var t tensor.Tensor
	switch {
	case err != nil:
	case binary && hasData:
		err = status.InvalidArgumentf("input '%s' has both data and binary_data_size", name.Text())
	case binary && size > uint64(len(tail)):
		err = status.InvalidArgumentf("input '%s' has %d bytes of binary data, but %d are left", name.Text(), size, len(tail))
	case binary:
		t, err = decodeRaw(name.Text(), d, shape, tail[:size])
		tail = tail[size:]
	case !hasData:
		err = status.InvalidArgumentf("input '%s' has no data", name.Text())
	default:
		t, err = decodeJSON(name.Text(), d, shape, data)
	}
	if err != nil {
		return nil, err
	}
	q.inputs[name.Text()] = t
	return tail, nil
}

// binarySize returns the parameter binary_data_size of an input, if it has one.
func binarySize(v jsondoc.Value) (size uint64, given bool, err error) {
	p, ok := v.Member("parameters")
	if !ok {
		return 0, false, nil
	}
	s, ok := p.Member("binary_data_size")
	if !ok {
		return 0, false, nil
	}
	if size, ok = s.Uint64(); !ok || s.Kind() != jsondoc.Number {
		return 0, false, status.InvalidArgumentf("binary_data_size must be an integer")
	}
	return size, true, nil
}

// maxDepth is the deepest nesting of data. It bounds the recursion.
const maxDepth = 254

// decodeJSON returns the tensor of elements in nested lists or in one.
func decodeJSON(input string, d tensor.DType, shape tensor.Shape, data jsondoc.Value) (tensor.Tensor, error) {
	to := jsontensor.NewElements(d)
	var add func(v jsondoc.Value, depth int) error
	add = func(v jsondoc.Value, depth int) error {
		if v.Kind() != jsondoc.Array {
			return to.Add(v)
		}
		if depth == maxDepth {
			return status.InvalidArgumentf("the lists are nested too deeply")
		}
		for e := range v.Elements() {
			if err := add(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(data, 0); err != nil {
		return tensor.Tensor{}, status.InvalidArgumentf("input '%s': %w", input, err)
	}
	if n := shape.NumElements(); n != int64(to.Len()) {
		return tensor.Tensor{}, status.InvalidArgumentf("input '%s' of shape %v has %d elements, want %d", input, shape, to.Len(), n)
	}
	return to.Tensor(shape)
}

// rawRequest returns the request of a body that is the only input of a signature. Its only unknown
// dimension follows from the size.
func rawRequest(sig *servable.Signature, body []byte) (*jsonRequest, error) {
	if len(sig.Inputs) != 1 {
		return nil, status.InvalidArgumentf("a request without JSON needs a model with one input, this one has %d", len(sig.Inputs))
	}
	in := sig.Inputs[0]
	if in.DType == tensor.String {
		membudget.MustTake(int64(len(body))) // of the copy
		t, err := tensor.FromSlice(oneOf(in.Shape), []string{string(body)})
		return &jsonRequest{request: request{inputs: map[string]tensor.Tensor{in.Name: t}}, allBinary: true}, err
	}
	shape, unknown, known := tensor.Shape{}, -1, int64(max(1, in.DType.Size()))
	for i, d := range in.Shape.Dims() {
		if d < 0 {
			if unknown >= 0 {
				return nil, status.InvalidArgumentf("a request without JSON needs an input with one unknown dimension, '%s' has more", in.Name)
			}
			unknown = i
		} else {
			known *= d
		}
		shape = append(shape, d)
	}
	if unknown >= 0 && known > 0 {
		shape[unknown] = int64(len(body)) / known
	}
	t, err := decodeRaw(in.Name, in.DType, shape, body)
	if err != nil {
		return nil, err
	}
	return &jsonRequest{request: request{inputs: map[string]tensor.Tensor{in.Name: t}}, allBinary: true}, nil
}

// oneOf returns the shape of one element with the rank of p.
func oneOf(p tensor.PartialShape) tensor.Shape {
	shape := tensor.Shape{}
	for range p.Dims() {
		shape = append(shape, 1)
	}
	return shape
}

// respond returns the answer with outputs.
func (q *jsonRequest) respond(version int64, outs []output) (answer, error) {
	b := jsontensor.AppendString([]byte(`{"model_name": `), q.model)
	b = append(strconv.AppendInt(append(b, `, "model_version": "`...), version, 10), '"')
	if q.hasID {
		b = jsontensor.AppendString(append(b, `, "id": `...), q.id)
	}
	b = append(b, `, "outputs": [`...)
	var tail []byte
	var err error
	hasBinary := false
	for i, o := range outs {
		b = jsontensor.AppendString(append(appendComma(b, i), `{"name": `...), o.name)
		b = append(b, `, "datatype": "`+datatype(o.t.DType())+`", "shape": `...)
		b = appendShape(b, o.t.Shape())
		binary, set := q.binary[o.name]
		if !set {
			binary = q.allBinary
		}
		if binary {
			hasBinary = true
			before := len(tail)
			if tail, err = appendRaw(tail, o.name, &o.t); err != nil {
				return answer{}, err
			}
			b = append(b, `, "parameters": {"binary_data_size": `...)
			b = append(strconv.AppendInt(b, int64(len(tail)-before), 10), "}}"...)
			continue
		}
		if b, err = jsontensor.AppendElements(append(b, `, "data": `...), &o.t); err != nil {
			if status.CodeOf(err) == status.ResourceExhausted {
				return answer{}, err
			}
			return answer{}, status.InvalidArgumentf("output '%s' needs binary data: %w", o.name, err)
		}
		b = append(b, '}')
	}
	b = append(b, "]}"...)
	if !membudget.Take(int64(len(tail))) {
		return answer{}, status.ResourceExhaustedf("there is no memory for an answer with %d bytes (--memory-limit)", len(tail))
	}
	a := answer{code: http.StatusOK, body: append(b, tail...)}
	if hasBinary {
		a.jsonSize = len(b)
	}
	return a, nil
}
