package parsing

import (
	"fmt"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// BenchmarkExample parses batches of 128 records with 20 dense features of each kind, with 4 values
// each.
func BenchmarkExample(b *testing.B) {
	const features, batch = 20, 128
	record := &pb.Example{Features: &pb.Features{Feature: map[string]*pb.Feature{}}}
	var keys []string
	var types []tensor.DType
	var shapes []tensor.PartialShape
	var defaults []tensor.Tensor
	one := sample([]int64{1, 300, -1, 1 << 40}, []float32{1, 2, 3, 4}, [][]byte{[]byte("red"), []byte("green"), []byte("blue"), nil})
	for i := range features {
		for k, key := range fuzzKeys {
			name := fmt.Sprintf("%s%d", key, i)
			record.Features.Feature[name] = one.Features.Feature[key]
			keys, types, shapes = append(keys, name), append(types, fuzzTypes[k]), append(shapes, tensor.MakePartial(4))
			none, err := tensor.Zeros(fuzzTypes[k], tensor.Shape{0})
			if err != nil {
				b.Fatal(err)
			}
			defaults = append(defaults, none)
		}
	}
	text := marshal(b, record)
	records := make([]string, batch)
	for i := range records {
		records[i] = text
	}
	n := node(b, "ParseExampleV2", opdef.Attrs{
		"num_sparse": int64(0), "sparse_types": []tensor.DType{}, "Tdense": types, "dense_shapes": shapes,
		"ragged_value_types": []tensor.DType{}, "ragged_split_types": []tensor.DType{},
	})
	none := tensor.Vector[string]()
	in := append([]tensor.Tensor{tensor.Vector(records...), none, none, tensor.Vector(keys...), none}, defaults...)
	b.SetBytes(int64(len(text) * batch))
	b.ReportAllocs()
	for b.Loop() {
		outs, err := n.Run(in...)
		if err != nil {
			b.Fatal(err)
		}
		for i := range outs {
			outs[i].Release()
		}
	}
}
