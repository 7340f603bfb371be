package tensor

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

func TestNew(t *testing.T) {
	type celsius float32
	for _, test := range []struct {
		v     any
		dtype DType
		shape Shape
		want  any // expected value; nil if it is v
	}{
		{true, Bool, Shape{}, nil}, {int8(-1), Int8, Shape{}, nil}, {int16(-1), Int16, Shape{}, nil}, {int64(1 << 40), Int64, Shape{}, nil},
		{uint8(1), Uint8, Shape{}, nil}, {uint16(1), Uint16, Shape{}, nil}, {uint32(1), Uint32, Shape{}, nil}, {uint64(1), Uint64, Shape{}, nil},
		{float32(1), Float32, Shape{}, nil}, {1.5, Float64, Shape{}, nil}, {complex64(1i), Complex64, Shape{}, nil}, {1i, Complex128, Shape{}, nil},
		{"text", String, Shape{}, nil}, {Float16Of(1), Float16, Shape{}, nil}, {BFloat16Of(1), BFloat16, Shape{}, nil}, {QUint8Elem(3), QUint8, Shape{}, nil},
		{[]float32{1, 2}, Float32, Shape{2}, nil}, {[][]float32{{1, 2}, {3, 4}}, Float32, Shape{2, 2}, nil},
		{[][]string{{"a"}, {"b"}}, String, Shape{2, 1}, nil}, {[]Float16Elem{1, 2}, Float16, Shape{2}, nil},
		{[2][3]float64{{1, 2, 3}, {4, 5, 6}}, Float64, Shape{2, 3}, [][]float64{{1, 2, 3}, {4, 5, 6}}},
		{[]celsius{20}, Float32, Shape{1}, []float32{20}}, {[][]celsius{{20}}, Float32, Shape{1, 1}, [][]float32{{20}}},
		{7, Int32, Shape{}, int32(7)}, {1 << 40, Int64, Shape{}, int64(1 << 40)}, {[]int{1, -1 << 31}, Int32, Shape{2}, []int32{1, -1 << 31}},
		{[]int{1, 1 << 31}, Int64, Shape{2}, []int64{1, 1 << 31}}, {[]float32{}, Float32, Shape{0}, nil},
		{[][]int64{{}, {}}, Int64, Shape{2, 0}, nil}, {[][]int64{}, Int64, Shape{0, 0}, nil},
		{[][][]bool{{{true}, {false}}}, Bool, Shape{1, 2, 1}, nil},
	} {
		x, err := New(test.v)
		if err != nil {
			t.Errorf("%v: %v", test.v, err)
			continue
		}
		want := test.want
		if want == nil {
			want = test.v
		}
		if x.DType() != test.dtype || !x.Shape().Equal(test.shape) || !reflect.DeepEqual(x.Go(), want) {
			t.Errorf("%v: got %v with %#v", test.v, x.String(), x.Go())
		}
	}
	x := Scalar(int32(1))
	if y, err := New(x); err != nil || y.DType() != Int32 {
		t.Errorf("a tensor: %v, %v", y.String(), err)
	}
}

func TestNewErrors(t *testing.T) {
	for _, test := range []struct {
		v    any
		want string
	}{
		{nil, "cannot make a tensor of nil"}, {struct{}{}, "cannot make a tensor of struct {}"}, {map[int]int{}, "cannot make a tensor of map"},
		{new(int), "cannot make a tensor of *int"}, {[][]float32{{1}, {1, 2}}, "rows of 1 and of 2 values"},
		{[][]float32{{}, {1}}, "rows of 0 and of 1 values"}, {[][]int{{1, 2}, {1}}, "rows of 2 and of 1 values"},
		{[]any{1, 2}, "cannot make a tensor of []interface {}"}, {uint(1), "cannot make a tensor of uint"},
	} {
		if _, err := New(test.v); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T: got %v", test.v, err)
		}
	}
}

// TestGoValuesAreCopies checks that Go returns a copy of the elements.
func TestGoValuesAreCopies(t *testing.T) {
	x := Vector[float32](1, 2)
	got, ok := x.Go().([]float32)
	if !ok {
		t.Fatalf("values are a %T", x.Go())
	}
	got[0] = 9
	if Values[float32](&x)[0] != 1 {
		t.Error("a value has changed the tensor")
	}
	var none Tensor
	if none.Go() != nil {
		t.Error("a tensor that is not initialized has values")
	}
}

