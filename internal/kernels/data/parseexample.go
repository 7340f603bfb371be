package data

import (
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const types = "{float32, int64, string}"
	attrs := func(order string, ragged ...string) []string {
		return slices.Concat([]string{"sparse_keys: list(string) >= 0", "dense_keys: list(string) >= 0", "sparse_types: list(" + types + ") >= 0",
			"Tdense: list(" + types + ") >= 0", "dense_shapes: list(shape) >= 0"}, withSpec(), []string{order}, ragged)
	}
	ragged := []string{"ragged_keys: list(string) >= 0 = []", "ragged_value_types: list(" + types + ") >= 0 = []", "ragged_split_types: list({int32, int64}) >= 0 = []"}
	in := []string{"num_parallel_calls: int64", "dense_defaults: Tdense"}
	doc := "Creates a dataset that parses vectors of serialized Example protos into features."
	registerStage("ParseExampleDataset", doc, in, attrs("sloppy: bool = false", ragged...), newParseExample)
	registerStage("ParseExampleDatasetV2", doc, in, attrs("deterministic: string = 'default'", ragged...), newParseExample)
	registerStage("ExperimentalParseExampleDataset", doc, in, attrs("sloppy: bool = false"), newParseExample)
}

// parseExampleDataset contains one component for each key, in the order of the keys. Sparse
// features are variants packed by SerializeSparse, ragged features are variants that hold a ragged
// tensor.
type parseExampleDataset struct {
	stage
	parse    *component
	keys     element // arguments of ParseExampleV2 after the examples
	place    []int   // component index of each sparse, dense and ragged key
	sparse   int     // number of sparse keys
	ragged   int
	parallel int // number of vectors parsed in parallel
	order    determinism
}

func newParseExample(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	lists := [3][]string{n.Attrs.Strings("sparse_keys"), n.Attrs.Strings("dense_keys"), n.Attrs.Strings("ragged_keys")}
	d := &parseExampleDataset{stage: s, sparse: len(lists[0]), ragged: len(lists[2])}
	//sizedmake:ok lists of an attribute
	all := slices.Concat(lists[0], lists[1], lists[2])
	sorted := slices.Sorted(slices.Values(all))
	//sizedmake:ok lists of an attribute
	if len(slices.Compact(slices.Clone(sorted))) != len(all) {
		return nil, status.InvalidArgumentf("duplicate feature names in %q", sorted)
	}
	if len(all) != len(s.types) {
		return nil, status.InvalidArgumentf("%d features for elements of %d components", len(all), len(s.types))
	}
	for _, key := range all {
		d.place = append(d.place, slices.Index(sorted, key))
	}
	attrs := opdef.Attrs{"num_sparse": int64(d.sparse), "ragged_value_types": []tensor.DType{}, "ragged_split_types": []tensor.DType{}}
	for _, name := range []string{"Tdense", "sparse_types", "dense_shapes", "ragged_value_types", "ragged_split_types"} {
		if v, ok := n.Attrs[name]; ok {
			//sizedmake:ok attributes
			attrs[name] = v
		}
	}
	var err error
	if d.parse, err = newComponent(n, "ParseExampleV2", attrs); err != nil {
		return nil, err
	}
	defaults, err := n.inputs(ctx, "dense_defaults")
	if err != nil {
		return nil, err
	}
	d.keys = append(d.keys, tensor.Vector[string]())
	for _, list := range lists {
		d.keys = append(d.keys, tensor.Vector(list...))
	}
	d.keys = append(d.keys, defaults...)
	if d.order, err = n.determinism(); err != nil {
		return nil, err
	}
	d.parallel, err = parallelism[int64](n, ctx)
	return d, err
}

func (d *parseExampleDataset) iterate(r *run) (iterator, error) {
	return d.parallelMap(r, d.features, d.parallel, d.order)
}

// features parses a vector of examples.
func (d *parseExampleDataset) features(r *run, e element) (element, error) {
	if len(e) != 1 || e[0].DType() != tensor.String || e[0].Rank() != 1 {
		e.release()
		return nil, status.InvalidArgumentf("%s needs elements that are vectors of strings", "ParseExampleDataset")
	}
	got, err := d.parse.compute(r, slices.Concat(e, d.keys.retain()))
	if err != nil {
		return nil, err
	}
	out := element(membudget.Make[tensor.Tensor](len(d.place)))
	dense := len(d.place) - d.sparse - d.ragged
	for i, at := range d.place {
		switch k := i - d.sparse - dense; {
		case i < d.sparse:
			out[at] = packSparse(got[i], got[d.sparse+i], got[2*d.sparse+i])
		case k < 0:
			out[at] = got[2*d.sparse+i]
		default:
			first := 3*d.sparse + dense + k
			v, err := tensor.EncodedVariant{TypeName: "RaggedTensorVariant", Tensors: []tensor.Tensor{got[first+d.ragged], got[first]}}.Decode()
			if err != nil {
				return nil, err
			}
			out[at] = tensor.Scalar(tensor.VariantValue{Value: v})
		}
	}
	return out, nil
}
