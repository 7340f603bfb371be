package simd

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// updateCase is an update step on n elements. state holds the weights, the optimizer's slots and
// the gradient, in that order. want is the step on one element in float64.
type updateCase[T Float] struct {
	name  string
	slots int
	step  func(s [][]T)
	want  func(s []float64)
}

func updateCases[T Float]() []updateCase[T] {
	const rate, mom, eps, beta1, beta2, rho = 0.1, 0.9, 1e-3, 0.8, 0.95, 0.7
	momentum := func(nesterov bool) updateCase[T] {
		return updateCase[T]{fmt.Sprint("Momentum nesterov=", nesterov), 3,
			func(s [][]T) { Momentum(s[0], s[1], s[2], rate, mom, nesterov) },
			func(s []float64) {
				s[1] = s[1]*mom + s[2]
				if nesterov {
					s[0] -= s[2]*rate + s[1]*mom*rate
				} else {
					s[0] -= s[1] * rate
				}
			}}
	}
	adagrad := func(frozen bool, eps float64) updateCase[T] {
		return updateCase[T]{fmt.Sprint("Adagrad frozen=", frozen, " epsilon=", eps), 3,
			func(s [][]T) { Adagrad(s[0], s[1], s[2], rate, T(eps), frozen) },
			func(s []float64) {
				if !frozen {
					s[1] += s[2] * s[2]
				}
				s[0] -= rate * s[2] / (math.Sqrt(s[1]) + eps)
			}}
	}
	adam := func(nesterov bool) updateCase[T] {
		return updateCase[T]{fmt.Sprint("Adam nesterov=", nesterov), 4,
			func(s [][]T) { Adam(s[0], s[1], s[2], s[3], AdamRates[T]{rate, beta1, beta2, eps, nesterov}) },
			func(s []float64) {
				s[1] += (s[3] - s[1]) * (1 - beta1)
				s[2] += (s[3]*s[3] - s[2]) * (1 - beta2)
				m := s[1]
				if nesterov {
					m = s[3]*(1-beta1) + beta1*m
				}
				s[0] -= m * rate / (math.Sqrt(s[2]) + eps)
			}}
	}
	return []updateCase[T]{
		{"SGD", 2, func(s [][]T) { SGD(s[0], s[1], rate) }, func(s []float64) { s[0] -= rate * s[1] }},
		momentum(false), momentum(true), adagrad(false, eps), adagrad(true, eps), adagrad(false, 0), adagrad(true, 0), adam(false), adam(true),
		{"RMSProp", 4,
			func(s [][]T) { RMSProp(s[0], s[1], s[2], nil, s[3], RMSPropRates[T]{rate, rho, mom, eps}) },
			func(s []float64) {
				s[1] += (s[3]*s[3] - s[1]) * (1 - rho)
				s[2] = mom*s[2] + rate*s[3]/math.Sqrt(s[1]+eps)
				s[0] -= s[2]
			}},
		{"RMSProp centered", 5,
			func(s [][]T) { RMSProp(s[0], s[1], s[2], s[3], s[4], RMSPropRates[T]{rate, rho, mom, 1}) },
			func(s []float64) {
				s[1] += (s[4]*s[4] - s[1]) * (1 - rho)
				s[3] += (s[4] - s[3]) * (1 - rho)
				s[2] = mom*s[2] + rate*s[4]/math.Sqrt(s[1]-s[3]*s[3]+1)
				s[0] -= s[2]
			}},
		{"FTRL", 4,
			func(s [][]T) { FTRL(s[0], s[1], s[2], s[3], FTRLRates[T]{0.5, 2, 0.3, 0.1, 0.2}) },
			func(s []float64) {
				next := s[1] + s[3]*s[3]
				s[2] += 0.5*(s[3]+0.4*s[0]) - (math.Sqrt(next)-math.Sqrt(s[1]))/2*s[0]
				s[0], s[1] = 0, next
				if math.Abs(s[2]) > 0.15 {
					s[0] = (math.Copysign(0.15, s[2]) - s[2]) / (math.Sqrt(next)/2 + 0.1)
				}
			}},
		{"Axpby", 3, func(s [][]T) { Axpby(s[0], 2, s[1], -3, s[2]) }, func(s []float64) { s[0] = 2*s[1] - 3*s[2] }},
	}
}

func TestUpdates(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testUpdates[float32](t, 3e-6)
		testUpdates[float64](t, 1e-14)
	})
}

// TestUpdatesOfSpecialValues tests divisions by zero and by infinity.
func TestUpdatesOfSpecialValues(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		for _, tt := range []struct{ acc, g, epsilon, want float32 }{
			{0, 0, 0, nan}, {0, 0, 1, 1}, {0, 2, 0, -inf}, {inf, 2, 0, 1}, {inf, 2, 1, 1}, {nan, 2, 1, nan}, {1e-30, 1e-15, 0, 0}, {4, inf, 0, -inf}, {4, nan, 0, nan},
		} {
			w, acc, g := slices.Repeat([]float32{1}, 40), slices.Repeat([]float32{tt.acc}, 40), slices.Repeat([]float32{tt.g}, 40)
			Adagrad(w, acc, g, 1, tt.epsilon, true)
			if slices.ContainsFunc(acc, func(v float32) bool { return v != tt.acc && tt.acc == tt.acc }) {
				t.Fatalf("a step by %v with %v so far, which is not to change, makes that %v", tt.g, tt.acc, acc)
			}
			for _, got := range w {
				if !near(float64(got), float64(tt.want), 1e-6) && got != tt.want && (got == got || tt.want == tt.want) {
					t.Fatalf("a step by %v with %v so far and epsilon %v gives %v, want %v", tt.g, tt.acc, tt.epsilon, got, tt.want)
				}
			}
		}
	})
}

func testUpdates[T Float](t *testing.T, tolerance float64) {
	for _, tt := range updateCases[T]() {
		for _, n := range lengths {
			s := make([][]T, tt.slots)
			checks := make([]func(*testing.T), tt.slots)
			for i := range s {
				s[i], checks[i] = guarded[T](n, 0.1*float64(i+1), 1+0.2*float64(i))
			}
			old := make([][]T, tt.slots)
			for i := range s {
				old[i] = slices.Clone(s[i])
			}
			tt.step(s)
			for i := range n {
				want := make([]float64, tt.slots)
				for j := range s {
					want[j] = float64(old[j][i])
				}
				tt.want(want)
				for j := range s {
					if !near(float64(s[j][i]), want[j], tolerance*(1+math.Abs(want[j]))) {
						t.Fatalf("%s[%T]: slot %d is %v at %d of %d, want %v", tt.name, T(0), j, s[j][i], i, n, want[j])
					}
				}
			}
			for _, check := range checks {
				check(t)
			}
		}
	}
}
