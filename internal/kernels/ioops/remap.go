package ioops

import (
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "LoadAndRemapMatrix",
		Doc: "Loads a matrix from a checkpoint and permutes its rows and columns: row i of the " +
			"result is row row_remapping[i]. Where the index is negative, elements are taken " +
			"from initializing_values in order.",
		In: []string{
			"ckpt_path: string", "old_tensor_name: string", "row_remapping: int64", "col_remapping: int64", "initializing_values: float32",
		},
		Out:      []string{"output_matrix: float32"},
		Attrs:    []string{"num_rows: int >= 0", "num_cols: int >= 1", "max_rows_in_memory: int = -1"},
		Stateful: true, Class: opdef.FilesRead,
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = shapefn.Of(int64(c.Attrs.Int("num_rows")), int64(c.Attrs.Int("num_cols")))
			return shapefn.CheckRanks(c, 1, 0)
		},
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		return &remapper{
			files: c.Files(), rows: int64(c.Attrs.Int("num_rows")), cols: int64(c.Attrs.Int("num_cols")), chunk: int64(c.Attrs.Int("max_rows_in_memory")),
		}, nil
	})
}

// remapper is a kernel that loads matrices of a fixed result size.
type remapper struct {
	files      fileio.Files
	rows, cols int64 // of the result
	chunk      int64 // rows to read at once; all if not positive
}

// Compute implements kernel.Kernel.
func (r *remapper) Compute(ctx *kernel.Context) error {
	rows, cols, err := r.mappings(ctx)
	if err != nil {
		return err
	}
	path, err := only(ctx, 0, "ckpt_path")
	if err != nil {
		return err
	}
	name, err := only(ctx, 1, "old_tensor_name")
	if err != nil {
		return err
	}
	c, err := checkpoint.In(r.files.In(ctx.Context())).Open(path)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := r.check(c, name, cols); err != nil {
		return err
	}
	// missing columns are not written below
	out, err := ctx.AllocateZeros(0, tensor.Shape{r.rows, r.cols})
	if err != nil {
		return err
	}
	to := tensor.Values[float32](out)
	if err := r.load(c, name, rows, cols, to); err != nil {
		return err
	}
	return r.fill(rows, cols, tensor.Values[float32](ctx.Input(4)), to)
}

// only returns the single string of input i.
func only(ctx *kernel.Context, i int, name string) (string, error) {
	in := ctx.Input(i)
	if in.NumElements() != 1 {
		return "", status.InvalidArgumentf("The `%s` tensor must have exactly one element, got tensor of shape %v", name, in.Shape())
	}
	return tensor.Value[string](in), nil
}

// mapping maps old rows or columns to positions in the result. A nil mapping is the identity.
type mapping struct {
	old  []int64         // old positions by result position; negative for none
	from map[int64]int64 // result positions by old position
}

// at returns the result position of old position i, and whether it is selected.
func (m *mapping) at(i int64) (int64, bool) {
	if m == nil {
		return i, true
	}
	j, ok := m.from[i]
	return j, ok
}

func (m *mapping) absent(j int64) bool { return m != nil && m.old[j] < 0 }

// span returns the first and last selected old positions. If none is selected, hi is less than lo.
func (m *mapping) span() (lo, hi int64) {
	lo, hi = 0, -1
	for _, i := range m.old {
		if i >= 0 {
			if hi < 0 || i < lo {
				lo = i
			}
			hi = max(hi, i)
		}
	}
	return lo, hi
}

func newMapping(t *tensor.Tensor) (*mapping, error) {
	m := &mapping{old: tensor.Values[int64](t), from: map[int64]int64{}}
	var meter membudget.Meter
	for j, i := range m.old {
		if i < 0 {
			continue
		}
		if first, ok := m.from[i]; ok {
			return nil, status.Unimplementedf("Old ID %d is mapped to both new ID %d and %d, which is not supported.", i, first, j)
		}
		meter.MustTakeEntry(0)
		m.from[i] = int64(j)
	}
	return m, nil
}

