package logging

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// The operations that TensorFlow's debugger inserts on watched edges. They compute their results,
// but nothing is sent to a debugger, so nodes with debug URLs are rejected.
func init() {
	const addresses = "debug_urls: list(string) = []"
	watched := func(more ...string) []string {
		return append([]string{"T: type", "device_name: string = ''", "tensor_name: string = ''"}, more...)
	}
	const gated = "gated_grpc: bool = false"
	identity := "Returns its input, as seen by a debugger."
	for _, op := range []kernel.Op{
		{Def: opdef.Def{
			Name: "DebugIdentity", Doc: identity, AllowsUninitialized: true,
			Out: []string{"output: T"}, Attrs: watched(addresses, gated), Shape: opdef.SameShape,
		}, Kernels: kernel.Any(debugger(pass))},
		{Def: opdef.Def{
			Name: "DebugIdentityV2", Doc: identity, Stateful: true, Out: []string{"output: T"}, Shape: opdef.SameShape,
			Attrs: []string{
				"T: type", "tfdbg_context_id: string = ''", "op_name: string = ''", "output_slot: int = -1",
				"tensor_debug_mode: int = -1", addresses, "circular_buffer_size: int = 1000", "tfdbg_run_id: string = ''",
			},
		}, Kernels: kernel.Any(debugger(pass))},
		{Def: opdef.Def{
			Name: "DebugIdentityV3", Doc: identity, Stateful: true, AllowsUninitialized: true, Out: []string{"output: T"},
			Attrs: watched("io_of_node: string = ''", "is_input: bool = false", "io_index: int = -1", addresses, gated),
			Shape: opdef.SameShape,
		}, Kernels: kernel.Any(debugger(pass))},
		{Def: opdef.Def{
			Name: "DebugNanCount", Doc: "Returns the number of NaN elements.", AllowsUninitialized: true,
			Out: []string{"output: int64"}, Attrs: watched(addresses, gated), Shape: opdef.ScalarShape,
		}, Kernels: kernel.ForTypes("T", debugger(countNaN), typeset.Real...)},
		{Def: opdef.Def{
			Name: "DebugNumericSummary",
			Doc: "Summarizes a tensor: whether it is initialized; the number of elements; the " +
				"numbers of NaN, -Inf, negative, zero, positive and +Inf elements; the " +
				"minimum, maximum, mean and variance of the finite elements; dtype, rank and " +
				"dimensions.",
			AllowsUninitialized: true, Out: []string{"output: float64"},
			Attrs: watched(addresses, "lower_bound: float = -inf", "upper_bound: float = inf", "mute_if_healthy: bool = false", gated),
			Shape: opdef.UnknownShape,
		}, Kernels: kernel.ForTypes("T", newNumericSummary,
			typeset.With(typeset.Integers, tensor.Bool, tensor.Float32, tensor.Float64)...)},
		{Def: opdef.Def{
			Name: "DebugNumericSummaryV2",
			Doc: "Summarizes a tensor as selected by tensor_debug_mode, from whether all " +
				"elements are finite to counts of each kind.",
			Out: []string{"output: output_dtype"}, Shape: opdef.UnknownShape,
			Attrs: []string{"output_dtype: {float32, float64} = float32", "T: type", "tensor_debug_mode: int = -1", "tensor_id: int = -1"},
		}, Kernels: []kernel.Impl{
			{Types: summarized(tensor.Float32), New: newDebugSummary[float32](24)},
			{Types: summarized(tensor.Float64), New: newDebugSummary[float64](53)},
		}},
	} {
		op.Def.In = []string{"input: T"}
		kernel.Register(op)
	}
	for _, name := range []string{"Copy", "CopyHost"} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Returns its input, for a debugger.", AllowsUninitialized: true,
			In: []string{"input: T"}, Out: []string{"output: T"},
			Attrs: []string{"T: type", "tensor_name: string = ''", "debug_ops_spec: list(string) = []"}, Shape: opdef.SameShape,
		}, newCopy)
	}
}

