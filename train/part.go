package train

import (
	"fmt"
	"slices"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Partitioned is a variable whose rows are divided over several, so that they fit on several
// parameter servers: the parts are variables "name/part_0" and so on, of almost the same size, the
// larger ones first. Checkpoints hold it as one tensor.
type Partitioned struct {
	Name  string
	Shape tensor.Shape
	DType tensor.DType
	Parts []*Variable
}

// Part says which part of a [Partitioned] variable a variable is.
type Part struct {
	Name   string       // of the whole
	Shape  tensor.Shape // of the whole
	Offset int64        // its first row
}

// beside returns the same part of a variable that is kept beside the whole, under its name with a
// suffix.
func (p *Part) beside(suffix string) *Part {
	out := *p
	out.Name += suffix
	return &out
}

// wholeName returns the name of what the variable is, or is a part of, in checkpoints.
func (v *Variable) wholeName() string {
	if v.Part != nil {
		return v.Part.Name
	}
	return v.Name
}

// NewPartitioned adds a variable in so many parts, each with an initial value of its own. With a
// scope that asks [ReplicaDeviceSetter] for devices the parts are on one parameter server after the
// other.
func NewPartitioned(
	s *op.Scope, name string, shape tensor.Shape, dtype tensor.DType, init Initializer, parts int, opts ...VariableOption,
) *Partitioned {
	s = s.SubScope(name)
	p := &Partitioned{Name: s.Prefix()[:len(s.Prefix())-1], Shape: shape, DType: dtype}
	if len(shape) == 0 || parts < 1 || shape[0] < int64(parts) {
		s.Fail(status.InvalidArgumentf("train: cannot divide the rows of a variable of shape %v into %d parts", shape, parts))
		return p
	}
	row := int64(0)
	for i := range int64(parts) {
		size := slices.Clone(shape)
		size[0] = shape[0] / int64(parts)
		if i < shape[0]%int64(parts) {
			size[0]++
		}
		part := &Part{Name: p.Name, Shape: shape, Offset: row}
		v := NewVariable(s, fmt.Sprintf("part_%d", i), size, dtype, init, append([]VariableOption{partOf(part)}, opts...)...)
		p.Parts = append(p.Parts, v)
		row += size[0]
	}
	return p
}

// Value adds the whole value, which is brought together where the scope says.
func (p *Partitioned) Value(s *op.Scope) op.Output {
	values := make([]op.Output, len(p.Parts))
	for i, v := range p.Parts {
		values[i] = v.Value
	}
	return op.ConcatV2(s, values, op.Const(s, int32(0)))
}

// Lookup adds the rows of the given numbers, int32 or int64: the result has the shape of ids
// followed by that of a row. Rows are taken from each part where it is, and only they travel.
func (p *Partitioned) Lookup(s *op.Scope, ids op.Output) op.Output {
	return lookup(s, p.Parts, ids, func(s *op.Scope, ids op.Output) (part, row op.Output) {
		// The first extra parts have one row more than the others.
		size, extra := p.Shape[0]/int64(len(p.Parts)), p.Shape[0]%int64(len(p.Parts))
		small, large, extras := integer(s, ids, size), integer(s, ids, size+1), integer(s, ids, extra)
		rest := op.Sub(s, ids, extras)
		part = op.Maximum(s, op.FloorDiv(s, ids, large), op.FloorDiv(s, rest, small))
		row = op.SelectV2(s, op.Less(s, part, extras), op.FloorMod(s, ids, large), op.FloorMod(s, rest, small))
		return part, row
	})
}

// EmbeddingLookup adds rows of variables, of which the first holds the rows 0, n, 2n and so on of
// all, for n variables, the second the rows 1, n + 1 and so on. The result has the shape of ids,
// int32 or int64, followed by that of a row. Rows are taken from each variable where it is, and
// only they travel; so do their gradients.
func EmbeddingLookup(s *op.Scope, vars []*Variable, ids op.Output) op.Output {
	return lookup(s, vars, ids, func(s *op.Scope, ids op.Output) (part, row op.Output) {
		n := integer(s, ids, int64(len(vars)))
		return op.FloorMod(s, ids, n), op.FloorDiv(s, ids, n)
	})
}

// lookup gathers rows from several variables: where returns which variable each id is in, and which
// row there.
func lookup(s *op.Scope, vars []*Variable, ids op.Output, where func(s *op.Scope, ids op.Output) (part, row op.Output)) op.Output {
	s, result := s.Composite("embedding_lookup")
	if len(vars) == 0 {
		s.Fail(status.InvalidArgumentf("train: a lookup in no variables"))
	}
	if s.Err() != nil {
		return op.Output{}
	}
	if len(vars) == 1 {
		return op.Identity(result, vars[0].Gather(s, ids))
	}
	flat := op.Reshape(s, ids, op.Const(s, []int32{-1}))
	part, row := where(s, flat)
	part = op.Cast(s, part, tensor.Int32)
	order := op.Range(s, op.Const(s, int32(0)), op.Size(s, flat), op.Const(s, int32(1)))
	n := int64(len(vars))
	places, rows := op.DynamicPartition(s, order, part, n), op.DynamicPartition(s, row, part, n)
	if s.Err() != nil {
		return op.Output{}
	}
	found := make([]op.Output, n)
	for i, v := range vars {
		found[i] = v.Gather(s, rows[i])
	}
	inner := dims(s, vars[0].Shape[1:])
	shape := op.ConcatV2(s, []op.Output{op.Shape(s, ids), inner}, op.Const(s, int32(0)))
	return op.Reshape(result, op.ParallelDynamicStitch(s, places, found), shape)
}

// Gather adds the rows of the given numbers, int32 or int64, taken where the variable is.
func (v *Variable) Gather(s *op.Scope, ids op.Output) op.Output {
	s = s.ColocateWith(v.Handle.Node)
	if v.Resource {
		return op.ResourceGather(s, v.Handle, ids, v.DType)
	}
	return op.GatherV2(s, v.Value, ids, op.Const(s, int32(0)))
}

// integer adds a constant of the type of ids.
func integer(s *op.Scope, ids op.Output, v int64) op.Output {
	return op.ConstOf(s, ids.DType(), float64(v))
}