// TestSummary checks for TensorFlow's formats.
func TestSummary(t *testing.T) {
	from := func(v any) *Tensor {
		x, err := New(v)
		if err != nil {
			t.Fatal(err)
		}
		return &x
	}
	long := make([]float32, 27)
	for i := range long {
		long[i] = float32(i)
	}
	cube, _ := FromSlice(Shape{3, 3, 3}, long)
	deep, _ := FromSlice(Shape{1, 1, 1, 1, 2}, []float32{1, 1})
	empty, _ := FromSlice(Shape{2, 0}, []float32{})
	handle := Scalar(&Handle{Device: "d", Container: "c", Name: "n"})
	for _, test := range []struct {
		t    *Tensor
		want string
	}{
		{from(float32(1.5)), "type: float shape: [] values: 1.5"}, {from([]float32{1, 2}), "type: float shape: [2] values: 1 2"},
		{from([][]float32{{1, 2}, {3, 4}}), "type: float shape: [2,2] values: [1 2][3...]..."},
		{from(long[:10]), "type: float shape: [10] values: 0 1 2..."}, {from([]float32{}), "type: float shape: [0] values: "},
		{&empty, "type: float shape: [2,0] values: "}, {&cube, "type: float shape: [3,3,3] values: [[0 1 2]]..."},
		{&deep, "type: float shape: [1,1,1,1,2] values: [[[[1 1]]]]"}, {from(float32(1) / 3), "type: float shape: [] values: 0.333333343"},
		{from(float32(1e10)), "type: float shape: [] values: 1e+10"}, {from(float32(1e-7)), "type: float shape: [] values: 1e-07"},
		{from(float32(123456789)), "type: float shape: [] values: 123456792"}, {from(1.0 / 3), "type: double shape: [] values: 0.33333333333333331"},
		{from(1e22), "type: double shape: [] values: 1e+22"}, {from(float32(1e6)), "type: float shape: [] values: 1e+06"},
		{from(float32(1e5)), "type: float shape: [] values: 100000"}, {from(float32(100000.5)), "type: float shape: [] values: 100000.5"},
		{from([]bool{true, false}), "type: bool shape: [2] values: 1 0"}, {from("abc"), "type: string shape: [] values: abc"},
		{from([]string{"a b", "c\"d\n\x01", "é"}), "type: string shape: [3] values: a b c\\\"d\\n\\001 é"},
		{from([]int8{1, 2, 3, 4, 5}), "type: int8 shape: [5] values: 1 2 3..."}, {from([]uint8{200}), "type: uint8 shape: [1] values: 200"},
		{from([]uint64{1 << 63}), "type: uint64 shape: [1] values: 9223372036854775808"}, {from(complex64(1 + 2i)), "type: complex64 shape: [] values: ?"},
		{from(Float16Of(1.5)), "type: half shape: [] values: 1.5"}, {from(BFloat16Of(1.5)), "type: bfloat16 shape: [] values: 1.5"},
		{&handle, `type: resource shape: [] values: <ResourceHandle(name="n", device="d", container="c", type="", dtype and shapes : "[  ]")>`},
	} {
		if got, want := test.t.String(), "Tensor<"+test.want+">"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := from([][]int32{{1, 2}, {3, 4}}).Summary(-1); got != "[1 2][3 4]" {
		t.Errorf("all elements: %s", got)
	}
	if got := (&Tensor{}).String(); got != "Tensor<uninitialized>" {
		t.Errorf("got %s", got)
	}
}

// A summary ends early if there is no memory for it.
func TestSummaryMemory(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(256 << 20)
	x := Vector(slices.Repeat([]string{strings.Repeat("x", 1<<10)}, 1<<20)...)
	if got := x.Summary(-1); got != "..." {
		t.Errorf("a summary of 1 GiB has %d bytes", len(got))
	}
	if got := x.Summary(2); len(got) != 2<<10+len(" ...") {
		t.Errorf("a summary of two elements has %d bytes", len(got))
	}
}
