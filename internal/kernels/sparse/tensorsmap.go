package sparse

import (
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	parts := []string{"sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"}
	named := []string{"container: string = ''", "shared_name: string = ''"}
	register := func(name, doc, out string, shape shapefn.Shape, f func(*kernel.Context, *tensorsMap) error) {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, Stateful: true, In: parts, Out: []string{out + ": int64"}, Attrs: append([]string{"T: type"}, named...),
			Shape: func(c *opdef.ShapeContext) error {
				c.Out[0] = shape
				return shapefn.CheckRanks(c, 0, 2, 1, 1)
			},
		}, withMap(f))
	}
	register("AddSparseToTensorsMap", "Adds a sparse tensor to a map and returns its handle.", "sparse_handle", shapefn.Of(), addOne)
	register("AddManySparseToTensorsMap", "Adds each row of a sparse tensor to a map and returns their handles.",
		"sparse_handles", shapefn.Of(shapefn.Unknown), addMany)
	kernel.RegisterNew(opdef.Def{
		Name: "TakeManySparseFromTensorsMap",
		Doc:  "Takes sparse tensors out of a map and stacks them along a new first dimension.", Stateful: true,
		In:    []string{"sparse_handles: int64"},
		Out:   []string{"sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"},
		Attrs: append([]string{"dtype: type"}, named...),
		Shape: func(c *opdef.ShapeContext) error {
			if err := shapefn.CheckRanks(c, 0, 1); err != nil {
				return err
			}
			return anyCOO(c)
		},
	}, withMap(takeMany))
}

// tensorsMap is a resource that holds sparse tensors by handle until an operation takes them.
type tensorsMap struct {
	name string

	mu    sync.Mutex // guards the fields below
	next  int64
	held  map[int64]*coo     // the map owns the values
	meter membudget.Meter    // of held
	paid  *membudget.Holding // what is held, less the values
}

// TypeName implements kernel.Resource.
func (*tensorsMap) TypeName() string { return "N10tensorflow16SparseTensorsMapE" }

// withMap returns the constructor of a kernel that uses the map named by its attributes, or by the
// node name if they name none.
func withMap(f func(*kernel.Context, *tensorsMap) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		container, name := c.Attrs.String("container"), c.Attrs.String("shared_name")
		if name == "" {
			name = c.Node
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			m, err := kernel.LookupOrCreateResource(ctx.Device.Resources, container, name, func() (*tensorsMap, error) {
				return &tensorsMap{name: name, held: map[int64]*coo{}, paid: membudget.NewHolding()}, nil
			})
			if err != nil {
				return err
			}
			return f(ctx, m)
		}), nil
	}
}

// add stores s, for which an account pays, and returns its handle. It takes ownership of the
// values.
func (m *tensorsMap) add(a *membudget.Account, s *coo) (int64, error) {
	if err := resource.Charge(a, s.values); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meter.MustTakeEntry(0)
	if err := resource.Hold(m.paid, a, s.partsSize()); err != nil {
		s.values.Release()
		return 0, err
	}
	m.held[m.next] = s
	m.next++
	return m.next - 1, nil
}

// partsSize returns the memory of an entry in bytes, less the values.
func (s *coo) partsSize() int64 { return int64(8*(len(s.ix)+len(s.shape))) + entrySize }

// entrySize is the memory of an entry of the map without the parts of the tensor, in bytes.
const entrySize = 256

// rowMemory is about the memory of a row of few elements that is added to a map, without the entry,
// in bytes.
const rowMemory = 400

// take removes and returns the tensors with the given handles. If a handle is missing, the tensors
// before it are lost.
func (m *tensorsMap) take(handles []int64) (all []*coo, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range handles {
		s, ok := m.held[h]
		if !ok {
			return all, status.InvalidArgumentf("Unable to find SparseTensor: %d in map: %s", h, m.name)
		}
		delete(m.held, h)
		m.paid.Shrink(s.partsSize())
		all = membudget.Append(all, s)
	}
	return all, nil
}

func addOne(ctx *kernel.Context, m *tensorsMap) error {
	if err := checkParts(ctx); err != nil {
		return err
	}
	s, err := makeCOO(ctx.Input(0), ctx.Input(1), intarg.Values(ctx.Input(2)))
	if err != nil {
		return err
	}
	values := s.values.Retain()
	handle, err := m.add(resource.Account(ctx),
		&coo{ix: membudget.AppendAll(nil, s.ix...), values: &values, shape: slices.Clone(s.shape), n: s.n, rank: s.rank})
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(handle))
	}
	return err
}

func addMany(ctx *kernel.Context, m *tensorsMap) error {
	s, err := manyInput(ctx)
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, tensor.Shape{s.shape[0]})
	if err != nil {
		return err
	}
	if err := s.checkOrder(); err != nil {
		return err
	}
	// Small tensors may use all of the limit, and near it each of them waits for a collection of
	// garbage. Rows that stay ask for all of their memory before.
	membudget.MustTake(s.shape[0] * rowMemory)
	rows := membudget.Make[*coo](s.shape[0])
	err = s.eachRow(ctx.Context(), func(i int, row rowParts) error {
		rows[i] = &coo{ix: slices.Clone(tensor.Values[int64](&row.indices)), values: &row.values, shape: slices.Clone(row.shape),
			n: row.values.NumElements(), rank: s.rank - 1}
		row.indices.Release()
		return nil
	})
	if err != nil {
		return err
	}
	// Empty rows get their handles last, as in TensorFlow.
	handles := tensor.Values[int64](out)
	for _, empty := range []bool{false, true} {
		for i, row := range rows {
			if (row.n == 0) == empty {
				if handles[i], err = m.add(resource.Account(ctx), row); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func manyInput(ctx *kernel.Context) (*coo, error) {
	if err := checkParts(ctx); err != nil {
		return nil, err
	}
	indices := ctx.Input(0)
	if n := ctx.Input(1).Dim(0); n != indices.Dim(0) {
		return nil, status.InvalidArgumentf("Number of values must match first dimension of indices. Got %d values, indices shape: %v", n, indices.Shape())
	}
	if n := ctx.Input(2).Dim(0); n != indices.Dim(1) {
		return nil, status.InvalidArgumentf("Number of dimensions must match second dimension of indices. Got %d dimensions, indices shape: %v", n, indices.Shape())
	}
	return rowsInput(ctx)
}

func takeMany(ctx *kernel.Context, m *tensorsMap) error {
	handles := ctx.Input(0)
	if handles.Rank() != 1 {
		return status.InvalidArgumentf("sparse_handles should be a vector but received shape %v", handles.Shape())
	}
	parts, err := m.take(intarg.Values(handles))
	defer func() {
		for _, p := range parts {
			p.values.Release()
		}
	}()
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return status.InvalidArgumentf("Must have at least 1 SparseTensor handle.")
	}
	inner := slices.Clone(parts[0].shape)
	for i, p := range parts {
		if p.values.DType() != ctx.OutputType(1) {
			return status.InvalidArgumentf("Requested SparseTensor of type %v but SparseTensor[%d].values.dtype() == %v", ctx.OutputType(1), i, p.values.DType())
		}
		if p.rank != len(inner) {
			return status.InvalidArgumentf("Inconsistent rank across SparseTensors: rank prior to SparseTensor[%d] was: %d but rank of SparseTensor[%d] is: %d",
				i, len(inner)+1, i, p.rank+1)
		}
		for d := range inner {
			inner[d] = max(inner[d], p.shape[d])
		}
	}
	return stack(ctx, parts, tensor.Shape{int64(len(parts))}, inner)
}
