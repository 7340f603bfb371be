package twins

import (
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// optimizer is a kernel of training.cl: the number of variables and of hyperparameters, and the
// operation that computes the same. flag is its attribute, if it has one.
type optimizer struct {
	op          string
	vars, hyper int
	flag        string
	rows        string // operation for rows; none if empty
}

var optimizers = map[string]optimizer{
	"gradientdescent":         {"ApplyGradientDescent", 1, 1, "", ""},
	"momentum":                {"ApplyMomentum", 2, 2, "use_nesterov", "SparseApplyMomentum"},
	"kerasmomentum":           {"ResourceApplyKerasMomentum", 2, 2, "use_nesterov", "ResourceSparseApplyKerasMomentum"},
	"adagrad":                 {"ApplyAdagrad", 2, 1, "update_slots", "SparseApplyAdagrad"},
	"adagradv2":               {"ApplyAdagradV2", 2, 2, "update_slots", "SparseApplyAdagradV2"},
	"adadelta":                {"ApplyAdadelta", 3, 3, "", "SparseApplyAdadelta"},
	"adam":                    {"ApplyAdam", 3, 6, "use_nesterov", ""},
	"adamwithamsgrad":         {"ResourceApplyAdamWithAmsgrad", 4, 6, "", ""},
	"adamax":                  {"ApplyAdaMax", 3, 5, "", ""},
	"rmsprop":                 {"ApplyRMSProp", 3, 4, "", "SparseApplyRMSProp"},
	"centeredrmsprop":         {"ApplyCenteredRMSProp", 4, 4, "", "SparseApplyCenteredRMSProp"},
	"addsign":                 {"ApplyAddSign", 2, 4, "", ""},
	"powersign":               {"ApplyPowerSign", 2, 4, "", ""},
	"proximalgradientdescent": {"ApplyProximalGradientDescent", 1, 3, "", "SparseApplyProximalGradientDescent"},
	"proximaladagrad":         {"ApplyProximalAdagrad", 2, 3, "", "SparseApplyProximalAdagrad"},
	"ftrl":                    {"ApplyFtrl", 3, 4, "multiply_linear_by_lr", "SparseApplyFtrl"},
	"ftrlv2":                  {"ApplyFtrlV2", 3, 5, "multiply_linear_by_lr", "SparseApplyFtrlV2"},
}

func init() {
	for name, o := range optimizers {
		for _, t := range floatNames {
			dtype := dtypes[t]
			register(name+"_"+t, func(a *hostgpu.Args) {
				n := a.Int(o.vars + 1 + o.hyper)
				o.run(a, o.op, dtype, tensor.Shape{n}, a.Int(o.vars+2+o.hyper), kernel.Value{}, o.vars+1)
			})
			if o.rows != "" {
				register(name+"_"+t+"_rows", func(a *hostgpu.Args) { o.runRows(a, dtype) })
			}
		}
	}
}

// runRows updates rows one after the other, in the order of the list.
func (o optimizer) runRows(a *hostgpu.Args, dtype tensor.DType) {
	at := o.vars + 2 + o.hyper
	rows, width, limit := a.Int(at), a.Int(at+1), a.Int(at+2)
	var index, position []int64
	for _, s := range hostgpu.Slice[uint64](a, o.vars+1)[:rows] {
		if key := int64(s >> 32); key < limit {
			index, position = append(index, key), append(position, int64(uint32(s)))
		}
	}
	list, err := tensor.FromSlice(tensor.Shape{int64(len(index))}, index)
	if err != nil {
		panic(err)
	}
	grad := pick(a, o.vars, dtype, int64(len(position))*width, func(i int64) int64 { return position[i/width]*width + i%width })
	if grad.Tensor, err = grad.Tensor.WithShape(tensor.Shape{int64(len(position)), width}); err != nil {
		panic(err)
	}
	o.run(a, o.rows, dtype, tensor.Shape{limit, width}, a.Int(at+3), grad, o.vars+2, kernel.Value{Tensor: list})
}

// run calls the operation on the variables, which are the first arguments. The hyperparameters
// begin at argument hyper. grad is argument o.vars unless it is given.
func (o optimizer) run(a *hostgpu.Args, op string, dtype tensor.DType, shape tensor.Shape, flag int64, grad kernel.Value, hyper int,
	indices ...kernel.Value,
) {
	attrs := opdef.Attrs{"T": dtype}
	if o.flag != "" {
		attrs[o.flag] = flag&1 != 0
	}
	if indices != nil {
		attrs["Tindices"] = tensor.Int64
	}
	if !grad.Tensor.Initialized() {
		grad = view(a, o.vars, dtype, shape...)
	}
	def, _ := kernel.Default.LookupOp(op)
	var in []kernel.Value
	var refs []*kernel.Variable
	for i, arg := range def.Inputs {
		switch {
		case i < o.vars:
			v := kernel.NewVariable()
			value := view(a, i, dtype, shape...)
			copied, err := value.Tensor.Clone()
			if err != nil {
				panic(err)
			}
			v.Store(copied)
			refs = append(refs, v)
			if arg.IsRef {
				in = append(in, kernel.Value{Ref: v})
				continue
			}
			in = append(in, kernel.Value{Tensor: tensor.Scalar(&tensor.Handle{
				Device: cpu.Name, Container: "localhost", Name: arg.Name, TypeName: v.TypeName(), Resource: v,
			})})
		case arg.Name == "grad" || arg.Name == "delta":
			in = append(in, grad)
		case arg.Name == "indices":
			in = append(in, indices[0])
		default:
			in = append(in, view(a, hyper, dtype))
			hyper++
		}
	}
	compute(op, attrs, in...)
	for i, v := range refs {
		t := v.Load()
		copy(a.Bytes(i), t.Bytes())
	}
}
