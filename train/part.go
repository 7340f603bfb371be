package train

import (
	"fmt"
	"slices"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Partitioned is a large variable whose rows are split over several variables, the parts, which may
// be on different parameter servers. The parts are named "name/part_0", "name/part_1" …; their
// numbers of rows differ by at most one, and the larger parts are first. A checkpoint holds the
// whole as one tensor.
type Partitioned struct {
	Name  string
	Shape tensor.Shape // of the whole
	DType tensor.DType
	Parts []*Variable // in order of their rows
}

// Part describes which rows of a [Partitioned] variable a variable holds.
type Part struct {
	Name   string       // of the whole
	Shape  tensor.Shape // of the whole
	Offset int64        // first row
}

// slot returns the same part of the slot whose name is that of the whole with a suffix.
func (p *Part) slot(suffix string) *Part {
	out := *p
	out.Name += suffix
	return &out
}

// wholeName returns the name of the tensor in checkpoints that holds the variable.
func (v *Variable) wholeName() string {
	if v.Part != nil {
		return v.Part.Name
	}
	return v.Name
}

// NewPartitioned adds a variable with the given number of parts. init is called for each part, with
// the shape of the part. In a scope with a [ReplicaDeviceSetter] the parts are placed on the
// parameter servers in turn. It is a build error if there are fewer rows than parts.
func NewPartitioned(
	s *op.Scope, name string, shape tensor.Shape, dtype tensor.DType, init Initializer, parts int, opts ...VariableOption,
) *Partitioned {
	s = s.SubScope(name)
	p := &Partitioned{Name: s.Prefix()[:len(s.Prefix())-1], Shape: shape, DType: dtype}
	if len(shape) == 0 || parts < 1 || shape[0] < int64(parts) {
		s.Fail(status.InvalidArgumentf("train: cannot split the rows of a variable of shape %v into %d parts", shape, parts))
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

// Value adds the concatenation of the parts, on the device of the scope.
func (p *Partitioned) Value(s *op.Scope) op.Output {
	values := make([]op.Output, len(p.Parts))
	for i, v := range p.Parts {
		values[i] = v.Value
	}
	if len(values) == 1 { // ConcatV2 needs two
		return op.Identity(s, values[0])
	}
	return op.ConcatV2(s, values, op.Const(s, int32(0)))
}

// Lookup adds a lookup of rows. ids are row numbers of type int32 or int64 and any shape; the
// result has the shape of ids followed by the shape of a row. The rows are gathered on the devices
// of the parts, so only the requested rows cross the network.
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

// EmbeddingLookup adds a lookup of rows in a table that is split over n variables: variable i holds
// the rows i, i + n, i + 2n … (TensorFlow's strategy "mod"). ids are row numbers of type int32 or
// int64 and any shape; the result has the shape of ids followed by the shape of a row. The rows are
// gathered on the devices of the variables, so only the requested rows and their gradients cross
// the network.
func EmbeddingLookup(s *op.Scope, vars []*Variable, ids op.Output) op.Output {
	return lookup(s, vars, ids, func(s *op.Scope, ids op.Output) (part, row op.Output) {
		n := integer(s, ids, int64(len(vars)))
		return op.FloorMod(s, ids, n), op.FloorDiv(s, ids, n)
	})
}

// lookup gathers rows from several variables. where returns, for each id, the index of the variable
// and the row in it.
func lookup(s *op.Scope, vars []*Variable, ids op.Output, where func(s *op.Scope, ids op.Output) (part, row op.Output)) op.Output {
	s, result := s.Composite("embedding_lookup")
	if len(vars) == 0 {
		s.Fail(status.InvalidArgumentf("train: a lookup needs at least one variable"))
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

// Gather adds a lookup of rows on the device of the variable. ids are row numbers of type int32 or
// int64.
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
