package gradients

import "github.com/weft-ml/weft/op"

func init() { Register(hsvGrad, "RGBToHSV") }

// hsvGrad differentiates the hue (the differences of the channels relative to the largest), the
// saturation 1 - min/max, and the value max. Of equal channels the first of red, green and blue
// counts as the largest and the last as the smallest. As in TensorFlow, the slope of the saturation
// is zero for channels that are zero.
func hsvGrad(c *Call) []Grad {
	s, x := c.S, c.In(0)
	channels := op.Unpack(s, x, 3, op.UnpackAxis(-1))
	r, g, b := nth(channels, 0), nth(channels, 1), nth(channels, 2)
	mask := func(a, b op.Output) op.Output { return op.Cast(s, op.LogicalAnd(s, a, b), x.DType()) }
	largest := []op.Output{
		mask(op.GreaterEqual(s, r, b), op.GreaterEqual(s, r, g)), mask(op.Greater(s, g, r), op.GreaterEqual(s, g, b)),
		mask(op.Greater(s, b, r), op.Greater(s, b, g)),
	}
	smallest := []op.Output{
		mask(op.Less(s, r, b), op.Less(s, r, g)), mask(op.LessEqual(s, g, r), op.Less(s, g, b)),
		mask(op.LessEqual(s, b, r), op.LessEqual(s, b, g)),
	}
	dys := op.Unpack(s, c.DY(0), 3, op.UnpackAxis(-1))
	high, low := op.Maximum(s, op.Maximum(s, r, g), b), op.Minimum(s, op.Minimum(s, r, g), b)
	six := op.Mul(s, number(s, x, 6), op.Sub(s, high, low))
	// difference of the channels after and before the largest, in cyclic order
	ahead := op.AddN(s, []op.Output{
		op.Mul(s, largest[0], op.Sub(s, g, b)), op.Mul(s, largest[1], op.Sub(s, b, r)), op.Mul(s, largest[2], op.Sub(s, r, g)),
	})
	// relative to the difference of the largest and the smallest channel
	relative := op.Mul(s, number(s, x, 6), op.DivNoNan(s, ahead, six))
	dx := make([]op.Output, 3)
	for i := range dx {
		isLargest, isSmallest := largest[i], smallest[i]
		turn := op.Sub(s, largest[(i+2)%3], largest[(i+1)%3])
		dHue := op.DivNoNan(s, op.Sub(s, turn, op.Mul(s, relative, op.Sub(s, isLargest, isSmallest))), six)
		dSaturation := op.Sub(s, op.Mul(s, isLargest, op.DivNoNan(s, op.DivNoNan(s, low, high), high)), op.DivNoNan(s, isSmallest, high))
		dSaturation = op.Mul(s, dSaturation, op.Cast(s, op.Greater(s, nth(channels, i), number(s, x, 0)), x.DType()))
		dx[i] = op.AddN(s, []op.Output{
			op.Mul(s, nth(dys, 0), dHue), op.Mul(s, nth(dys, 1), dSaturation), op.Mul(s, nth(dys, 2), isLargest),
		})
	}
	return List(op.Pack(s, dx, op.PackAxis(-1)))
}
