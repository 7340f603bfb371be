// Package recorded reads answers that another program has computed, for tests of parity.
package recorded

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// Array is a tensor in a file of answers.
type Array struct {
	DType  string     `json:"dtype"`
	Shape  []int64    `json:"shape"`
	Values []*float64 `json:"values"` // nil is a NaN
}

// Read reads a file with a list of answers.
func Read[T any](t *testing.T, path string) []T {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("%s has no answers", path)
	}
	return out
}

// Floats returns the elements.
func (a *Array) Floats() []float64 {
	out := make([]float64, len(a.Values))
	for i, v := range a.Values {
		if v == nil {
			out[i] = math.NaN()
		} else {
			out[i] = *v
		}
	}
	return out
}

// Tensor returns the tensor.
func (a *Array) Tensor(t *testing.T) tensor.Tensor {
	t.Helper()
	switch a.DType {
	case "int32":
		return build[int32](t, a)
	case "float32":
		return build[float32](t, a)
	}
	t.Fatalf("there is no type %q", a.DType)
	return tensor.Tensor{}
}

func build[T int32 | float32](t *testing.T, a *Array) tensor.Tensor {
	t.Helper()
	vals := make([]T, len(a.Values))
	for i, v := range a.Floats() {
		vals[i] = T(v)
	}
	out, err := tensor.FromSlice(tensor.Shape(a.Shape), vals)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Check reports elements of got, a float32 tensor, that differ from the answer by more than
// tolerance relative to the largest of 1 and the answer.
func (a *Array) Check(t *testing.T, what string, got *tensor.Tensor, tolerance float64) {
	t.Helper()
	if !got.Shape().Equal(tensor.Shape(a.Shape)) {
		t.Errorf("%s: got shape %v, want %v", what, got.Shape(), a.Shape)
		return
	}
	values := tensor.Values[float32](got)
	for i, want := range a.Floats() {
		if d := math.Abs(float64(values[i]) - want); !(d <= tolerance*max(1, math.Abs(want))) {
			t.Errorf("%s: element %d is %v, want %v", what, i, values[i], want)
			return
		}
	}
}
