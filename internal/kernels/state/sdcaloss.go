package state

import (
	"math"

	"github.com/weft-ml/weft/status"
)

// dualLoss is a loss function for stochastic dual coordinate ascent (Shalev-Shwartz and Zhang,
// "Stochastic Dual Coordinate Ascent Methods for Regularized Loss Minimization", 2013; Ma and
// others, "Adding vs. Averaging in Distributed Primal-Dual Optimization", 2015).
type dualLoss struct {
	// update returns the optimal dual variable of an example while all others are fixed. norm is
	// the squared norm of the example times its weight and the number of partitions, divided by the
	// strength of regularization.
	update func(label, dual, wx, norm float64) float64
	primal func(label, wx float64) float64 // loss of an example of weight 1
	slope  func(label, wx, weight float64) float64
	dual   func(label, dual float64) float64 // conjugate loss of an example of weight 1
	// inverse of the gradient's Lipschitz constant; 0 if there is none
	smooth float64
	labels func(label float32) (float32, error)
}

var dualLosses = map[string]*dualLoss{
	"squared_loss": {
		update: func(label, dual, wx, norm float64) float64 { return dual + (label-dual-wx)/(1+norm) },
		primal: func(label, wx float64) float64 { return 0.5 * (wx - label) * (wx - label) },
		slope:  func(label, wx, weight float64) float64 { return (wx - label) * weight },
		dual:   func(label, dual float64) float64 { return dual * (0.5*dual - label) },
		smooth: 1,
		labels: func(label float32) (float32, error) { return label, nil },
	},
	"logistic_loss": {
		update: func(label, dual, wx, norm float64) float64 {
			x := 0.0
			for range newtonSteps {
				t := math.Tanh(x)
				x -= (-2*label*x - wx - norm*(0.5*(1+t)/label-dual)) / (-2*label - norm*(1-t*t)*0.5/label)
			}
			return 0.5 * (1 + math.Tanh(x)) / label
		},
		primal: func(label, wx float64) float64 { // written so that the exponential cannot overflow
			if y := label * wx; y <= 0 {
				return math.Log1p(math.Exp(y)) - y
			}
			return math.Log1p(math.Exp(-label * wx))
		},
		slope: func(label, wx, weight float64) float64 {
			y := label * wx
			inverse := 1 / (1 + math.Exp(y))
			if y > 0 {
				inverse = math.Exp(-y) / (1 + math.Exp(-y))
			}
			return -inverse * label * weight
		},
		dual: func(label, dual float64) float64 {
			entropy := func(p float64) float64 {
				if p <= 0 {
					return 0
				}
				return p * math.Log(p)
			}
			return entropy(dual*label) + entropy(1-dual*label)
		},
		smooth: 4,
		labels: binaryLabel,
	},
	"hinge_loss": {
		update: func(label, dual, wx, norm float64) float64 { return withinUnit(label, dual+(label-wx)/norm) },
		primal: func(label, wx float64) float64 { return max(0, 1-label*wx) },
		slope: func(label, wx, weight float64) float64 {
			if label*wx < 1 {
				return -label * weight
			}
			return 0
		},
		dual: func(label, dual float64) float64 {
			if y := label * dual; y >= 0 && y <= 1 {
				return -y
			}
			return math.MaxFloat64
		},
		labels: binaryLabel,
	},
	"smooth_hinge_loss": {
		update: func(label, dual, wx, norm float64) float64 { return withinUnit(label, dual+(label-wx-dual)/(norm+1)) },
		primal: func(label, wx float64) float64 {
			switch y := label * wx; {
			case y >= 1:
				return 0
			case y <= 0:
				return 0.5 - y
			default:
				return 0.5 * (1 - y) * (1 - y)
			}
		},
		slope: func(label, wx, _ float64) float64 {
			switch y := label * wx; {
			case y >= 1:
				return 0
			case y <= 0:
				return -label
			default:
				return wx - label
			}
		},
		dual: func(label, dual float64) float64 {
			if y := label * dual; y >= 0 && y <= 1 {
				return 0.5*dual*dual - y
			}
			return math.MaxFloat64
		},
		smooth: 1,
		labels: binaryLabel,
	},
	"poisson_loss": {
		update: func(label, dual, wx, norm float64) float64 {
			x := 0.0
			if label > dual {
				x = math.Log(label - dual)
			}
			for range newtonSteps {
				e := math.Exp(x)
				x -= (x - wx - norm*(label-dual-e)) / (1 + norm*e)
			}
			return label - math.Exp(x)
		},
		primal: func(label, wx float64) float64 { return math.Exp(wx) - wx*label },
		slope:  func(label, wx, weight float64) float64 { return (math.Exp(wx) - label) * weight },
		dual: func(label, dual float64) float64 {
			switch d := label - dual; {
			case d == 0:
				return 0
			case d < 0:
				return math.MaxFloat64
			default:
				return d * (math.Log(d) - 1)
			}
		},
		smooth: 1,
		labels: func(label float32) (float32, error) {
			if label < 0 {
				return 0, status.InvalidArgumentf(
					"Only non-negative labels can be used with the Poisson log loss. Found example with label: %g", label)
			}
			return label, nil
		},
	},
}

// newtonSteps is the number of Newton iterations. Each doubles the number of correct digits, so it
// suffices for full precision.
const newtonSteps = 10

// withinUnit clamps a dual variable times the label, -1 or 1, to [0, 1].
func withinUnit(label, dual float64) float64 {
	switch y := label * dual; {
	case y < 0:
		return 0
	case y > 1:
		return label
	}
	return dual
}

// binaryLabel converts a label of 0 or 1 to -1 or 1.
func binaryLabel(label float32) (float32, error) {
	switch label {
	case 0:
		return -1, nil
	case 1:
		return 1, nil
	}
	return 0, status.InvalidArgumentf("Only labels of 0.0 or 1.0 are supported right now. Found example with label: %g", label)
}
