package data

import (
	"context"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/tfrecord"
)

// TFRecord returns the records of files as string scalars. [ParseExamples] parses them if they are
// serialized tensorflow.Example messages. Files must not be compressed.
func TFRecord(paths ...string) *Dataset {
	spec := []Spec{{tensor.String, tensor.MakePartial()}}
	return New(spec, unknown, func(context.Context, int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			for _, path := range paths {
				if !readRecords(path, yield) {
					return
				}
			}
		}
	})
}

func readRecords(path string, yield func(Element, error) bool) bool {
	r, err := tfrecord.Open(path, "")
	if err != nil {
		yield(nil, err)
		return false
	}
	defer r.Close()
	for b, err := range r.All() {
		if err != nil {
			yield(nil, err)
			return false
		}
		if !yield(Element{tensor.Scalar(string(b))}, nil) {
			return false
		}
	}
	return true
}

// Feature describes a feature of a tensorflow.Example.
type Feature struct {
	Name  string
	DType tensor.DType // Float32, Int64 or String
	// Shape is the shape of the tensor. The size -1 of a vector means any number of values.
	Shape []int64
}

// ParseExamples returns the function for [Dataset.Map], and its types, that parses string scalars
// of serialized tensorflow.Example messages. A missing feature is an InvalidArgument error.
//
//	f, spec := data.ParseExamples(
//		data.Feature{Name: "image", DType: tensor.Float32, Shape: []int64{28, 28, 1}},
//		data.Feature{Name: "label", DType: tensor.Int64},
//	)
//	d := data.TFRecord(paths...).Map(2, spec, f)
func ParseExamples(features ...Feature) (func(Element) (Element, error), []Spec) {
	spec := make([]Spec, len(features))
	for i, f := range features {
		spec[i] = Spec{f.DType, tensor.MakePartial(f.Shape...)}
	}
	return func(e Element) (Element, error) {
		if len(e) != 1 || e[0].DType() != tensor.String || e[0].NumElements() != 1 {
			return nil, status.InvalidArgumentf("data: an example is a string scalar")
		}
		var m pb.Example
		if err := proto.Unmarshal([]byte(tensor.Value[string](&e[0])), &m); err != nil {
			return nil, status.Errorf(status.DataLoss, "data: not a tensorflow.Example: %w", err)
		}
		out := make(Element, len(features))
		for i, f := range features {
			var err error
			if out[i], err = f.parse(m.GetFeatures().GetFeature()[f.Name]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}, spec
}

// parse returns the tensor of a feature.
func (f *Feature) parse(v *pb.Feature) (tensor.Tensor, error) {
	switch f.DType {
	case tensor.Float32:
		return values(f, v.GetFloatList().GetValue())
	case tensor.Int64:
		return values(f, v.GetInt64List().GetValue())
	case tensor.String:
		texts := make([]string, len(v.GetBytesList().GetValue()))
		for i, b := range v.GetBytesList().GetValue() {
			texts[i] = string(b)
		}
		return values(f, texts)
	}
	return tensor.Tensor{}, status.InvalidArgumentf("data: feature %q cannot have type %v", f.Name, f.DType)
}

func values[T float32 | int64 | string](f *Feature, v []T) (tensor.Tensor, error) {
	shape := tensor.Shape(slices.Clone(f.Shape))
	if len(shape) == 1 && shape[0] < 0 {
		shape[0] = int64(len(v))
	}
	if n := shape.NumElements(); n != int64(len(v)) {
		return tensor.Tensor{}, status.InvalidArgumentf("data: feature %q has %d values of type %v, want %d for shape %v", f.Name, len(v), f.DType, n, shape)
	}
	return tensor.FromSlice(shape, v)
}
