package graph

import (
	"testing"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestSameFunction compares equal definitions whose constants do not share memory.
func TestSameFunction(t *testing.T) {
	define := func(value float32, text string) *FunctionDef {
		number, err := tensor.Alloc(tensor.Float32, tensor.Shape{1})
		if err != nil {
			t.Fatal(err)
		}
		tensor.Values[float32](&number)[0] = value
		return &FunctionDef{
			Signature: opdef.Op{Name: "f"}, Ret: map[string]string{"r": "c:output:0"},
			Nodes: []NodeDef{{Name: "c", Op: "Const", Attrs: opdef.Attrs{
				"value": number, "others": []tensor.Tensor{tensor.Scalar(text)},
				"f": opdef.Func{Name: "g", Attrs: opdef.Attrs{"value": number}},
			}}},
		}
	}
	f := define(1, "a")
	used, _ := f.Nodes[0].Attrs["value"].(tensor.Tensor)
	used.Retain()
	if !sameFunction(f, define(1, "a")) {
		t.Error("a function is different from itself")
	}
	for _, other := range []*FunctionDef{define(2, "a"), define(1, "b")} {
		if sameFunction(f, other) {
			t.Errorf("functions with different constants are equal: %v", other.Nodes[0].Attrs)
		}
	}
	renamed := define(1, "a")
	renamed.Nodes[0].Name = "d"
	if sameFunction(f, renamed) {
		t.Error("functions with different nodes are the same")
	}
}
