package state

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// rule is an optimizer's update of a variable and its slots. It is registered in up to four forms:
// for reference variables (Apply…) or handles (ResourceApply…), with a gradient for the whole
// variable or for indexed rows (SparseApply…, ResourceSparseApply…).
type rule struct {
	name  string // operation name without Apply
	doc   string
	forms form
	vars  []string // names of the variable and its slots
	// other inputs in order: hyperparameters and the gradient, which is called grad or delta
	args  []string
	attrs []string // besides T, Tindices and use_locking
	f32   func(opdef.Attrs) update[float32]
	f64   func(opdef.Attrs) update[float64]
	c128  func(opdef.Attrs) update[complex128] // nil if TensorFlow has no complex form
	// real floating-point dtypes that TensorFlow supports, and more of them on GPUs only
	types, gpuTypes []tensor.DType

	// texts that replace "NAME is not a scalar: " for an input
	errors     map[string]string
	signs      map[string]sign   // required signs of hyperparameters
	rowsErrors map[string]string // errors of the sparse forms, if different
	rowsSigns  map[string]sign
}

// form is a set of registered forms of a rule.
type form uint8

const (
	byRef form = 1 << iota
	byHandle
	byRefSparse
	byHandleSparse

	dense  = byRef | byHandle
	sparse = byRefSparse | byHandleSparse
)

func (f form) resource() bool { return f&(byHandle|byHandleSparse) != 0 }
func (f form) rows() bool     { return f&sparse != 0 }

// sign is the required sign of a hyperparameter.
type sign uint8

const (
	positive sign = iota + 1
	notNegative
	notPositive
)

// number is a type in which updates are computed.
type number interface{ simd.Float | complex128 }

// update is the arithmetic of a rule: v holds corresponding elements of the variable and its slots,
// g those of the gradient, and p the hyperparameters in order.
type update[T number] func(v [][]T, g, p []T)

// plain wraps an update that does not depend on attributes.
func plain[T number](f update[T]) func(opdef.Attrs) update[T] {
	return func(opdef.Attrs) update[T] { return f }
}

// stepCost is the estimated time per element, in nanoseconds, from which the size of parallel
// blocks is derived.
const stepCost = 0.25

func (r *rule) register() {
	for f := byRef; f <= byHandleSparse; f <<= 1 {
		if r.forms&f == 0 {
			continue
		}
		s := &step{rule: r, form: f}
		s.inputs = s.inputNames()
		kernels := kernel.ByType("T", s.table())
		for _, dtype := range s.gpuTypes {
			kernels = append(kernels, kernel.Impl{Device: kernel.Host, Types: []kernel.Constraint{kernel.OfType("T", dtype)}, New: s.real(dtype)})
		}
		kernel.Register(kernel.Op{Def: s.def(), Kernels: kernels})
	}
}

// step is one form of a rule.
type step struct {
	*rule
	form   form
	inputs []string // inputs after the variables
}

func (s *step) def() opdef.Def {
	def := opdef.Def{Name: "Apply" + s.name, Doc: s.doc, Attrs: []string{"T: numbertype"}, Shape: s.shape}
	typ := "Ref(T)"
	if s.form.rows() {
		def.Name = "Sparse" + def.Name
		def.Attrs = append(def.Attrs, "Tindices: {int32, int64}")
	}
	if s.form.resource() {
		def.Name, def.Stateful, typ = "Resource"+def.Name, true, "resource"
	} else {
		def.Out = []string{"out: Ref(T)"}
	}
	def.Attrs = append(append(def.Attrs, "use_locking: bool = false"), s.attrs...)
	for _, v := range s.vars {
		def.In = append(def.In, v+": "+typ)
	}
	for _, name := range s.inputs {
		switch {
		case name == "indices":
			def.In = append(def.In, "indices: Tindices")
		case name == "global_step":
			def.In = append(def.In, "global_step: int64")
		case name == "delta" && s.form.rows():
			def.In = append(def.In, "grad: T")
		default:
			def.In = append(def.In, name+": T")
		}
	}
	return def
}

// inputNames returns the names of the inputs after the variables.
func (s *step) inputNames() []string {
	var out []string
	for _, name := range s.args {
		out = append(out, name)
		if isGradient(name) && s.form.rows() {
			out = append(out, "indices")
		}
	}
	return out
}

func isGradient(name string) bool { return name == "grad" || name == "delta" }

func (s *step) table() kernel.Table {
	t := kernel.Table{}
	for _, dtype := range s.types {
		t[dtype] = s.real(dtype)
	}
	if s.c128 != nil {
		t[tensor.Complex64] = newConvertedStep(s, s.c128, widenComplex, narrowComplex)
		t[tensor.Complex128] = newStep(s, s.c128)
	}
	return t
}

// real returns the kernel for a real floating-point type.
func (s *step) real(dtype tensor.DType) kernel.New {
	switch dtype {
	case tensor.Float16:
		return newConvertedStep(s, s.f32, elementwise.Widen[tensor.Float16Elem], elementwise.Narrow[tensor.Float16Elem])
	case tensor.BFloat16:
		return newConvertedStep(s, s.f32, elementwise.Widen[tensor.BFloat16Elem], elementwise.Narrow[tensor.BFloat16Elem])
	case tensor.Float64:
		return newStep(s, s.f64)
	default:
		return newStep(s, s.f32)
	}
}

// operands are the checked inputs of a step.
type operands struct {
	vars    []*kernel.Variable
	values  []*tensor.Tensor // values of vars, which are locked
	grad    *tensor.Tensor
	indices *tensor.Tensor // nil for a dense gradient
	hyper   []*tensor.Tensor

	room struct { // initial storage of vars and hyper
		vars  [4]*kernel.Variable
		hyper [8]*tensor.Tensor
	}
}

