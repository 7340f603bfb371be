package parsing

import (
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// feature describes a feature to parse.
type feature struct {
	key    string
	dtype  tensor.DType
	shape  tensor.PartialShape // shape of the values in one record; dense features only
	row    []int64             // dimensions of shape, without the first if varying
	stride int                 // number of elements in row
	// whether a record may have any number of rows; shorter ones are padded
	varying  bool
	optional bool // whether a dense list may be missing
	// default value, or padding of a varying feature; empty if there is none
	fill   *tensor.Tensor
	splits tensor.DType // splits dtype of a ragged feature
}

// set returns the reader for the values of the feature.
func (f *feature) set() *values { return valuesOf[f.dtype] }

// wanted lists the features to parse from one map: of an Example, or of the context or the feature
// lists of a SequenceExample.
type wanted struct{ sparse, dense, ragged []feature }

// newWanted reads the attributes with dtypes and shapes. prefix is "context_" or empty.
func newWanted(sparse, dense, ragged, splits []tensor.DType, shapes []tensor.PartialShape) (*wanted, error) {
	w := &wanted{sparse: ofTypes(sparse), dense: ofTypes(dense), ragged: ofTypes(ragged)}
	for i, s := range shapes {
		f := &w.dense[i]
		if !s.RankKnown() || slices.Contains(s.Dims()[min(1, s.Rank()):], tensor.UnknownDim) {
			return nil, status.InvalidArgumentf("dense_shapes[%d] has unknown rank or unknown inner dimensions: %v", i, s)
		}
		f.shape, f.row = s, s.Dims()
		if s.Rank() > 0 && s.Dim(0) == tensor.UnknownDim {
			f.varying, f.row = true, f.row[1:]
		}
		if err := tensor.Shape(f.row).Check(); err != nil {
			return nil, err
		}
		f.stride = int(tensor.Shape(f.row).NumElements())
	}
	for i, t := range splits {
		w.ragged[i].splits = t
	}
	return w, nil
}

func ofTypes(types []tensor.DType) []feature {
	out := membudget.Make[feature](len(types))
	for i, t := range types {
		out[i].dtype = t
	}
	return out
}

// named returns a copy of w with keys and defaults.
func (w *wanted) named(k keys, fills []*tensor.Tensor) *wanted {
	with := func(features []feature, keys []string) []feature {
		//sizedmake:ok features, as many as the attributes list
		features = slices.Clone(features)
		for i := range features {
			features[i].key = keys[i]
		}
		return features
	}
	out := &wanted{with(w.sparse, k.sparse), with(w.dense, k.dense), with(w.ragged, k.ragged)}
	for i, f := range fills {
		out.dense[i].fill = f
	}
	return out
}

// keys holds the feature keys by kind of feature.
type keys struct{ sparse, dense, ragged []string }

func (k keys) equal(o keys) bool {
	return slices.Equal(k.sparse, o.sparse) && slices.Equal(k.dense, o.dense) && slices.Equal(k.ragged, o.ragged)
}

// index assigns numbers to keys. A repeated key has one number.
type index struct {
	keys  keys
	slots map[string]int
}

func newIndex(k keys) *index {
	x := &index{k, map[string]int{}}
	//sizedmake:ok keys of features, as many as the attributes list
	for _, key := range slices.Concat(k.sparse, k.dense, k.ragged) {
		if _, ok := x.slots[key]; !ok {
			//sizedmake:ok keys of features, as many as the attributes list
			x.slots[key] = len(x.slots)
		}
	}
	return x
}

// checkFill checks the default value of dense feature i.
func (f *feature) checkFill(i int) error {
	n := f.fill.NumElements()
	switch {
	case f.varying && n != 1:
		return status.InvalidArgumentf("dense_shape[%d] is a variable length shape: %v, therefore def_value[%d] must contain a single element "+
			"(the padding element).  But its shape is: %v", i, f.shape, i, f.fill.Shape())
	case !f.varying && n > 0 && !f.shape.CompatibleWith(f.fill.Shape()):
		return status.InvalidArgumentf("def_value[%d].shape() == %v is not compatible with dense_shapes_[%d] == %v", i, f.fill.Shape(), i, f.shape)
	}
	return nil
}

// checkLengths checks that list attributes have equal lengths.
func checkLengths(lists ...attrLength) error {
	for _, l := range lists[1:] {
		if l.n != lists[0].n {
			return status.InvalidArgumentf("len(%s) != len(%s)", lists[0].name, l.name)
		}
	}
	return nil
}

// attrLength is the name and length of a list attribute.
type attrLength struct {
	name string
	n    int
}

// listLength returns the length of the named attribute.
func listLength(attrs opdef.Attrs, name string) attrLength {
	switch v := attrs[name].(type) {
	case []tensor.DType:
		return attrLength{name, len(v)}
	case []tensor.PartialShape:
		return attrLength{name, len(v)}
	case []string:
		return attrLength{name, len(v)}
	}
	return attrLength{name, 0}
}
