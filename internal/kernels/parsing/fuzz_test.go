package parsing

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// node creates a node of a registered operation.
func node(tb testing.TB, op string, attrs opdef.Attrs) *kerneltest.Node {
	tb.Helper()
	n, err := kerneltest.NewEnv().Make(op, attrs)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

var (
	fuzzKeys  = []string{"a", "b", "c"}
	fuzzTypes = []tensor.DType{tensor.Int64, tensor.Float32, tensor.String}
)

// sample returns an Example with a feature of every kind.
func sample(a []int64, b []float32, c [][]byte) *pb.Example {
	return &pb.Example{Features: &pb.Features{Feature: map[string]*pb.Feature{
		"a": {Kind: &pb.Feature_Int64List{Int64List: &pb.Int64List{Value: a}}},
		"b": {Kind: &pb.Feature_FloatList{FloatList: &pb.FloatList{Value: b}}},
		"c": {Kind: &pb.Feature_BytesList{BytesList: &pb.BytesList{Value: c}}},
	}}}
}

func marshal(tb testing.TB, m proto.Message) string {
	tb.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// sparseExample returns a ParseExampleV2 node for sparse features of every dtype.
func sparseExample(tb testing.TB) *kerneltest.Node {
	return node(tb, "ParseExampleV2", opdef.Attrs{
		"num_sparse": int64(3), "sparse_types": fuzzTypes, "Tdense": []tensor.DType{}, "dense_shapes": []tensor.PartialShape{},
		"ragged_value_types": []tensor.DType{}, "ragged_split_types": []tensor.DType{},
	})
}

func runSparse(n *kerneltest.Node, records ...string) ([]tensor.Tensor, error) {
	none := tensor.Vector[string]()
	return n.Run(tensor.Vector(records...), none, tensor.Vector(fuzzKeys...), none, none)
}

// FuzzExample checks that arbitrary bytes cause no panic, and that the parser agrees with the
// protobuf library.
func FuzzExample(f *testing.F) {
	f.Add([]byte(marshal(f, sample([]int64{1, -1, 1 << 40}, []float32{1.5, -2}, [][]byte{[]byte("x"), nil}))))
	f.Add([]byte(marshal(f, sample(nil, nil, nil))))
	f.Add([]byte("\x0a\x7f\x0b"))
	f.Add([]byte("\x0a\x0d\x0a\x0b\x0a\x01a\x12\x06\x1a\x04\x08\x05\x08\x06"))
	n := sparseExample(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		outs, err := runSparse(n, string(data), "")
		for i := range outs {
			outs[i].Release()
		}
		if err != nil && status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%q: %v", data, err)
		}
		var e pb.Example
		if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &e) == nil {
			compareExample(t, n, &e)
		}
	})
}

func compareExample(t *testing.T, n *kerneltest.Node, e *pb.Example) {
	t.Helper()
	features := e.GetFeatures().GetFeature()
	for i, key := range fuzzKeys {
		if f := features[key]; f.GetKind() != nil && !hasKind(f, fuzzTypes[i]) {
			return // a type error
		}
	}
	outs, err := runSparse(n, marshal(t, e))
	if err != nil {
		t.Fatalf("%v: %v", e, err)
	}
	if got, want := tensor.Values[int64](&outs[3]), features["a"].GetInt64List().GetValue(); !slices.Equal(got, want) {
		t.Errorf("integers are %v, want %v", got, want)
	}
	if got, want := tensor.Values[float32](&outs[4]), features["b"].GetFloatList().GetValue(); len(got) != len(want) {
		t.Errorf("%d floats, want %d", len(got), len(want))
	}
	got, want := tensor.Values[string](&outs[5]), features["c"].GetBytesList().GetValue()
	if !slices.EqualFunc(got, want, func(a string, b []byte) bool { return a == string(b) }) {
		t.Errorf("strings are %q, want %q", got, want)
	}
	for i := range outs {
		outs[i].Release()
	}
}

