package cases

import "github.com/weft-ml/weft/internal/gpu/driver"

// Axis is the structure of the same name in image.cl.
type Axis struct {
	In, Out int32
	Scale   float32
	Centers int32
}

// Struct returns the argument of a kernel.
func (a Axis) Struct() driver.Struct { return driver.StructOf(a) }

// resizings are pairs of rows and columns: larger, smaller and equal, with and without centers.
var resizings = map[string][2]Axis{
	"5 x 4 to 9 x 13":         {{5, 9, 5. / 9, 0}, {4, 13, 4. / 13, 0}},
	"centers, 9 x 7 to 4 x 9": {{9, 4, 9. / 4, 1}, {7, 9, 7. / 9, 1}},
	"corners, 5 x 6 to 9 x 3": {{5, 9, 4. / 8, 0}, {6, 3, 5. / 2, 0}},
	"1 x 31 to 3 x 2":         {{1, 3, 1. / 3, 1}, {31, 2, 31. / 2, 1}},
	"2 x 1 to 37 x 1":         {{2, 37, 2. / 37, 1}, {1, 1, 1, 0}},
}

func init() {
	const images, channels = 2, 3
	each := func(f func(what string, ay, ax Axis, ins, outs int64)) {
		for _, what := range []string{"5 x 4 to 9 x 13", "centers, 9 x 7 to 4 x 9", "corners, 5 x 6 to 9 x 3", "1 x 31 to 3 x 2", "2 x 1 to 37 x 1"} {
			a := resizings[what]
			f(what, a[0], a[1], images*channels*int64(a[0].In)*int64(a[1].In), images*channels*int64(a[0].Out)*int64(a[1].Out))
		}
	}
	makers["BILINEAR"] = func(m *maker) {
		each(func(what string, ay, ax Axis, ins, outs int64) {
			if m.is("_grad") {
				c := m.add(what, ins, 1, out(m.t(0), ins), m.positive("f32", outs), ins, int32(channels), ay.Struct(), ax.Struct())
				c.Rel, c.Abs = 4*sumTolerance(m.t(0)), 1e-6
				return
			}
			m.add(what, outs, 1, out("f32", outs), m.normal(m.t(0), ins), outs, int32(channels), ay.Struct(), ax.Struct()).Abs = 1e-6
		})
	}
	makers["NEAREST"] = func(m *maker) {
		each(func(what string, ay, ax Axis, ins, outs int64) {
			for corners := range int32(2) {
				m.add(what+pick(corners == 1, ", rounded", ""), outs, 0, out(m.t(0), outs), m.random(m.t(0), ins), outs, int32(channels), corners, ay.Struct(), ax.Struct())
			}
		})
	}
	makers["NEARESTGRAD"] = func(m *maker) {
		each(func(what string, ay, ax Axis, ins, outs int64) {
			for corners := range int32(2) {
				c := m.add(what+pick(corners == 1, ", rounded", ""), ins, 1, out(m.t(0), ins), m.positive(m.t(0), outs), ins, int32(channels), corners, ay.Struct(), ax.Struct())
				c.Rel = sumTolerance(m.t(0))
			}
		})
	}
}
