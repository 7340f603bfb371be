package state

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// wide lists the dtypes of the proximal updates.
var wide = []tensor.DType{tensor.Float32, tensor.Float64}

func init() {
	scalar := map[string]string{
		"l1": "l1 regularization strength is not a scalar: ", "l2": "l2 regularization strength is not a scalar: ",
	}
	signed := map[string]string{
		"lr": "lr is not a positive scalar: ", "l1": "l1 regularization strength is not a non-negative scalar: ",
		"l2": "l2 regularization strength is not a non-negative scalar: ",
	}
	ftrlErrors := map[string]string{
		"l1": scalar["l1"], "l2": scalar["l2"], "l2_shrinkage": "l2 shrinkage regularization strength is not a scalar: ",
		"lr_power": "lr_power is not a scalar",
	}
	ftrlRowsErrors := map[string]string{
		"lr": "lr is not a positive scalar (or zero if multiply_linear_by_lr is set): ",
		"l1": signed["l1"], "l2": signed["l2"],
		"l2_shrinkage": "l2 shrinkage regularization strength is not a non-negative scalar: ",
		"lr_power":     "lr_power is not a non-positive scalar: ",
	}
	ftrlRowsSigns := map[string]sign{"lr": notNegative, "l1": notNegative, "l2": notNegative, "l2_shrinkage": notNegative, "lr_power": notPositive}
	for _, r := range []*rule{
		{
			name: "ProximalGradientDescent", doc: "Updates var by proximal gradient descent with L1 and L2 regularization.",
			forms: dense | sparse, vars: []string{"var"}, args: []string{"alpha", "l1", "l2", "delta"},
			f32: plain(proximalDescend[float32]), f64: plain(proximalDescend[float64]), types: wide, errors: scalar,
		},
		{
			name: "ProximalAdagrad", doc: "Updates var by the Adagrad scheme followed by a proximal step with L1 and L2 regularization.",
			forms: dense | sparse, vars: []string{"var", "accum"}, args: []string{"lr", "l1", "l2", "grad"},
			f32: plain(proximalAdagrad[float32]), f64: plain(proximalAdagrad[float64]), types: wide, gpuTypes: []tensor.DType{tensor.Float16},
			errors: signed, signs: map[string]sign{"lr": positive, "l1": notNegative, "l2": notNegative},
		},
		{
			name: "AdagradDA", doc: "Updates var by the Adagrad dual averaging scheme (Xiao, 2009).",
			forms: dense | sparse, vars: []string{"var", "gradient_accumulator", "gradient_squared_accumulator"},
			args: []string{"grad", "lr", "l1", "l2", "global_step"},
			f32:  plain(adagradDA[float32]), f64: plain(adagradDA[float64]), types: wide, errors: scalar,
		},
		{
			name: "Ftrl", doc: "Updates var by the FTRL-Proximal scheme (McMahan and others, 2013) with L1 " +
				"and L2 regularization.",
			forms: dense | sparse, vars: []string{"var", "accum", "linear"}, args: []string{"grad", "lr", "l1", "l2", "lr_power"},
			attrs: []string{"multiply_linear_by_lr: bool = false"}, f32: ftrl[float32], f64: ftrl[float64], types: typeset.Floats,
			errors: ftrlErrors, rowsErrors: ftrlRowsErrors, rowsSigns: ftrlRowsSigns,
		},
		{
			name: "FtrlV2", doc: "Updates var by the FTRL-Proximal scheme with L2 shrinkage, which adds a " +
				"penalty on var to the gradient.",
			forms: dense | sparse, vars: []string{"var", "accum", "linear"}, args: []string{"grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"},
			attrs: []string{"multiply_linear_by_lr: bool = false"}, f32: ftrl[float32], f64: ftrl[float64], types: typeset.Floats,
			errors: ftrlErrors, rowsErrors: ftrlRowsErrors, rowsSigns: ftrlRowsSigns,
		},
	} {
		r.register()
	}
}

// shrink moves x toward zero by rate*l1, then scales it down by rate*l2.
func shrink[T simd.Float](x, rate, l1, l2 T) T {
	if l1 > 0 {
		x = signOf(x) * max(max(x, -x)-rate*l1, 0)
	}
	return x / (1 + l2*rate)
}

func proximalDescend[T simd.Float](v [][]T, g, p []T) {
	w, alpha, l1, l2 := v[0], p[0], p[1], p[2]
	for i, d := range g {
		w[i] = shrink(w[i]-d*alpha, alpha, l1, l2)
	}
}

func proximalAdagrad[T simd.Float](v [][]T, g, p []T) {
	w, accum, lr, l1, l2 := v[0], v[1], p[0], p[1], p[2]
	for i, d := range g {
		accum[i] += d * d
		rate := lr / sqrt(accum[i])
		w[i] = shrink(w[i]-d*rate, rate, l1, l2)
	}
}

func adagradDA[T simd.Float](v [][]T, g, p []T) {
	w, sum, squares, lr, l1, l2, step := v[0], v[1], v[2], p[0], p[1], p[2], p[3]
	for i, d := range g {
		sum[i] += d
		squares[i] += d * d
		x := sum[i]
		if l1 > 0 {
			x = signOf(x) * max(max(x, -x)-step*l1, 0)
		}
		w[i] = -lr * x / (l2*(step*lr) + sqrt(squares[i]))
	}
}

func ftrl[T simd.Float](a opdef.Attrs) update[T] {
	byRate := a.Bool("multiply_linear_by_lr")
	spread := func(w, linear []T) {}
	if _, rows := a["Tindices"]; rows {
		spread = spreadNaN[T]
	}
	return func(v [][]T, g, p []T) {
		w, accum, linear, lr, l1, l2, shrinkage, power := v[0], v[1], v[2], p[0], p[1], p[2], T(0), p[len(p)-1]
		if len(p) == 5 {
			shrinkage = p[3]
		}
		// With multiply_linear_by_lr, both sides of every equation are multiplied by the rate.
		scale, divisor := T(1), lr
		if byRate {
			scale, divisor = lr, 1
		}
		if power == -0.5 {
			simd.FTRL(w, accum, linear, g, simd.FTRLRates[T]{Scale: scale, Divisor: divisor, L1: l1, L2: l2, Shrinkage: shrinkage})
			spread(w, linear)
			return
		}
		for i, d := range g {
			next := accum[i] + d*d
			root := ftrlPower(next, power)
			linear[i] += (d+2*shrinkage*w[i])*scale - (root-ftrlPower(accum[i], power))/divisor*w[i]
			bound := l1 * scale
			w[i] = 0
			if x := linear[i]; max(x, -x) > bound {
				w[i] = (bound*signOf(x) - x) / (root/divisor + 2*l2*scale)
			}
			accum[i] = next
		}
		spread(w, linear)
	}
}

// spreadNaN sets elements of a variable to NaN where linear is NaN. TensorFlow does so for sparse
// gradients; for dense gradients it treats NaN as a small number.
func spreadNaN[T simd.Float](w, linear []T) {
	for i, x := range linear {
		if math.IsNaN(float64(x)) {
			w[i] = x
		}
	}
}

// ftrlPower returns x raised to the power -p.
func ftrlPower[T simd.Float](x, p T) T {
	return T(math.Pow(float64(x), float64(-p)))
}
