package jsontensor

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Columns returns the tensors of the value of "inputs": an object by name, or the value of the only
// input.
func Columns(v jsondoc.Value, inputs []serve.Argument) (map[string]tensor.Tensor, error) {
	out := make(map[string]tensor.Tensor, len(inputs))
	if v.Kind() != jsondoc.Object || IsBase64(v) {
		if len(inputs) > 1 {
			return nil, status.InvalidArgumentf("inputs is a plain value/list, but expecting an object as multiple input tensors required as per tensorinfo_map")
		}
		t, err := dense(v, inputs[0].DType)
		out[inputs[0].Name] = t
		return out, err
	}
	for _, in := range inputs {
		m, ok := v.Member(in.Name)
		if !ok {
			return nil, status.InvalidArgumentf("Missing named input: %s in 'inputs' object.", in.Name)
		}
		t, err := dense(m, in.DType)
		if err != nil {
			return nil, err
		}
		out[in.Name] = t
	}
	return out, nil
}

func dense(v jsondoc.Value, d tensor.DType) (tensor.Tensor, error) {
	shape, err := denseShape(v)
	if err != nil {
		return tensor.Tensor{}, err
	}
	n := 1
	if len(shape) > 0 {
		n = v.Len() // at least; sizes of inner lists are not checked yet
	}
	to := newElements(d, n)
	if err := fill(to, v, 0, shape); err != nil {
		return tensor.Tensor{}, err
	}
	return to.tensor(shape)
}

// rows collects the elements of one input, example by example.
type rows struct {
	shape tensor.Shape // of one example
	size  int          // elements of one example
	elements
}

// Rows returns the tensors of the value of "instances": a list with one element for each example.
func Rows(v jsondoc.Value, inputs []serve.Argument) (map[string]tensor.Tensor, error) {
	first := v.First()
	if first.Kind() != jsondoc.Object && len(inputs) > 1 {
		return nil, status.InvalidArgumentf("instances is a plain list, but expecting list of objects as multiple input tensors required as per tensorinfo_map")
	}
	named := isObject(first)
	if !named && len(inputs) > 1 {
		return nil, status.InvalidArgumentf("instances is a plain list, but expecting list of objects as multiple input tensors required as per tensorinfo_map")
	}
	all := map[string]*rows{}
	i := 0
	for e := range v.Elements() {
		var err error
		switch {
		case named && !isObject(e):
			err = status.InvalidArgumentf("Expecting object but got list at item %d of input list", i)
		case named:
			err = addNamed(all, e, i, v.Len(), inputs)
		case isObject(e):
			err = status.InvalidArgumentf("Expecting value/list but got object at item %d of input list", i)
		default:
			if err = addRow(all, inputs[0], e, v.Len()); err != nil {
				err = status.InvalidArgumentf("Failed to process element: %d of 'instances' list. Error: %s", i, text(err))
			}
		}
		if err != nil {
			return nil, err
		}
		i++
	}
	out := make(map[string]tensor.Tensor, len(all))
	for name, r := range all {
		t, err := r.tensor(append(tensor.Shape{int64(v.Len())}, r.shape...))
		if err != nil {
			return nil, err
		}
		out[name] = t
	}
	return out, nil
}

// isObject reports whether a value is an object that is no base64 data.
func isObject(v jsondoc.Value) bool { return v.Kind() == jsondoc.Object && !IsBase64(v) }

// text returns an error with its code, as in TensorFlow's "INVALID_ARGUMENT: text".
func text(err error) string { return status.CodeOf(err).String() + ": " + err.Error() }

// addNamed adds the inputs of example i of n.
func addNamed(all map[string]*rows, e jsondoc.Value, i, n int, inputs []serve.Argument) error {
	var keys []string
	for name, v := range e.Members() {
		at := slices.IndexFunc(inputs, func(a serve.Argument) bool { return a.Name == name })
		var err error
		if at < 0 {
			err = status.InvalidArgumentf("JSON object: does not have named input: %s", name)
		} else {
			err = addRow(all, inputs[at], v, n)
		}
		if err != nil {
			return status.InvalidArgumentf("Failed to process element: %d key: %s of 'instances' list. Error: %s", i, name, text(err))
		}
		keys = append(keys, name)
	}
	var want []string
	for _, in := range inputs {
		want = append(want, in.Name)
	}
	slices.Sort(keys)
	if !slices.Equal(keys, want) {
		return status.InvalidArgumentf("Failed to process element: %d of 'instances' list. JSON object: %s keys must be equal to: %s", i, e, strings.Join(want, ","))
	}
	return nil
}

// addRow adds one example of n to an input.
func addRow(all map[string]*rows, in serve.Argument, v jsondoc.Value, n int) error {
	shape, err := denseShape(v)
	if err != nil {
		return err
	}
	r := all[in.Name]
	if r == nil {
		r = &rows{shape: shape, elements: newElements(in.DType, n)}
		all[in.Name] = r
		if err := fill(r, v, 0, shape); err != nil {
			return err
		}
		r.size = r.len()
		return nil
	}
	before := r.len()
	if err := fill(r, v, 0, shape); err != nil {
		return err
	}
	if got := r.len() - before; got != r.size {
		return status.InvalidArgumentf("Expecting tensor size: %d but got: %d", r.size, got)
	}
	if !shape.Equal(r.shape) {
		return status.InvalidArgumentf("Expecting shape %s but got: %s", shapeText(r.shape), shapeText(shape))
	}
	return nil
}
