package gatherscatter_test

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func list(t *testing.T, rows ...int64) gatherscatter.List {
	t.Helper()
	l, err := gatherscatter.NewList(len(rows))
	if err != nil {
		t.Fatal(err)
	}
	copy(l.Rows, rows)
	return l
}

func TestGather(t *testing.T) {
	src := tensor.Vector[int32](0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	for _, c := range []struct {
		name string
		rows []int64
		g    gatherscatter.Layout
		want []int32
	}{
		{"rows", []int64{2, 0}, gatherscatter.Layout{Outer: 1, Rows: 3, Width: 4}, []int32{8, 9, 10, 11, 0, 1, 2, 3}},
		{"elements", []int64{11, 3, 3}, gatherscatter.Layout{Outer: 1, Rows: 12, Width: 1}, []int32{11, 3, 3}},
		{"a skipped row", []int64{1, -1}, gatherscatter.Layout{Outer: 1, Rows: 6, Width: 2}, []int32{2, 3, 0, 0}},
		{"one list for all blocks", []int64{1}, gatherscatter.Layout{Outer: 2, Rows: 3, Width: 2}, []int32{2, 3, 8, 9}},
		{"a list for each block", []int64{1, 0}, gatherscatter.Layout{Outer: 2, Rows: 3, Width: 2, Share: 1}, []int32{2, 3, 6, 7}},
	} {
		dst := tensor.Vector(make([]int32, len(c.want))...)
		l := list(t, c.rows...)
		gatherscatter.Gather(&dst, &src, l, c.g)
		l.Release()
		if got := tensor.Values[int32](&dst); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestElementTypes gathers and scatters one element of each size and kind.
func TestElementTypes(t *testing.T) {
	check := func(name string, moved bool) {
		if !moved {
			t.Errorf("%s: the element did not move", name)
		}
	}
	check("string", moves(t, "a", "b"))
	check("bool", moves(t, false, true))
	check("int16", moves[int16](t, 1, 2))
	check("float32", moves[float32](t, 1, 2))
	check("float64", moves[float64](t, 1, 2))
	check("complex128", moves[complex128](t, 1, 2i))
	check("handle", moves(t, &tensor.Handle{Name: "a"}, &tensor.Handle{Name: "b"}))
}

// moves reports whether a gather of row 1 and a scatter to row 0 copy y.
func moves[T interface {
	tensor.Elem
	comparable
}](t *testing.T, x, y T) bool {
	src, one, both := tensor.Vector(x, y), tensor.Vector(x), tensor.Vector(x, x)
	gatherscatter.Gather(&one, &src, list(t, 1), gatherscatter.Layout{Outer: 1, Rows: 2, Width: 1})
	gatherscatter.Scatter(elementwise.Assign, &both, &one, list(t, 0), 1)
	return tensor.Values[T](&one)[0] == y && tensor.Values[T](&both)[0] == y && tensor.Values[T](&both)[1] == x
}

func TestScatter(t *testing.T) {
	for _, c := range []struct {
		op      elementwise.Op
		updates tensor.Tensor
		rows    []int64
		want    []int32
	}{
		{elementwise.Assign, tensor.Vector[int32](1, 2, 3, 4), []int64{2, 0}, []int32{3, 4, 20, 20, 1, 2}},
		{elementwise.Assign, tensor.Scalar[int32](7), []int64{1}, []int32{10, 10, 7, 7, 30, 30}},
		{elementwise.Assign, tensor.Vector[int32](1, 2, 3, 4), []int64{-1, 0}, []int32{3, 4, 20, 20, 30, 30}},
		{elementwise.Add, tensor.Vector[int32](1, 2, 3, 4), []int64{1, 1}, []int32{10, 10, 24, 26, 30, 30}},
		{elementwise.Add, tensor.Vector[int32](), nil, []int32{10, 10, 20, 20, 30, 30}},
	} {
		dst := tensor.Vector[int32](10, 10, 20, 20, 30, 30)
		gatherscatter.Scatter(c.op, &dst, &c.updates, list(t, c.rows...), 2)
		if got := tensor.Values[int32](&dst); !slices.Equal(got, c.want) {
			t.Errorf("op %d at %v: %v, want %v", c.op, c.rows, got, c.want)
		}
	}
}

func TestAdd(t *testing.T) {
	dst := []int64{0, 0, 0, 0}
	gatherscatter.Add(dst, []int64{1, 2, 3, 4}, []int64{1, 1, 0}, []int64{0, 1, 1}, 2)
	if want := []int64{3, 4, 4, 6}; !slices.Equal(dst, want) {
		t.Errorf("sums %v, want %v", dst, want)
	}
}

func TestReadFindsTheFirstBadRow(t *testing.T) {
	for _, c := range []struct {
		indices tensor.Tensor
		bad     int
	}{
		{tensor.Vector[int32](0, 3, 2), -1},
		{tensor.Vector[int64](0, 4, -1), 1},
		{tensor.Vector[int16](-1), 0},
	} {
		l, bad, err := gatherscatter.Read(&c.indices, 4)
		if bad != c.bad || err != nil {
			t.Errorf("indices %v: bad row %d, error %v, want %d", c.indices, bad, err, c.bad)
		}
		l.Release()
	}
}

func TestReadVectors(t *testing.T) {
	for _, c := range []struct {
		dims    tensor.Shape
		vectors []int32
		skip    bool
		rows    []int64
		bad     int
	}{
		{tensor.Shape{2, 3}, []int32{1, 2, 0, 1}, false, []int64{5, 1}, -1},
		{tensor.Shape{2, 3}, []int32{1, 3, 0, 1}, false, nil, 0},
		{tensor.Shape{2, 3}, []int32{0, 0, 2, 1}, true, []int64{0, -1}, -1},
		{tensor.Shape{2, 3, 4}, []int32{1, 2, 3}, false, []int64{23}, -1},
		{tensor.Shape{2, 3, 4}, []int32{1, -1, 3}, true, []int64{-1}, -1},
		{tensor.Shape{5}, []int32{4, 5}, false, nil, 1},
	} {
		depth := int64(len(c.dims))
		indices, err := tensor.FromSlice(tensor.Shape{int64(len(c.vectors)) / depth, depth}, c.vectors)
		if err != nil {
			t.Fatal(err)
		}
		l, bad, err := gatherscatter.ReadVectors(&indices, c.dims, c.skip)
		if bad != c.bad || err != nil || c.rows != nil && !slices.Equal(l.Rows, c.rows) {
			t.Errorf("%v in %v: rows %v, bad %d, error %v, want %v, %d", c.vectors, c.dims, l.Rows, bad, err, c.rows, c.bad)
		}
		l.Release()
	}
}

func TestVector(t *testing.T) {
	indices, _ := tensor.FromSlice(tensor.Shape{2, 2}, []int64{1, 2, 3, -4})
	if got := gatherscatter.Vector(&indices, 1); got != "3, -4" {
		t.Errorf("vector %q", got)
	}
}

func TestSkipsBad(t *testing.T) {
	for policy, want := range map[string]bool{"": false, "DEFAULT": false, "ERROR": false, "IGNORE": true} {
		if got, err := gatherscatter.SkipsBad(opdef.Attrs{"bad_indices_policy": policy}); got != want || err != nil {
			t.Errorf("policy %q: %v, %v", policy, got, err)
		}
	}
	if _, err := gatherscatter.SkipsBad(opdef.Attrs{"bad_indices_policy": "?"}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("an unknown policy: %v", err)
	}
}

func TestCheckUpdates(t *testing.T) {
	make := func(shape ...int64) *tensor.Tensor {
		x, err := tensor.Zeros(tensor.Int32, shape)
		if err != nil {
			t.Fatal(err)
		}
		return &x
	}
	for _, c := range []struct {
		indices, updates *tensor.Tensor
		shape            tensor.Shape
		ok               bool
	}{
		{make(5, 1), make(5, 3), tensor.Shape{4, 3}, true},
		{make(5, 2), make(5), tensor.Shape{4, 3}, true},
		{make(5, 1), make(4, 3), tensor.Shape{4, 3}, false},
		{make(5, 1), make(5, 2), tensor.Shape{4, 3}, false},
		{make(5, 3), make(5), tensor.Shape{4, 3}, false},
	} {
		err := gatherscatter.CheckUpdates(c.indices, c.updates, c.shape)
		if (err == nil) != c.ok {
			t.Errorf("indices %v, updates %v into %v: %v", c.indices.Shape(), c.updates.Shape(), c.shape, err)
		}
	}
}

// Texts that are added to one row are written once, and ask for their memory.
func TestScatterOfTexts(t *testing.T) {
	dst, updates := tensor.Vector("", "", "x"), tensor.Vector("a", "b", "c", "d", "e", "f")
	gatherscatter.Scatter(elementwise.Add, &dst, &updates, list(t, 2, 0, 2, 0, 2, -1), 1)
	if got := tensor.Values[string](&dst); !slices.Equal(got, []string{"bd", "", "xace"}) {
		t.Errorf("got %q", got)
	}
	one := tensor.Vector("y")
	gatherscatter.Scatter(elementwise.Add, &dst, &one, list(t, 1, 1), 1)
	if got := tensor.Values[string](&dst)[1]; got != "yy" {
		t.Errorf("got %q for a scalar", got)
	}

	const many = 200_000
	short := kerneltest.SharedText(many, 20)
	kerneltest.Quickly(t, func() error {
		gatherscatter.Scatter(elementwise.Add, &dst, &short, list(t, make([]int64, many)...), 1)
		return nil
	})

	long := kerneltest.SharedText(64, 1<<20)
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(32 << 20)
	err := guard.Call("a test", func() error {
		gatherscatter.Scatter(elementwise.Add, &dst, &long, list(t, make([]int64, 64)...), 1)
		return nil
	})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