func summarized(out tensor.DType) []kernel.Constraint {
	return []kernel.Constraint{kernel.OfType("T", typeset.With(typeset.Real, tensor.Bool)...), kernel.OfType("output_dtype", out)}
}

// pass forwards the input, which may have other references.
func pass(ctx *kernel.Context) error {
	ctx.SetOutput(0, ctx.Input(0).Retain())
	return nil
}

func newCopy(c *kernel.Construction) (kernel.Kernel, error) {
	for _, spec := range c.Attrs.Strings("debug_ops_spec") {
		if strings.Count(spec, ";") != 2 {
			return nil, status.Internalf("Unexpected number of semicolons in debug_ops_spec element: %s", spec)
		}
	}
	return kernel.Func(pass), nil
}

// debugger returns the constructor of a debug kernel that computes with f.
func debugger(f kernel.Func) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		addresses := c.Attrs.Strings("debug_urls")
		_, toFilesOnly := c.Attrs["tfdbg_run_id"]
		if i := slices.IndexFunc(addresses, func(s string) bool { return !strings.HasPrefix(s, "file://") }); i >= 0 && toFilesOnly {
			return nil, status.Internalf("Unsupported debug URL schema in: %s", addresses[i])
		}
		if len(addresses) > 0 {
			return nil, status.Unimplementedf("%s sends nothing to a debugger at %s", c.Op.Name, addresses[0])
		}
		if name, ok := c.Attrs["tensor_name"].(string); ok {
			_, slot, found := strings.Cut(name, ":")
			if name == "" || strings.Contains(slot, ":") {
				return nil, status.InvalidArgumentf("Failed to parse tensor name: \"%s\"", name)
			}
			if _, err := strconv.ParseInt(slot, 10, 32); found && err != nil {
				return nil, status.InvalidArgumentf("Invalid string value for output_slot: \"%s\"", slot)
			}
		}
		return f, nil
	}
}

func countNaN(ctx *kernel.Context) error {
	out, err := ctx.AllocateZeros(0, tensor.Shape{1})
	if err != nil {
		return err
	}
	if ctx.Input(0).Initialized() {
		tensor.Values[int64](out)[0] = int64(countKinds(ctx.Input(0)).nan)
	}
	return nil
}

// kinds holds the number of elements of each kind.
type kinds struct{ nan, negInf, negative, zero, positive, posInf int }

func (k *kinds) add(v float64) {
	switch {
	case v != v:
		k.nan++
	case math.IsInf(v, -1):
		k.negInf++
	case math.IsInf(v, 1):
		k.posInf++
	case v < 0:
		k.negative++
	case v > 0:
		k.positive++
	default:
		k.zero++
	}
}

func countKinds(t *tensor.Tensor) (k kinds) {
	eachNumber(t, k.add)
	return k
}

// eachNumber calls f with the elements of a numeric or bool tensor.
func eachNumber(t *tensor.Tensor, f func(v float64)) {
	switch t.DType() {
	case tensor.Float32:
		each(t, func(v float32) { f(float64(v)) })
	case tensor.Float64:
		each(t, f)
	case tensor.Float16:
		each(t, func(v tensor.Float16Elem) { f(float64(v.Float32())) })
	case tensor.BFloat16:
		each(t, func(v tensor.BFloat16Elem) { f(float64(v.Float32())) })
	case tensor.Uint64:
		each(t, func(v uint64) { f(float64(v)) })
	case tensor.Bool:
		each(t, func(v bool) {
			if v {
				f(1)
			} else {
				f(0)
			}
		})
	default:
		for _, v := range intarg.Values(t) {
			f(float64(v))
		}
	}
}

func each[T tensor.Elem](t *tensor.Tensor, f func(T)) {
	for _, v := range tensor.Values[T](t) {
		f(v)
	}
}

