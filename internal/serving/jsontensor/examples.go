package jsontensor

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

const (
	// exampleSize is the memory of an example without features, in bytes. Its text may have two.
	exampleSize = 320
	// featureSize is the memory of a feature and of its entry in the map of an example, in bytes.
	featureSize = 256
	// valueSize is the memory of a value of a feature, in bytes, with what its list leaves unused.
	valueSize = 48
)

// Examples returns the examples of a request. method is "classify" or "regress". It panics with a
// [*membudget.Exceeded] if there is no memory for them.
func Examples(doc jsondoc.Value, method string) (*servingpb.Input, error) {
	var meter membudget.Meter
	context, hasContext := doc.Member("context")
	var common *pb.Example
	if hasContext {
		var err error
		if common, err = example(context, &meter); err != nil {
			return nil, err
		}
	}
	list, ok := doc.Member("examples")
	switch {
	case !ok:
		return nil, status.InvalidArgumentf("JSON Value: %s When method is %s, key 'examples' is expected and was not found", doc, method)
	case list.Kind() != jsondoc.Array:
		return nil, status.InvalidArgumentf("JSON Value: %s Expecting 'examples' value to be an list/array", doc)
	case list.Len() == 0:
		return nil, status.InvalidArgumentf("JSON Value: %s 'examples' value is an empty array", doc)
	}
	examples := membudget.MakeCap[*pb.Example](list.Len())
	for v := range list.Elements() {
		e, err := example(v, &meter)
		if err != nil {
			return nil, err
		}
		examples = append(examples, e)
	}
	if hasContext {
		return &servingpb.Input{Kind: &servingpb.Input_ExampleListWithContext{
			ExampleListWithContext: &servingpb.ExampleListWithContext{Examples: examples, Context: common},
		}}, nil
	}
	return &servingpb.Input{Kind: &servingpb.Input_ExampleList{ExampleList: &servingpb.ExampleList{Examples: examples}}}, nil
}

// example returns the example of an object of features.
func example(v jsondoc.Value, meter *membudget.Meter) (*pb.Example, error) {
	if v.Kind() != jsondoc.Object {
		return nil, status.InvalidArgumentf("Example must be JSON object but got JSON %s", v.Kind())
	}
	meter.MustTake(exampleSize + featureSize*v.Len())
	features := make(map[string]*pb.Feature, v.Len())
	for name, value := range v.Members() {
		f := &pb.Feature{}
		if value.Kind() == jsondoc.Array {
			for e := range value.Elements() {
				if err := addToFeature(f, name, e, meter); err != nil {
					return nil, err
				}
			}
		} else if err := addToFeature(f, name, value, meter); err != nil {
			return nil, err
		}
		features[name] = f
	}
	return &pb.Example{Features: &pb.Features{Feature: features}}, nil
}

// addToFeature adds one value to a feature, whose values have one kind.
func addToFeature(f *pb.Feature, name string, v jsondoc.Value, meter *membudget.Meter) error {
	meter.MustTake(valueSize)
	switch v.Kind() {
	case jsondoc.String, jsondoc.Object:
		if v.Kind() == jsondoc.Object && !IsBase64(v) {
			return unexpectedKind(name, v)
		}
		var b string
		if v.Kind() == jsondoc.String {
			b = v.Text()
		} else {
			var err error
			if b, err = decodeBase64(v, meter); err != nil {
				return err
			}
		}
		meter.MustTake(len(b))
		return addBytes(f, name, b)
	case jsondoc.True:
		return addInt(f, name, 1)
	case jsondoc.False:
		return addInt(f, name, 0)
	case jsondoc.Number:
		if !v.IsInteger() {
			return addFloat(f, name, float32(v.Float64()))
		}
		i, ok := v.Int64()
		if !ok {
			return status.InvalidArgumentf("Feature: %s has uint64_t element. Only int64_t is supported.", name)
		}
		return addInt(f, name, i)
	default:
		return unexpectedKind(name, v)
	}
}

func unexpectedKind(name string, v jsondoc.Value) error {
	return status.InvalidArgumentf("Feature: %s has element with unexpected JSON type: %s", name, v.Kind())
}

func unexpectedElement(f *pb.Feature, name string) error {
	kind := "bytes"
	switch f.GetKind().(type) {
	case *pb.Feature_FloatList:
		kind = "float"
	case *pb.Feature_Int64List:
		kind = "int64"
	}
	return status.InvalidArgumentf("Unexpected element type in feature: %s expecting type: %s", name, kind)
}

func addBytes(f *pb.Feature, name, v string) error {
	if f.Kind == nil {
		f.Kind = &pb.Feature_BytesList{BytesList: &pb.BytesList{}}
	}
	kind, ok := f.Kind.(*pb.Feature_BytesList)
	if !ok {
		return unexpectedElement(f, name)
	}
	kind.BytesList.Value = append(kind.BytesList.Value, []byte(v))
	return nil
}

func addInt(f *pb.Feature, name string, v int64) error {
	if f.Kind == nil {
		f.Kind = &pb.Feature_Int64List{Int64List: &pb.Int64List{}}
	}
	kind, ok := f.Kind.(*pb.Feature_Int64List)
	if !ok {
		return unexpectedElement(f, name)
	}
	kind.Int64List.Value = append(kind.Int64List.Value, v)
	return nil
}

func addFloat(f *pb.Feature, name string, v float32) error {
	if f.Kind == nil {
		f.Kind = &pb.Feature_FloatList{FloatList: &pb.FloatList{}}
	}
	kind, ok := f.Kind.(*pb.Feature_FloatList)
	if !ok {
		return unexpectedElement(f, name)
	}
	kind.FloatList.Value = append(kind.FloatList.Value, v)
	return nil
}
