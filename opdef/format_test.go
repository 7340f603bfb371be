package opdef

import (
	"runtime"
	"strings"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// TestFormatAttr checks for TensorFlow's formats.
func TestFormatAttr(t *testing.T) {
	many := make([]int64, 51)
	for i := range many {
		many[i] = int64(i + 1)
	}
	for _, test := range []struct {
		v    any
		want string
	}{
		{"abc", `"abc"`}, {"a\"b\n\x01\xff", `"a\"b\n\001\377"`}, {strings.Repeat("y", 79), `"` + strings.Repeat("y", 79) + `"`},
		{strings.Repeat("y", 80), `"yyyyyyyyyy...yyyyyyyyyy"`}, {int64(-3), "-3"}, {float32(0.1), "0.1"}, {float32(1e10), "1e+10"},
		{float32(1e-5), "1e-05"}, {float32(123456.703), "123456.703"}, {float32(1234567.75), "1234567.75"}, {true, "true"},
		{tensor.Float16, "DT_HALF"}, {tensor.Float32.Ref(), "DT_FLOAT_REF"}, {tensor.MakePartial(2, -1), "[2,?]"},
		{tensor.PartialShape{}, "<unknown>"}, {tensor.MakePartial(), "[]"},
		{Func{Name: "f", Attrs: Attrs{"T": tensor.Int32, "A": int64(1)}}, "f[A=1, T=DT_INT32]"}, {Func{Name: "f"}, "f[]"},
		{Placeholder("T"), "$T"}, {AnyList{}, "[]"}, {many, "[1, 2, 3, 4, 5, ..., 47, 48, 49, 50, 51]"}, {many[:5], "[1, 2, 3, 4, 5]"},
		{[]float32{1.5, 2}, "[1.5, 2]"}, {[]string{"a", "b"}, `["a", "b"]`}, {[]bool{true, false}, "[true, false]"},
		{[]tensor.DType{tensor.Int32}, "[DT_INT32]"}, {[]tensor.PartialShape{tensor.MakePartial(1), {}}, "[[1], <unknown>]"},
		{[]Func{{Name: "f"}}, "[f[]]"}, {[]tensor.Tensor{tensor.Scalar(float32(1))}, "[Tensor<type: float shape: [] values: 1>]"},
		{tensor.Scalar(float32(1.5)), "Tensor<type: float shape: [] values: 1.5>"},
	} {
		if got := FormatAttr(test.v); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// TestBroadcastShapes checks for NumPy's rules.
func TestBroadcastShapes(t *testing.T) {
	p := tensor.MakePartial
	for _, test := range []struct {
		a, b tensor.PartialShape
		want string
	}{
		{p(2, 3), p(2, 3), "[2,3]"}, {p(2, 3), p(3), "[2,3]"}, {p(), p(4, 1), "[4,1]"}, {p(2, 1), p(1, 5), "[2,5]"},
		{p(-1), p(1), "[?]"}, {p(-1), p(3), "[3]"}, {p(3), p(-1), "[3]"}, {p(-1), p(-1), "[?]"}, {p(1), p(-1), "[?]"},
		{p(0), p(1), "[0]"}, {tensor.PartialShape{}, p(2), "<unknown>"}, {p(2), p(3), "Dimensions must be equal, but are 2 and 3"},
		{p(2, 3), p(2), "Dimensions must be equal, but are 3 and 2"},
	} {
		got, err := BroadcastShapes(test.a, test.b)
		text := got.String()
		if err != nil {
			text = err.Error()
		}
		if text != test.want {
			t.Errorf("%v and %v: got %s, want %s", test.a, test.b, text, test.want)
		}
	}
}

func TestMergeAndRank(t *testing.T) {
	p := tensor.MakePartial
	for _, test := range []struct {
		a, b tensor.PartialShape
		want string
	}{
		{p(2, -1), p(-1, 3), "[2,3]"}, {tensor.PartialShape{}, p(1), "[1]"}, {p(1), p(1, 2), "Shapes must be equal rank, but are 1 and 2"},
		{p(2, 3), p(2, 4), "Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and [2,4]."},
	} {
		got, err := MergeShapes(test.a, test.b)
		text := got.String()
		if err != nil {
			text = err.Error()
		}
		if text != test.want {
			t.Errorf("%v and %v: got %s, want %s", test.a, test.b, text, test.want)
		}
	}
	if s, err := WithRank(tensor.PartialShape{}, 2); err != nil || s.String() != "[?,?]" {
		t.Errorf("unknown with rank 2: %v, %v", s, err)
	}
	for _, err := range []error{second(WithRank(p(1), 2)), second(WithRankAtLeast(p(1), 2)), second(WithRankAtMost(p(1, 2), 1))} {
		if err == nil || !strings.HasPrefix(err.Error(), "Shape must be ") {
			t.Errorf("got %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A long string is shortened before it is escaped.
func TestFormatLongString(t *testing.T) {
	const size = 16 << 20
	long := "\x00abc" + strings.Repeat("\xff", size) + "d\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := FormatAttr(long)
	runtime.ReadMemStats(&after)
	if want := `"\000abc\37...377\377d\n"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > size {
		t.Errorf("%d bytes were allocated", n)
	}
}
