//go:build !race

package conv

import "testing"

// The race detector makes sync.Pool drop items at random.
func TestConvolutionDoesNotAllocate(t *testing.T) {
	for _, s := range []Shape{shape(2, 12, 12, 20, 3, 40, 1, 1, true), shape(2, 15, 13, 9, 3, 20, 2, 1, true)} {
		x, f, dy := random[float32](s.inputs()), random[float32](s.filter()), random[float32](s.outputs())
		for name, op := range map[string]func(){
			"Forward":    func() { Forward(&s, dy, x, f, Epilogue[float32]{}) },
			"InputGrad":  func() { InputGrad(&s, x, dy, f, false) },
			"FilterGrad": func() { FilterGrad(&s, f, x, dy, false) },
		} {
			if n := testing.AllocsPerRun(50, op); n >= 1 {
				t.Errorf("%s of %+v allocates %v times", name, s, n)
			}
		}
	}
}
