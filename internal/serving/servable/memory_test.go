package servable

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestMemoryOfExamples runs short examples with a long context, and gives each the same labels.
func TestMemoryOfExamples(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(256 << 20)
	text := strings.Repeat("x", 64<<10)
	context := &pb.Example{Features: &pb.Features{Feature: map[string]*pb.Feature{
		"a": {Kind: &pb.Feature_BytesList{BytesList: &pb.BytesList{Value: [][]byte{[]byte(text)}}}},
	}}}
	const n = 100_000
	examples := make([]*pb.Example, n)
	for i := range examples {
		examples[i] = &pb.Example{}
	}
	_, err := examplesTensor(&servingpb.Input{Kind: &servingpb.Input_ExampleListWithContext{
		ExampleListWithContext: &servingpb.ExampleListWithContext{Examples: examples, Context: context},
	}})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("a context: got %v", err)
	}
	labels := make([]string, n)
	for i := range labels {
		labels[i] = text
	}
	classes, err := tensor.FromSlice(tensor.Shape{n, 1}, labels)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := classification(map[string]tensor.Tensor{classesName: classes}, n); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("labels: got %v", err)
	}
}
