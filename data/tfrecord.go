package data

import (
	"context"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/tfrecord"
)

// TFRecord returns the records of files as string scalars. [Dataset.ParseExamples] parses them if
// they are serialized tensorflow.Example messages. Files must not be compressed.
func TFRecord(paths ...string) *Dataset {
	spec := []Spec{{tensor.String, tensor.MakePartial()}}
	return source(spec, unknown, func(context.Context, int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			for _, path := range paths {
				if !readRecords(path, yield) {
					return
				}
			}
		}
	}, func(p *pipeline) op.Output {
		return op.TFRecordDataset(p.s, op.Const(p.s, append([]string{}, paths...)), op.Const(p.s, ""), p.number(fileBuffer))
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

// ParseExamples parses string scalars, serialized tensorflow.Example messages, on up to workers
// goroutines. An element has a tensor for each feature. A feature that is missing, or of another
// type or size, is an InvalidArgument error; one of any number of values may be missing.
//
//	d := data.TFRecord(paths...).ParseExamples(2,
//		data.Feature{Name: "image", DType: tensor.Float32, Shape: []int64{28, 28, 1}},
//		data.Feature{Name: "label", DType: tensor.Int64},
//	)
func (d *Dataset) ParseExamples(workers int, features ...Feature) *Dataset {
	f, spec := ParseExamples(features...)
	return d.mapWith("ParseExamples", workers, spec, f, func(s *op.Scope, e []op.Output) []op.Output {
		if len(e) != 1 || e[0].DType() != tensor.String {
			s.Fail(errNoExample())
			return nil
		}
		return parseExample(s, e[0], features)
	})
}

// parseExample adds the operation that parses a message.
func parseExample(s *op.Scope, message op.Output, features []Feature) []op.Output {
	keys, shapes, defaults := make([]string, len(features)), make([]tensor.PartialShape, len(features)), make([]op.Output, len(features))
	for i, f := range features {
		size := int64(0) // no default: the feature is required
		if len(f.Shape) == 1 && f.Shape[0] < 0 {
			size = 1
		}
		none, err := tensor.Zeros(f.DType, tensor.Shape{size})
		if err != nil {
			s.Fail(err)
			return nil
		}
		keys[i], shapes[i], defaults[i] = f.Name, tensor.MakePartial(f.Shape...), op.Const(s, none)
	}
	_, _, _, values := op.ParseSingleExample(s, message, defaults, 0, nil, keys, nil, shapes)
	return values
}

// ParseExamples returns the function of [Dataset.ParseExamples], and the types of its results. With
// [Dataset.Map] the program calls it, also with FitOptions.DataOnWorker.
func ParseExamples(features ...Feature) (func(Element) (Element, error), []Spec) {
	spec := make([]Spec, len(features))
	for i, f := range features {
		spec[i] = Spec{f.DType, tensor.MakePartial(f.Shape...)}
	}
	return func(e Element) (Element, error) {
		if len(e) != 1 || e[0].DType() != tensor.String || e[0].NumElements() != 1 {
			return nil, errNoExample()
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

func errNoExample() error { return status.InvalidArgumentf("data: an example is a string scalar") }

// parse returns the tensor of a feature.
func (f *Feature) parse(v *pb.Feature) (tensor.Tensor, error) {
	if t, known := kind(v); known && t != f.DType {
		return tensor.Tensor{}, status.InvalidArgumentf("data: feature %q has values of type %v, want %v", f.Name, t, f.DType)
	}
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

// kind returns the type of the values of a feature, and false if it has none.
func kind(v *pb.Feature) (tensor.DType, bool) {
	switch v.GetKind().(type) {
	case *pb.Feature_FloatList:
		return tensor.Float32, true
	case *pb.Feature_Int64List:
		return tensor.Int64, true
	case *pb.Feature_BytesList:
		return tensor.String, true
	}
	return 0, false
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
