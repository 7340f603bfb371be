package data

import (
	"encoding/binary"

	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// archive saves the state of an iterator or loads a saved state. Saving and loading make the same
// calls in the same order, because numbers and tensors have no names.
type archive struct {
	run     *run
	loading bool
	numbers []int64
	tensors []tensor.Tensor
	err     error // first error; after it nothing is saved or loaded
}

// savedName is TensorFlow's type name of variants that hold saved iterators.
const savedName = "tensorflow::Iterator"

func (a *archive) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

func (a *archive) int(v *int64) {
	switch {
	case a.err != nil:
	case !a.loading:
		a.numbers = membudget.Append(a.numbers, *v)
	case len(a.numbers) == 0:
		a.fail(status.InvalidArgumentf("the saved state of the iterator is too short"))
	default:
		*v, a.numbers = a.numbers[0], a.numbers[1:]
	}
}

// count saves or loads the length of a sequence. Each of its entries takes at least one saved item.
func (a *archive) count(n int) int {
	v := int64(n)
	a.int(&v)
	if a.loading && (v < 0 || v > int64(len(a.numbers)+len(a.tensors))) {
		a.fail(status.InvalidArgumentf("the saved state of the iterator has an invalid count: %d", v))
	}
	if a.err != nil {
		return 0
	}
	return int(v)
}

func (a *archive) bool(v *bool) {
	var n int64
	if *v {
		n = 1
	}
	a.int(&n)
	*v = n != 0
}

func (a *archive) element(e *element) {
	n := a.count(len(*e))
	switch {
	case a.err != nil:
	case !a.loading:
		a.tensors = membudget.AppendAll(a.tensors, e.retain()...)
	case n > len(a.tensors):
		a.fail(status.InvalidArgumentf("the saved state of the iterator has too few tensors"))
	default:
		*e, a.tensors = element(a.tensors[:n]).retain(), a.tensors[n:]
	}
}

func (a *archive) elements(all *[]element) {
	n := a.count(len(*all))
	if a.loading {
		*all = membudget.Make[element](n)
	}
	for i := range n {
		a.element(&(*all)[i])
	}
}

// iterator saves or loads the state of an iterator that may be nil. When loading, begin creates the
// iterator.
func (a *archive) iterator(it *iterator, begin func() (iterator, error)) {
	present := *it != nil
	a.bool(&present)
	if a.loading {
		*it = nil
		if present && a.err == nil {
			made, err := begin()
			if err != nil {
				a.fail(err)
				return
			}
			*it = made
		}
	}
	if a.err == nil && *it != nil {
		(*it).state(a)
	}
}

// saved returns a variant that holds the saved state.
func (a *archive) saved() tensor.VariantValue {
	data := membudget.MakeCap[byte](2 * len(a.numbers))
	for _, n := range a.numbers {
		data = binary.AppendVarint(data, n)
	}
	for i := range a.tensors {
		a.tensors[i] = withDatasets(a.tensors[i], encodeDataset)
	}
	return tensor.VariantValue{Value: tensor.EncodedVariant{TypeName: savedName, Metadata: data, Tensors: a.tensors}}
}

// loadFrom returns an archive that loads a variant that saved returned. functions are the functions
// that its datasets may call.
func loadFrom(r *run, functions kernel.Functions, v tensor.VariantValue) (*archive, error) {
	e, ok := v.Value.(tensor.EncodedVariant)
	if !ok || e.TypeName != savedName {
		return nil, status.Internalf("Cannot initialize an iterator from a %T. Expected a variant tensor of type IteratorStateVariant", v.Value)
	}
	a := &archive{run: r, loading: true, tensors: membudget.AppendAll(nil, e.Tensors...)}
	for data := e.Metadata; len(data) > 0; {
		n, size := binary.Varint(data)
		if size <= 0 {
			return nil, status.DataLossf("the saved state of the iterator is damaged")
		}
		a.numbers, data = membudget.Append(a.numbers, n), data[size:]
	}
	for i := range a.tensors {
		a.tensors[i] = withDatasets(a.tensors[i], func(v tensor.VariantValue) tensor.VariantValue {
			d, err := decodeDataset(r, functions, v)
			if err != nil {
				a.fail(err)
			}
			return d
		})
	}
	return a, a.err
}

// withDatasets returns t with f applied to each element if t is a tensor of variants, and t itself
// otherwise.
func withDatasets(t tensor.Tensor, f func(tensor.VariantValue) tensor.VariantValue) tensor.Tensor {
	if t.DType() != tensor.Variant {
		return t
	}
	out, err := tensor.Zeros(tensor.Variant, t.Shape())
	if err != nil {
		return t
	}
	from, to := tensor.Values[tensor.VariantValue](&t), tensor.Values[tensor.VariantValue](&out)
	for i := range from {
		to[i] = f(from[i])
	}
	return out
}

// graphVariantName is the type name of variants that hold the graphs of datasets.
const graphVariantName = "weft::DatasetGraph"

// encodeDataset returns a variant that holds the graph of a dataset. A dataset without a graph and
// any other variant are returned unchanged; such a state can be restored only in the process that
// saved it.
func encodeDataset(v tensor.VariantValue) tensor.VariantValue {
	if _, ok := v.Value.(dataset); !ok {
		return v
	}
	t := tensor.Scalar(v)
	g, err := writeGraph(&t, false)
	if err != nil {
		return v
	}
	text, err := pbconv.Marshal(g)
	if err != nil {
		return v
	}
	return tensor.VariantValue{Value: tensor.EncodedVariant{TypeName: graphVariantName, Metadata: text}}
}

// decodeDataset returns the dataset of a variant that holds its graph. Any other variant is
// returned unchanged.
func decodeDataset(r *run, functions kernel.Functions, v tensor.VariantValue) (tensor.VariantValue, error) {
	e, ok := v.Value.(tensor.EncodedVariant)
	if !ok || e.TypeName != graphVariantName {
		return v, nil
	}
	d, err := loadGraph(functions, r, string(e.Metadata))
	if err != nil {
		return v, err
	}
	if _, err := datasetOf(&d); err != nil {
		return v, err
	}
	return tensor.Value[tensor.VariantValue](&d), nil
}