func newNumericSummary(c *kernel.Construction) (kernel.Kernel, error) {
	lower, upper := float64(c.Attrs.Float("lower_bound")), float64(c.Attrs.Float("upper_bound"))
	return debugger(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		out, err := ctx.AllocateZeros(0, tensor.Shape{int64(14 + in.Rank())})
		if err != nil {
			return err
		}
		var k kinds
		least, most, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0.0
		mean, variance := math.NaN(), math.NaN()
		z := tensor.Values[float64](out)
		if in.Initialized() {
			z[0], z[1] = 1, float64(in.NumElements())
			// A value beyond a bound counts as infinite but is included in the mean.
			eachNumber(in, func(v float64) {
				switch {
				case math.IsInf(v, 0) || v != v:
					k.add(v)
					return
				case !math.IsInf(lower, 0) && v <= lower:
					k.negInf++
				case !math.IsInf(upper, 0) && v >= upper:
					k.posInf++
				default:
					k.add(v)
				}
				least, most, sum, n = min(least, v), max(most, v), sum+v, n+1
			})
		}
		if n > 0 {
			mean, variance = sum/n, 0
			eachNumber(in, func(v float64) {
				if v == v && !math.IsInf(v, 0) {
					variance += (v - mean) * (v - mean)
				}
			})
			variance /= n
		}
		for i, count := range []int{k.nan, k.negInf, k.negative, k.zero, k.positive, k.posInf} {
			z[2+i] = float64(count)
		}
		copy(z[8:], []float64{least, most, mean, variance, float64(in.DType()), float64(in.Rank())})
		for i, d := range in.Shape() {
			z[14+i] = float64(d)
		}
		return nil
	})(c)
}

// The values of tensor_debug_mode.
const (
	curtHealth    = 2
	conciseHealth = 3
	fullHealth    = 4
	shapeOnly     = 5
	infNaNSlots   = 8
)

// newDebugSummary returns the constructor for summaries of type Out, which represents integers of
// the given bits exactly.
func newDebugSummary[Out float32 | float64](bits int) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		mode, id := c.Attrs.Int("tensor_debug_mode"), c.Attrs.Int("tensor_id")
		return kernel.Func(func(ctx *kernel.Context) error {
			if mode != infNaNSlots && id > 1<<bits {
				return status.InvalidArgumentf(
					"DebugNumericSummaryV2Op requires tensor_id to be less than or equal to (2^%d). Given tensor_id:%d", bits, id)
			}
			summary, err := debugSummary(ctx.Input(0), mode, float64(id))
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, tensor.Shape{int64(len(summary))})
			if err != nil {
				return err
			}
			for i, v := range summary {
				tensor.Values[Out](out)[i] = Out(v)
			}
			return nil
		}), nil
	}
}

func debugSummary(in *tensor.Tensor, mode int, id float64) ([]float64, error) {
	dtype, rank, size := float64(in.DType()), float64(in.Rank()), float64(in.NumElements())
	if mode == shapeOnly {
		// The last six dimensions, or all of them padded with zeros.
		out := make([]float64, 10)
		copy(out, []float64{id, dtype, rank, size})
		for i, d := range in.Shape()[max(0, in.Rank()-6):] {
			out[4+i] = float64(d)
		}
		return out, nil
	}
	k := countKinds(in)
	negInf, posInf, nan := float64(k.negInf), float64(k.posInf), float64(k.nan)
	switch mode {
	case curtHealth:
		return []float64{id, min(1, negInf+posInf+nan)}, nil
	case conciseHealth:
		return []float64{id, size, negInf, posInf, nan}, nil
	case fullHealth:
		const device = -1 // unknown
		return []float64{
			id, device, dtype, rank, size, negInf, posInf, nan, float64(k.negative), float64(k.zero), float64(k.positive),
		}, nil
	case infNaNSlots:
		out := make([]float64, 3)
		for i, slot := range []struct{ count, mark float64 }{{negInf, math.Inf(-1)}, {posInf, math.Inf(1)}, {nan, math.NaN()}} {
			if slot.count > 0 {
				out[i] = slot.mark
			}
		}
		return out, nil
	}
	return nil, status.Unimplementedf("Unimplemented tensor debug mode: %d", mode)
}