// mappings returns the mappings of rows and columns.
func (r *remapper) mappings(ctx *kernel.Context) (rows, cols *mapping, err error) {
	rowIDs, colIDs := ctx.Input(2), ctx.Input(3)
	if rowIDs.Rank() != 1 {
		return nil, nil, status.InvalidArgumentf("The `row_remapping` tensor must be 1-D, got a tensor of shape %v", rowIDs.Shape())
	}
	if n := rowIDs.NumElements(); int64(n) != r.rows {
		return nil, nil, status.InvalidArgumentf("Size of row_remapping is %d instead of being equal to num_rows=%d", n, r.rows)
	}
	if rows, err = newMapping(rowIDs); err != nil || colIDs.NumElements() == 0 {
		return rows, nil, err
	}
	if n := colIDs.NumElements(); int64(n) != r.cols {
		return nil, nil, status.InvalidArgumentf("Provided col_remapping, but its size is %d instead of being equal to num_cols=%d", n, r.cols)
	}
	cols, err = newMapping(colIDs)
	return rows, cols, err
}

// check checks that the tensor in the checkpoint is a matrix of matching size.
func (r *remapper) check(c *checkpoint.Reader, name string, cols *mapping) error {
	info, err := c.Lookup(name)
	switch {
	case err != nil:
		return err
	case info.DType != tensor.Float32:
		return status.InvalidArgumentf("Tensor %s has invalid type %v instead of expected type %v", name, info.DType, tensor.Float32)
	case len(info.Shape) != 2:
		return status.InvalidArgumentf("Tensor %s has shape %v of invalid rank %d instead of expected shape of rank 2.",
			name, info.Shape, len(info.Shape))
	case cols == nil && info.Shape[1] != r.cols:
		return status.InvalidArgumentf("Tensor %s has shape %v, where the size of its 2nd dimension is %d instead of being equal to num_cols=%d",
			name, info.Shape, info.Shape[1], r.cols)
	}
	return nil
}

// load reads the selected rows and any rows between them.
func (r *remapper) load(c *checkpoint.Reader, name string, rows, cols *mapping, to []float32) error {
	first, last := rows.span()
	for first <= last {
		n := last - first + 1
		if r.chunk > 0 {
			n = min(n, r.chunk)
		}
		part, err := c.ReadSlice(name, checkpoint.Slice{{Start: first, Length: n}, {Length: -1}})
		if err != nil {
			return err
		}
		width := part.Dim(1)
		from := tensor.Values[float32](&part)
		for i := range n {
			if to, ok := rowAt(to, rows, first+i, r.cols); ok {
				place(to, from[int(i)*width:(int(i)+1)*width], cols)
			}
		}
		part.Release()
		first += n
	}
	return nil
}

// rowAt returns the result row for old row i.
func rowAt(to []float32, rows *mapping, i, width int64) ([]float32, bool) {
	j, ok := rows.at(i)
	if !ok {
		return nil, false
	}
	return to[j*width : (j+1)*width], true
}

// place copies the selected elements of an old row.
func place(to, from []float32, cols *mapping) {
	if cols == nil {
		copy(to, from)
		return
	}
	for i, v := range from {
		if j, ok := cols.at(int64(i)); ok {
			to[j] = v
		}
	}
}

// fill sets the elements without an old position.
func (r *remapper) fill(rows, cols *mapping, values, to []float32) error {
	used := 0
	for i := range r.rows {
		for j := range r.cols {
			if !rows.absent(i) && !cols.absent(j) {
				continue
			}
			if used == len(values) {
				return status.InvalidArgumentf("initializing_values contained %d elements, but more missing values remain.", len(values))
			}
			to[i*r.cols+j] = values[used]
			used++
		}
	}
	if used < len(values) {
		return status.InvalidArgumentf("initializing_values contained %d elements, but only %d elements were used to fill in missing values.",
			len(values), used)
	}
	return nil
}
