package function_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// floats returns a function of float arguments and results. Each node is an operation with two
// inputs.
func floats(name string, args []string, nodes [][4]string, rets ...string) graph.FunctionDef {
	def := graph.FunctionDef{Signature: opdef.Op{Name: name}, Ret: map[string]string{}}
	for _, a := range args {
		def.Signature.Inputs = append(def.Signature.Inputs, opdef.Arg{Name: a, DType: tensor.Float32})
	}
	for _, n := range nodes {
		node := graph.NodeDef{Name: n[0], Op: n[1], Inputs: []string{n[2], n[3]}, Attrs: opdef.Attrs{}}
		if n[1] == "Mul" || n[1] == "AddV2" {
			node.Attrs["T"] = tensor.Float32
		}
		def.Nodes = append(def.Nodes, node)
	}
	for i, r := range rets {
		out := opdef.Arg{Name: "r" + string(rune('0'+i)), DType: tensor.Float32}
		def.Signature.Outputs = append(def.Signature.Outputs, out)
		def.Ret[out.Name] = r
	}
	return def
}

func gradientOf(t *testing.T, l *library, f opdef.Func, outs int, in ...float32) ([]tensor.Tensor, error) {
	t.Helper()
	types := make([]tensor.DType, len(in))
	args := make([]tensor.Tensor, len(in))
	for i, v := range in {
		types[i], args[i] = tensor.Float32, tensor.Scalar(v)
	}
	return newNode(l, "SymbolicGradient", opdef.Attrs{"Tin": types, "Tout": types[:outs], "f": f}).run(args...)
}

func TestSymbolicGradient(t *testing.T) {
	square := floats("square", []string{"x"}, [][4]string{{"y", "Mul", "x", "x"}}, "y:z:0")
	cube := floats("cube", []string{"x", "w"},
		[][4]string{{"s", "helper", "x", "w"}, {"y", "Mul", "s:r0:0", "x"}}, "y:z:0")
	helper := floats("helper", []string{"x", "w"}, [][4]string{{"y", "Mul", "x", "x"}, {"z", "Mul", "y:z:0", "w"}}, "z:z:0")
	both := floats("both", []string{"x", "w"}, [][4]string{{"y", "AddV2", "x", "x"}}, "y:z:0", "x")
	l := newLibrary(t, square, cube, helper, both)
	tests := []struct {
		f    opdef.Func
		in   []float32 // x…, dy…
		want []float32
	}{
		{opdef.Func{Name: "square"}, []float32{3, 1}, []float32{6}},
		{opdef.Func{Name: "square"}, []float32{3, 10}, []float32{60}},
		// d(x³w)
		{opdef.Func{Name: "cube"}, []float32{2, 5, 1}, []float32{60, 8}},
		// w is unused, and x is also a result
		{opdef.Func{Name: "both"}, []float32{2, 5, 1, 100}, []float32{102, 0}},
		// an operation
		{opdef.Func{Name: "Mul", Attrs: opdef.Attrs{"T": tensor.Float32}}, []float32{2, 5, 1}, []float32{5, 2}},
	}
	for _, tt := range tests {
		got, err := gradientOf(t, l, tt.f, len(tt.want), tt.in...)
		if err != nil {
			t.Errorf("%s: %v", tt.f.Name, err)
			continue
		}
		for i, want := range tt.want {
			if v := tensor.Value[float32](&got[i]); v != want {
				t.Errorf("%s%v: gradient %d is %v, want %v", tt.f.Name, tt.in, i, v, want)
			}
		}
	}
}

func TestOwnGradient(t *testing.T) {
	l := newLibrary(t)
	defs := []graph.FunctionDef{
		floats("f", []string{"x"}, [][4]string{{"y", "Mul", "x", "x"}}, "y:z:0"),
		floats("g", []string{"x", "dy"}, [][4]string{{"s", "AddV2", "x", "dy"}}, "s:z:0"),
		floats("h", []string{"x"}, nil, "x"),
		floats("none", []string{"x", "dy"}, nil),
	}
	l.add(defs, map[string]string{"f": "g", "h": "none"})
	got, err := gradientOf(t, l, opdef.Func{Name: "f"}, 1, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	if v := tensor.Value[float32](&got[0]); v != 7 {
		t.Errorf("got %v, want 7", v)
	}
	_, err = gradientOf(t, l, opdef.Func{Name: "h"}, 1, 3, 4)
	if status.CodeOf(err) != status.InvalidArgument || err.Error() != "SymGrad expects to return 1 tensor(s), but get 0 tensor(s) instead." {
		t.Errorf("got %v", err)
	}
}

func TestNoGradient(t *testing.T) {
	endless := floats("endless", []string{"x", "w"}, [][4]string{{"y", "endless", "x", "w"}}, "y:r0:0")
	l := newLibrary(t, endless)
	for f, code := range map[string]status.Code{
		"endless": status.InvalidArgument, "NoSuchOp": status.InvalidArgument, "SymbolicGradient": status.InvalidArgument,
	} {
		if _, err := gradientOf(t, l, opdef.Func{Name: f}, 2, 1, 2, 3); status.CodeOf(err) != code {
			t.Errorf("%s: got %v: %v", f, status.CodeOf(err), err)
		}
	}
}

// TestGradientOfRecursion has a function that calls itself by a node that the gradient keeps.
func TestGradientOfRecursion(t *testing.T) {
	def := floats("f", []string{"x"}, nil, "c:output:0")
	types := []tensor.DType{tensor.Float32}
	def.Nodes = []graph.NodeDef{{
		Name: "c", Op: "PartitionedCall", Inputs: []string{"x"},
		Attrs: opdef.Attrs{"Tin": types, "Tout": types, "f": opdef.Func{Name: "f"}},
	}}
	_, err := gradientOf(t, newLibrary(t, def), opdef.Func{Name: "f"}, 1, 1, 2)
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "function 'f', which calls itself") {
		t.Errorf("got %v", err)
	}
}