func hasKind(f *pb.Feature, t tensor.DType) bool {
	switch f.GetKind().(type) {
	case *pb.Feature_Int64List:
		return t == tensor.Int64
	case *pb.Feature_FloatList:
		return t == tensor.Float32
	}
	return t == tensor.String
}

// FuzzSequence checks that arbitrary bytes cause no panic in the SequenceExample parser.
func FuzzSequence(f *testing.F) {
	example := sample([]int64{1, 2}, []float32{3}, [][]byte{[]byte("x")})
	lists := map[string]*pb.FeatureList{}
	for key, feature := range example.GetFeatures().GetFeature() {
		lists[key] = &pb.FeatureList{Feature: []*pb.Feature{feature, {}, feature}}
	}
	f.Add([]byte(marshal(f, &pb.SequenceExample{Context: example.GetFeatures(), FeatureLists: &pb.FeatureLists{FeatureList: lists}})))
	splits := []tensor.DType{tensor.Int64, tensor.Int64, tensor.Int32}
	n := node(f, "ParseSequenceExampleV2", opdef.Attrs{
		"Ncontext_sparse": int64(3), "context_sparse_types": fuzzTypes, "Nfeature_list_sparse": int64(1), "feature_list_sparse_types": fuzzTypes[:1],
		"Nfeature_list_dense": int64(1), "feature_list_dense_types": fuzzTypes[1:2], "feature_list_dense_shapes": []tensor.PartialShape{tensor.MakePartial(1)},
		"feature_list_ragged_value_types": fuzzTypes[2:], "feature_list_ragged_split_types": splits[2:],
	})
	none, key := tensor.Vector[string](), func(i int) tensor.Tensor { return tensor.Vector(fuzzKeys[i]) }
	f.Fuzz(func(t *testing.T, data []byte) {
		outs, err := n.Run(tensor.Vector(string(data), ""), none, tensor.Vector(fuzzKeys...), none, none, key(0), key(1), key(2), tensor.Vector(true))
		if err != nil {
			return
		}
		outer, inner := tensor.Values[int32](&outs[len(outs)-2]), tensor.Values[int32](&outs[len(outs)-1])
		if len(outer) != 3 || int(outer[2]) != len(inner)-1 || int(inner[len(inner)-1]) != outs[len(outs)-3].NumElements() {
			t.Errorf("splits %v and %v do not fit", outer, inner)
		}
		for i := range outs {
			outs[i].Release()
		}
	})
}

// FuzzDecoders checks that arbitrary bytes cause no panic in the decoders of files and tensors.
func FuzzDecoders(f *testing.F) {
	audio, err := tensor.FromSlice(tensor.Shape{2, 1}, []float32{0, 0.5})
	if err != nil {
		f.Fatal(err)
	}
	file, err := node(f, "EncodeWav", nil).Run(audio, tensor.Scalar(int32(8000)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(tensor.Value[string](&file[0])))
	f.Add([]byte(`1,"a""b",` + "\n"))
	f.Add([]byte(`{"features":{}}`))
	wav, json := node(f, "DecodeWav", nil), node(f, "DecodeJSONExample", nil)
	csv := node(f, "DecodeCSV", opdef.Attrs{"OUT_TYPE": []tensor.DType{tensor.String, tensor.Float32}})
	parse := node(f, "ParseTensor", opdef.Attrs{"out_type": tensor.Float32})
	f.Fuzz(func(_ *testing.T, data []byte) {
		text := tensor.Scalar(string(data))
		for _, run := range []func() ([]tensor.Tensor, error){
			func() ([]tensor.Tensor, error) { return wav.Run(text) },
			func() ([]tensor.Tensor, error) { return json.Run(text) },
			func() ([]tensor.Tensor, error) { return csv.Run(text, tensor.Vector("x"), tensor.Vector[float32](1)) },
			func() ([]tensor.Tensor, error) { return parse.Run(text) },
		} {
			outs, _ := run()
			for i := range outs {
				outs[i].Release()
			}
		}
	})
}
