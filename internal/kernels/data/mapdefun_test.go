package data

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// rowsProgram calls a function that multiplies a number by 3 for each row of arguments.
func rowsProgram(t *testing.T, arguments tensor.Tensor, shape tensor.PartialShape) (tensor.Tensor, error) {
	t.Helper()
	p := &program{}
	return p.run(t, p.add("rows", "MapDefun", opdef.Attrs{
		"Targuments": []tensor.DType{arguments.DType()}, "Tcaptured": []tensor.DType{}, "f": p.function("f", "Mul", 3),
		"output_types": []tensor.DType{tensor.Int64}, "output_shapes": []tensor.PartialShape{shape},
	}, p.constant("arguments", arguments)), tensor.Int64)
}

func TestMapDefun(t *testing.T) {
	numbers := make([]int64, 100)
	want := make([]int64, 100)
	for i := range numbers {
		numbers[i], want[i] = int64(i), int64(3*i)
	}
	for _, shape := range []tensor.PartialShape{tensor.MakePartial(), {}} {
		got, err := rowsProgram(t, tensor.Vector(numbers...), shape)
		if err != nil || !slices.Equal(tensor.Values[int64](&got), want) {
			t.Errorf("%v, %v", got, err)
		}
	}
	got, err := rowsProgram(t, tensor.Vector[int64](), tensor.MakePartial(2))
	if err != nil || !got.Shape().Equal(tensor.Shape{0, 2}) {
		t.Errorf("no rows: %v, %v", got, err)
	}
	for text, arguments := range map[string]tensor.Tensor{
		"Mismatch in function retval shape, [], and expected output shape, [2].": tensor.Vector[int64](1),
		"All inputs must have rank at least 1. Input 0 has a rank of 0.":         num(1),
	} {
		_, err := rowsProgram(t, arguments, tensor.MakePartial(2))
		if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

func TestMapDefunShapes(t *testing.T) {
	attrs := opdef.Attrs{
		"Targuments": []tensor.DType{tensor.Int64, tensor.Int64}, "Tcaptured": []tensor.DType{tensor.Int64}, "f": opdef.Func{Name: "f"},
		"output_types":  []tensor.DType{tensor.Int64, tensor.Int64},
		"output_shapes": []tensor.PartialShape{tensor.MakePartial(2, -1), {}},
	}
	for _, c := range []struct {
		first, second tensor.PartialShape
		want, err     string
	}{
		{tensor.MakePartial(-1, 3), tensor.MakePartial(5), "[5,2,?]", ""},
		{tensor.PartialShape{}, tensor.MakePartial(-1), "[?,2,?]", ""},
		{tensor.MakePartial(4), tensor.MakePartial(5), "", "Arguments must have the same dimension 0."},
		{tensor.MakePartial(4), tensor.MakePartial(), "", "Arguments must have rank at least 1. Input 1 has rank of 0."},
	} {
		got, err := kerneltest.Shapes("MapDefun", attrs, []tensor.PartialShape{c.first, c.second, tensor.MakePartial()}, nil)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v %v: %v", c.first, c.second, err)
			}
			continue
		}
		if err != nil || got[0].String() != c.want || got[1].RankKnown() {
			t.Errorf("%v %v: %v, %v", c.first, c.second, got, err)
		}
	}
}
