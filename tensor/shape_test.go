package tensor

import (
	"strings"
	"testing"
)

func TestShapeCheck(t *testing.T) {
	for _, test := range []struct {
		s    Shape
		want string // substring of the error; "" for none
	}{
		{Shape{}, ""}, {Shape{2, 3}, ""}, {Shape{0, 1 << 62, 1 << 62}, ""}, {Shape{1 << 62, 1 << 62, 0}, "Encountered overflow when multiplying"},
		{Shape{1 << 62, 1}, ""}, {Shape{1 << 62, 2}, "Encountered overflow when multiplying"}, {Shape{-1}, "Dimension -1 must be >= 0"},
		{Shape{2, -5}, "Dimension -5 must be >= 0"}, {make(Shape, 254), ""}, {make(Shape, 255), "255 dimensions"},
	} {
		err := test.s.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q", test.s, err, test.want)
		}
	}
}

func TestShapeText(t *testing.T) {
	for _, test := range []struct {
		s    interface{ String() string }
		want string
	}{
		{Shape{}, "[]"}, {Shape{2, 3}, "[2,3]"}, {MakePartial(), "[]"}, {MakePartial(2, -1, 10), "[2,?,10]"}, {PartialShape{}, "<unknown>"},
		{UnknownDims(2), "[?,?]"}, {MakePartial(-7, 1, -2), "[?,1,?]"},
	} {
		if got := test.s.String(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestPartialShapes(t *testing.T) {
	p := MakePartial
	for _, test := range []struct {
		a, b   PartialShape
		merged string // "" if a and b are incompatible
	}{
		{PartialShape{}, PartialShape{}, "<unknown>"}, {PartialShape{}, p(2, -1), "[2,?]"}, {p(2, -1), PartialShape{}, "[2,?]"},
		{p(2, -1), p(-1, 3), "[2,3]"}, {p(2), p(2), "[2]"}, {p(2), p(3), ""}, {p(2), p(2, 1), ""}, {p(), p(), "[]"},
	} {
		got, ok := test.a.Merge(test.b)
		if ok != (test.merged != "") || ok && got.String() != test.merged || test.a.Compatible(test.b) != ok {
			t.Errorf("%v and %v: got %v, %v", test.a, test.b, got, ok)
		}
	}
	s := p(2, -1, 4)
	if s.Dim(0) != 2 || s.Dim(-1) != 4 || s.Dim(1) != -1 || s.Dim(7) != -1 || s.Dim(-4) != -1 || s.Rank() != 3 {
		t.Error("wrong dimensions")
	}
	if r := (PartialShape{}).Rank(); r != -1 {
		t.Errorf("an unknown rank is %d", r)
	}
	if _, ok := s.Full(); ok {
		t.Error("a shape with an unknown dimension is full")
	}
	if full, ok := p(2, 3).Full(); !ok || !full.Equal(Shape{2, 3}) {
		t.Errorf("full shape is %v", full)
	}
	if !p(2, -1).CompatibleWith(Shape{2, 9}) || p(2, -1).CompatibleWith(Shape{2}) {
		t.Error("wrong compatibility with full shapes")
	}
	if p(1).Equal(p(2)) || p().Equal(PartialShape{}) || !p(-1).Equal(p(-2)) {
		t.Error("wrong equality")
	}
	d := s.Dims()
	d[0] = 9
	if s.Dim(0) != 2 {
		t.Error("modifying the result of Dims changed the shape")
	}
}
