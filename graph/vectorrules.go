package graph

import "slices"

// Rules of operations that concatenate, pack, slice and index vectors.

func packScalars(e *evaluator, o Output) *numbers {
	out := &numbers{vals: make([]int64, len(o.Node.in))}
	for i, in := range o.Node.in {
		v := e.numbers(in)
		switch {
		case v != nil && v.scalar:
			out.vals[i] = v.vals[0]
		case v == nil && e.shapes.Of(in).Rank() == 0:
			out.vals[i] = unknownNumber
		default:
			return nil
		}
	}
	return out
}

func concatVectors(e *evaluator, o Output) *numbers {
	axis := len(o.Node.in) - 1
	if o.Node.Op.Name == "Concat" {
		axis = 0
	}
	out := &numbers{vals: []int64{}}
	for i := range o.Node.in {
		if i == axis {
			continue
		}
		v, ok := e.vector(o, i)
		if !ok || len(out.vals)+len(v) > maxNumbers {
			return nil
		}
		out.vals = append(out.vals, v...)
	}
	return out
}

func sliceVector(e *evaluator, o Output) *numbers {
	v, ok := e.vector(o, 0)
	begin, ok1 := e.vector(o, 1)
	size, ok2 := e.vector(o, 2)
	if !ok || !ok1 || !ok2 || len(begin) != 1 || len(size) != 1 || begin[0] < 0 || begin[0] > int64(len(v)) || size[0] < -1 {
		return nil
	}
	rest := v[begin[0]:]
	switch {
	case size[0] == -1:
		return &numbers{vals: rest}
	case size[0] > int64(len(rest)):
		return nil
	}
	return &numbers{vals: rest[:size[0]]}
}

// stridedSliceVector returns a slice or an element of a vector, v[a:b:c] or v[i] in Python.
func stridedSliceVector(e *evaluator, o Output) *numbers {
	attrs := o.Node.Attrs
	v, ok := e.vector(o, 0)
	if !ok || attrs.Int("ellipsis_mask") != 0 || attrs.Int("new_axis_mask") != 0 {
		return nil
	}
	var bounds [3]int64
	for i := range bounds {
		b, ok := e.vector(o, i+1)
		if !ok || len(b) != 1 {
			return nil
		}
		bounds[i] = b[0]
	}
	n, begin, end, stride := int64(len(v)), bounds[0], bounds[1], bounds[2]
	if attrs.Int("shrink_axis_mask")&1 != 0 {
		if begin < 0 {
			begin += n
		}
		if begin < 0 || begin >= n {
			return nil
		}
		return scalarOf(v[begin])
	}
	if stride == 0 || stride == unknownNumber {
		return nil
	}
	first, last := int64(0), n // default bounds of the slice
	if stride < 0 {
		first, last = n-1, -1
	}
	begin, ok1 := bound(begin, n, first, stride, attrs.Int("begin_mask")&1 != 0)
	end, ok2 := bound(end, n, last, stride, attrs.Int("end_mask")&1 != 0)
	if !ok1 || !ok2 {
		return nil
	}
	out := &numbers{vals: []int64{}}
	for i := begin; stride > 0 && i < end || stride < 0 && i > end; i += stride {
		out.vals = append(out.vals, v[i])
		if stride > n || stride < -n {
			break
		}
	}
	return out
}

// bound returns a bound of a slice of n elements. Negative bounds count from the end, and the
// result is clamped to the valid range. It returns false if the bound is unknown.
func bound(x, n, open, stride int64, masked bool) (int64, bool) {
	if masked {
		return open, true
	}
	if x == unknownNumber {
		return 0, false
	}
	if x < 0 {
		x += n
	}
	if stride > 0 {
		return min(max(x, 0), n), true
	}
	return min(max(x, -1), n-1), true
}

func gatherVector(e *evaluator, o Output) *numbers {
	v, ok := e.vector(o, 0)
	at := e.input(o, 1)
	if axis, known := e.scalar(o, 2); !ok || at == nil || len(o.Node.in) > 2 && (!known || axis != 0) ||
		o.Node.Attrs.Int("batch_dims") != 0 {
		return nil
	}
	out := &numbers{scalar: at.scalar, vals: make([]int64, len(at.vals))}
	for i, x := range at.vals {
		if x < 0 || x >= int64(len(v)) {
			return nil
		}
		out.vals[i] = v[x]
	}
	return out
}

func fillVector(e *evaluator, o Output) *numbers {
	dims, ok := e.vector(o, 0)
	x, known := e.scalar(o, 1)
	switch {
	case !ok || !known || len(dims) > 1:
		return nil
	case len(dims) == 0:
		return scalarOf(x)
	case dims[0] < 0 || dims[0] > maxNumbers:
		return nil
	}
	return &numbers{vals: slices.Repeat([]int64{x}, int(dims[0]))}
}

func reshapeNumbers(e *evaluator, o Output) *numbers {
	v := e.input(o, 0)
	dims, ok := e.vector(o, 1)
	switch {
	case v == nil || !ok || len(dims) > 1:
		return nil
	case len(dims) == 0 && len(v.vals) == 1:
		return scalarOf(v.vals[0])
	case len(dims) == 1 && (dims[0] == -1 || dims[0] == int64(len(v.vals))):
		return &numbers{vals: v.vals}
	}
	return nil
}

func expandScalar(e *evaluator, o Output) *numbers {
	axis, ok := e.scalar(o, 1)
	v := e.input(o, 0)
	if v == nil || !v.scalar || !ok || axis != 0 && axis != -1 {
		return nil
	}
	return &numbers{vals: v.vals}
}

func squeezeVector(e *evaluator, o Output) *numbers {
	v := e.input(o, 0)
	if v == nil || len(v.vals) != 1 {
		return nil
	}
	return scalarOf(v.vals[0])
}

func rangeVector(e *evaluator, o Output) *numbers {
	start, ok1 := e.scalar(o, 0)
	limit, ok2 := e.scalar(o, 1)
	delta, ok3 := e.scalar(o, 2)
	if !ok1 || !ok2 || !ok3 || delta == 0 {
		return nil
	}
	out := &numbers{vals: []int64{}}
	for x := start; delta > 0 && x < limit || delta < 0 && x > limit; {
		if len(out.vals) == maxNumbers {
			return nil
		}
		out.vals = append(out.vals, x)
		var ok bool
		if x, ok = add(x, delta); !ok {
			break
		}
	}
	return out
}
