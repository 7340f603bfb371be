package shapefn_test

import (
	"math"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const unknown = shapefn.Unknown

var (
	of   = shapefn.Of
	none = shapefn.Shape{}
)

// context returns the context of a rule with the given input shapes and known values.
func context(values map[int]tensor.Tensor, in ...shapefn.Shape) *opdef.ShapeContext {
	return &opdef.ShapeContext{
		In: in, Out: make([]shapefn.Shape, 2),
		Value: func(i int) *tensor.Tensor {
			if v, ok := values[i]; ok {
				return &v
			}
			return nil
		},
		ValueAsShape: func(i int) tensor.PartialShape {
			v, ok := values[i]
			if !ok {
				return none
			}
			return of(opdef.IntValues(&v)...)
		},
	}
}

func TestShapes(t *testing.T) {
	s := of(2, unknown, 4)
	for name, c := range map[string]struct{ got, want shapefn.Shape }{
		"Sub":                     {shapefn.Sub(s, 1, 3), of(unknown, 4)},
		"Sub from the end":        {shapefn.Sub(s, -2, -1), of(unknown)},
		"Sub beyond the rank":     {shapefn.Sub(s, 2, 9), of(4)},
		"Sub of unknown":          {shapefn.Sub(none, 0, 1), none},
		"From":                    {shapefn.From(s, 1), of(unknown, 4)},
		"Concat":                  {shapefn.Concat(of(1), s, of()), of(1, 2, unknown, 4)},
		"Concat with unknown":     {shapefn.Concat(of(1), none), none},
		"Replace":                 {shapefn.Replace(s, 1, 3), of(2, 3, 4)},
		"Replace from the end":    {shapefn.Replace(s, -1, 5), of(2, unknown, 5)},
		"Replace in unknown":      {shapefn.Replace(none, 0, 5), none},
		"Replace keeps its input": {s, of(2, unknown, 4)},
	} {
		if c.got.String() != c.want.String() {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if shapefn.Full(s) || !shapefn.Full(of(2, 3)) || shapefn.Full(none) {
		t.Error("Full is wrong")
	}
	if got, err := shapefn.FromDims([]int64{2, -1}); err != nil || got.String() != of(2, unknown).String() {
		t.Errorf("FromDims: %v, %v", got, err)
	}
	if _, err := shapefn.FromDims([]int64{-2}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("FromDims of -2: %v", err)
	}
}

func TestDimensions(t *testing.T) {
	for name, c := range map[string]struct{ got, want int64 }{
		"Count":               {shapefn.Count(of(2, 3)), 6},
		"Count with 0":        {shapefn.Count(of(unknown, 0)), 0},
		"Count with unknown":  {shapefn.Count(of(unknown, 3)), unknown},
		"Count of unknown":    {shapefn.Count(none), unknown},
		"Add":                 {shapefn.Add(2, 3), 5},
		"Add unknown":         {shapefn.Add(2, unknown), unknown},
		"Times":               {shapefn.Times(2, 3), 6},
		"Add too large":       {shapefn.Add(math.MaxInt64, 1), unknown},
		"Times too large":     {shapefn.Times(1<<33, 1<<32), unknown},
		"Times 0 and unknown": {shapefn.Times(0, unknown), 0},
		"Times unknown":       {shapefn.Times(2, unknown), unknown},
		"Min":                 {shapefn.Min(2, 3), 2},
		"Min 0 and unknown":   {shapefn.Min(unknown, 0), 0},
		"Min unknown":         {shapefn.Min(unknown, 3), unknown},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
	for _, c := range []struct {
		name       string
		f          func(a, b int64) (int64, error)
		a, b, want int64
		ok         bool
	}{
		{"Minus", shapefn.Minus, 5, 3, 2, true},
		{"Minus", shapefn.Minus, unknown, 3, unknown, true},
		{"Minus", shapefn.Minus, 3, 5, unknown, false},
		{"Divide", shapefn.Divide, 6, 3, 2, true},
		{"Divide", shapefn.Divide, unknown, 3, unknown, true},
		{"Divide", shapefn.Divide, 7, 3, unknown, false},
		{"Divide", shapefn.Divide, 7, 0, unknown, false},
	} {
		if got, err := c.f(c.a, c.b); got != c.want || (err == nil) != c.ok {
			t.Errorf("%s(%d, %d): %d, %v", c.name, c.a, c.b, got, err)
		}
	}
	if shapefn.CheckDim(3, 3) != nil || shapefn.CheckDim(unknown, 3) != nil || shapefn.CheckDim(2, 3) == nil {
		t.Error("CheckDim is wrong")
	}
}

func TestInputs(t *testing.T) {
	c := context(map[int]tensor.Tensor{
		0: tensor.Vector[int32](2, -1), 1: tensor.Scalar[int64](3), 2: tensor.Scalar[int32](-1), 3: tensor.Vector[int32](-2),
	}, of(2), of(), of(), of(1), none)
	if got, err := shapefn.Input(c, 0); err != nil || got.String() != of(2, unknown).String() {
		t.Errorf("Input: %v, %v", got, err)
	}
	if _, err := shapefn.Input(c, 3); err == nil {
		t.Error("Input accepts a size of -2")
	}
	if _, err := shapefn.Input(c, 1); err == nil {
		t.Error("Input accepts a scalar")
	}
	if got, err := shapefn.Dim(c, 1); got != 3 || err != nil {
		t.Errorf("Dim: %d, %v", got, err)
	}
	if got, err := shapefn.Dim(c, 4); got != unknown || err != nil {
		t.Errorf("Dim of an unknown value: %d, %v", got, err)
	}
	for _, i := range []int{0, 2} {
		if _, err := shapefn.Dim(c, i); err == nil {
			t.Errorf("Dim accepts input %d", i)
		}
	}
	if axis, known, err := shapefn.Axis(c, 2, 4); axis != 3 || !known || err != nil {
		t.Errorf("Axis: %d, %v, %v", axis, known, err)
	}
	if _, known, err := shapefn.Axis(c, 2, -1); known || err != nil {
		t.Errorf("a negative axis of an unknown rank: %v, %v", known, err)
	}
	if _, _, err := shapefn.Axis(c, 1, 3); err == nil {
		t.Error("Axis accepts an axis beyond the rank")
	}
	if v, ok := shapefn.Ints(c, 0); !ok || len(v) != 2 || v[1] != -1 {
		t.Errorf("Ints: %v, %v", v, ok)
	}
	if _, ok := shapefn.Ints(c, 4); ok {
		t.Error("Ints of an unknown value")
	}
	if shapefn.CheckRanks(c, 0, 1, 0) != nil || shapefn.CheckRanks(c, 0, 0) == nil || shapefn.CheckRanks(c, 4, 2) != nil {
		t.Error("CheckRanks is wrong")
	}
}

func TestReduce(t *testing.T) {
	for _, c := range []struct {
		in   shapefn.Shape
		axes []int32 // nil if unknown
		keep bool
		want shapefn.Shape
		ok   bool
	}{
		{of(2, 3, 4), []int32{1}, false, of(2, 4), true},
		{of(2, 3, 4), []int32{0, -1}, true, of(1, 3, 1), true},
		{of(2, unknown), []int32{0}, false, of(unknown), true},
		{of(2, 3), nil, true, of(unknown, unknown), true},
		{of(2, 3), nil, false, none, true},
		{none, []int32{0}, false, none, true},
		{of(2, 3), []int32{2}, false, none, false},
	} {
		values := map[int]tensor.Tensor{}
		if c.axes != nil {
			values[1] = tensor.Vector(c.axes...)
		}
		got, err := shapefn.Reduce(context(values, c.in, none), c.keep)
		if got.String() != c.want.String() || (err == nil) != c.ok {
			t.Errorf("%v over %v, keep %v: %v, %v, want %v", c.in, c.axes, c.keep, got, err, c.want)
		}
	}
}

func TestSegments(t *testing.T) {
	n := map[int]tensor.Tensor{2: tensor.Scalar[int32](7)}
	for _, c := range []struct {
		data, ids, want shapefn.Shape
		ok              bool
	}{
		{of(5, 3), of(5), of(7, 3), true},
		{of(5, 3, 2), of(5, 3), of(7, 2), true},
		{none, of(5), none, true},
		{of(5, 3), of(4), none, false},
		{of(5), of(5, 3), none, false},
	} {
		got, err := shapefn.Segments(context(n, c.data, c.ids, of()))
		if got.String() != c.want.String() || (err == nil) != c.ok {
			t.Errorf("data %v, ids %v: %v, %v, want %v", c.data, c.ids, got, err, c.want)
		}
	}
}

func TestGatherNd(t *testing.T) {
	for _, c := range []struct {
		params, indices, want shapefn.Shape
		ok                    bool
	}{
		{of(4, 5, 6), of(7, 2), of(7, 6), true},
		{of(4, 5), of(7, 8, 2), of(7, 8), true},
		{of(4, 5), of(7, unknown), none, true},
		{of(4, 5), of(7, 3), none, false},
		{of(4, 5), of(), none, false},
	} {
		context := context(nil, none, c.indices)
		err := shapefn.GatherNd(context, c.params)
		if got := context.Out[0]; got.String() != c.want.String() || (err == nil) != c.ok {
			t.Errorf("params %v, indices %v: %v, %v, want %v", c.params, c.indices, got, err, c.want)
		}
	}
}

func TestCheckScatterNd(t *testing.T) {
	for _, c := range []struct {
		indices, updates, in shapefn.Shape
		ok                   bool
	}{
		{of(7, 2), of(7, 6), of(4, 5, 6), true},
		{of(7, 2), of(unknown, 6), of(4, 5, 6), true},
		{none, of(7, 6), of(4, 5, 6), true},
		{of(7, 2), of(8, 6), of(4, 5, 6), false},
		{of(7, 2), of(7, 5), of(4, 5, 6), false},
		{of(7, 1), of(7, 3), of(0, 3), false},
		{of(0, 1), of(0, 3), of(0, 3), true},
	} {
		if err := shapefn.CheckScatterNd(c.indices, c.updates, c.in); (err == nil) != c.ok {
			t.Errorf("indices %v, updates %v into %v: %v", c.indices, c.updates, c.in, err)
		}
	}
}