// stepKernel computes a step on elements of type T in type F.
type stepKernel[T tensor.Elem, F number] struct {
	*step
	apply func(v [][]T, g []T, p []F)
	flag  int32 // attributes, for kernels of devices
}

func newStep[T number](s *step, f func(opdef.Attrs) update[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		return &stepKernel[T, T]{s, f(c.Attrs), s.flag(c.Attrs)}, nil
	}
}

// newConvertedStep computes on elements of type T in the wider type F and rounds once.
func newConvertedStep[T tensor.Elem, F number](s *step, f func(opdef.Attrs) update[F], widen func([]F, []T), narrow func([]T, []F)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		apply := f(c.Attrs)
		return &stepKernel[T, F]{s, func(v [][]T, g []T, p []F) {
			wide := membudget.Make[F]((len(v) + 1) * len(g))
			slots := membudget.Make[[]F](len(v))
			for i := range v {
				slots[i] = wide[i*len(g) : (i+1)*len(g)]
				widen(slots[i], v[i])
			}
			grad := wide[len(v)*len(g):]
			widen(grad, g)
			apply(slots, grad, p)
			for i := range v {
				narrow(v[i], slots[i])
			}
		}, s.flag(c.Attrs)}, nil
	}
}

func (k *stepKernel[T, F]) Compute(ctx *kernel.Context) error {
	o, err := k.collect(ctx)
	if err != nil {
		return err
	}
	var unlock func()
	o.values, unlock = kernel.LockAll(o.vars...)
	defer unlock()
	if err := k.check(ctx, o); err != nil {
		return err
	}
	if d := device.Of(o.grad); d != nil {
		if err := k.onDevice(ctx, d, o, k.flag); err != nil {
			return err
		}
		if !k.form.resource() {
			ctx.SetOutputRef(0, o.vars[0])
		}
		return nil
	}
	p := membudget.Make[F](len(o.hyper))
	for i, t := range o.hyper {
		p[i] = scalar[F](t)
	}
	update := k.whole
	if o.indices != nil {
		update = k.listed
	}
	if err := update(ctx, o, p); err != nil {
		return err
	}
	if !k.form.resource() {
		ctx.SetOutputRef(0, o.vars[0])
	}
	return nil
}

// elements returns the elements of the variable and its slots for writing.
func (k *stepKernel[T, F]) elements(ctx *kernel.Context, o *operands) ([][]T, error) {
	v := membudget.Make[[]T](len(o.values))
	for i, t := range o.values {
		own, err := ctx.Writable(t)
		if err != nil {
			return nil, err
		}
		v[i] = tensor.Values[T](own)
	}
	return v, nil
}

// whole updates all elements.
func (k *stepKernel[T, F]) whole(ctx *kernel.Context, o *operands, p []F) error {
	v, err := k.elements(ctx, o)
	if err != nil {
		return err
	}
	g := tensor.Values[T](o.grad)
	if len(g) <= elementwise.Grain(stepCost) {
		k.apply(v, g, p)
		return nil
	}
	parallel.For(len(g), elementwise.Grain(stepCost), func(lo, hi int) {
		part := membudget.Make[[]T](len(v))
		for i := range v {
			part[i] = v[i][lo:hi]
		}
		k.apply(part, g[lo:hi], p)
	})
	return nil
}

// listed updates the indexed rows in order.
func (k *stepKernel[T, F]) listed(ctx *kernel.Context, o *operands, p []F) error {
	limit := o.values[0].Dim(0)
	list, bad, err := gatherscatter.Read(o.indices, limit)
	defer list.Release()
	if err != nil {
		return err
	}
	if bad >= 0 {
		return k.badIndex(o, bad, list.Rows[bad])
	}
	g := tensor.Values[T](o.grad)
	if len(g) == 0 {
		return nil
	}
	v, err := k.elements(ctx, o)
	if err != nil {
		return err
	}
	width := len(g) / len(list.Rows)
	part := membudget.Make[[]T](len(v))
	for n, row := range list.Rows {
		for i := range v {
			part[i] = v[i][int(row)*width : (int(row)+1)*width]
		}
		k.apply(part, g[n*width:(n+1)*width], p)
	}
	return nil
}

func (s *step) badIndex(o *operands, at int, index int64) error {
	if s.name == "KerasMomentum" {
		return status.InvalidArgumentf("indices%s = %d is not in [0, %d)", intarg.Position(o.indices.Shape(), at), index, o.values[0].Dim(0))
	}
	return status.InvalidArgumentf("Index %d at offset %d in indices is out of range", index, at)
}

// scalar returns the value of a scalar of any dtype that a rule supports.
func scalar[F number](t *tensor.Tensor) F {
	var out F
	switch out := any(&out).(type) {
	case *float32:
		*out = float32(real(anyValue(t)))
	case *float64:
		*out = real(anyValue(t))
	case *complex128:
		*out = anyValue(t)
	}
	return out
}

func anyValue(t *tensor.Tensor) complex128 {
	switch t.DType() {
	case tensor.Float16:
		return complex(float64(tensor.Value[tensor.Float16Elem](t).Float32()), 0)
	case tensor.BFloat16:
		return complex(float64(tensor.Value[tensor.BFloat16Elem](t).Float32()), 0)
	case tensor.Float32:
		return complex(float64(tensor.Value[float32](t)), 0)
	case tensor.Float64:
		return complex(tensor.Value[float64](t), 0)
	case tensor.Complex64:
		return complex128(tensor.Value[complex64](t))
	case tensor.Complex128:
		return tensor.Value[complex128](t)
	default:
		return complex(float64(tensor.Value[int64](t)), 0)
	}
}
