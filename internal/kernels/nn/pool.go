package nn

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-ml/weft/internal/numeric/channelwise"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// pooling holds the attributes of a pooling operation.
type pooling struct {
	window
	ksize              []int64 // indexed by spatial dimension
	depth, depthStride int64   // window and stride along the channels
}

// newPooling returns a pooling with the given window sizes and strides. strideField is the name of
// the strides in errors.
func newPooling(a axes, ksize, strides []int64, padding string, explicit []int64, strideField string) (pooling, error) {
	p := pooling{window: window{axes: a, padding: padding, explicit: explicit}}
	rank := a.rank()
	if len(ksize) != rank {
		return p, status.InvalidArgumentf("Sliding window ksize field must specify %d dimensions", rank)
	}
	if len(strides) != rank {
		return p, status.InvalidArgumentf("Sliding window %s field must specify %d dimensions", strideField, rank)
	}
	if ksize[0] != 1 || strides[0] != 1 {
		return p, status.Unimplementedf("Pooling is not yet supported on the batch dimension.")
	}
	p.ksize, p.stride = a.pick(ksize), a.pick(strides)
	p.depth, p.depthStride = ksize[a.channel()], strides[a.channel()]
	p.dilation = []int64{1, 1, 1}[:a.spatial]
	return p, nil
}

// poolingOf reads the attributes of a pooling operation.
func poolingOf(attrs opdef.Attrs, spatial int, strideField string) (pooling, error) {
	return newPooling(axesOf(attrs, spatial), attrs.Ints("ksize"), attrs.Ints("strides"), attrs.String("padding"),
		attrs.Ints("explicit_paddings"), strideField)
}

// checkSizes checks that window sizes are positive. describe returns the error message for a size
// that is not.
func checkSizes(ksize []int64, describe func(bad int64) string) error {
	for _, k := range ksize {
		if k <= 0 {
			return status.InvalidArgumentf("%s", describe(k))
		}
	}
	return nil
}

// checkWindow is checkSizes with the message of the kernels that check window sizes first.
func checkWindow(ksize []int64) error {
	return checkSizes(ksize, func(int64) string {
		return "Sliding window ksize must be positive. The specified or inferred ksize is: " + joinInts(ksize)
	})
}

// joinInts formats the sizes of a window. An input may have any number of them: long lists
// are shortened.
func joinInts(v []int64) string {
	const most = 100
	text := strings.ReplaceAll(strings.Trim(fmt.Sprint(v[:min(len(v), most)]), "[]"), " ", ",")
	if len(v) > most {
		text += ",..."
	}
	return text
}

// grid describes the pooling of an input of known size: its windows along planes, rows and columns.
type grid struct {
	batch, channels int
	spans           [3]span
	// Windows may be as large as the input, so a pooling ends with its step; nil for none.
	step context.Context //nolint:containedctx // a grid is made for one call of a kernel
}

// one is the span of a missing dimension.
var one = span{in: 1, filter: 1, out: 1, stride: 1, dilation: 1}

// size checks the shape of an input and returns the grid of its pooling.
func (p *pooling) size(in tensor.Shape) (grid, error) {
	g := grid{spans: [3]span{one, one, one}}
	if len(in) != p.rank() {
		if p.spatial == 2 {
			return g, status.InvalidArgumentf("tensor_in_shape must have 2 spatial dimensions. %d %d", len(in), p.formatNumber())
		}
		return g, status.InvalidArgumentf("tensor_in must be 5-dimensional")
	}
	if p.depth != 1 && (p.ksize[0] != 1 || p.ksize[1] != 1) {
		return g, status.Unimplementedf("MaxPooling supports exactly one of pooling across depth or pooling across width/height.")
	}
	if p.padding == paddingExplicit {
		if err := p.checkPoolPadding(); err != nil {
			return g, err
		}
	}
	g.batch, g.channels = int(in[0]), int(in[p.channel()])
	if err := p.checkDepth(int64(g.channels)); err != nil {
		return g, err
	}
	for i := range p.spatial {
		s, err := p.span(i, in[p.space(i)], p.ksize[i])
		if err != nil {
			return g, err
		}
		g.spans[3-p.spatial+i] = s
	}
	return g, nil
}

// checkDepth checks that windows along the channels are adjacent and cover all channels.
func (p *pooling) checkDepth(channels int64) error {
	switch {
	case p.depth <= 1:
		return nil
	case channels%p.depth != 0:
		return status.Unimplementedf("Depthwise max pooling requires the depth window to evenly divide the input depth")
	case p.depthStride != p.depth:
		return status.Unimplementedf("Depthwise max pooling requires the depth window to equal the depth stride")
	}
	return nil
}

// center shifts the windows when the strides leave gaps between them, such that equal numbers of
// elements are skipped before the first window and after the last one. TensorFlow does this for
// volumes, but not for images and not in gradients.
func (g *grid) center() {
	for i := range g.spans {
		s := &g.spans[i]
		if over := s.in - (s.out-1)*s.stride - s.filter; over > 0 {
			s.before = -(over / 2)
		}
	}
}

// formatNumber returns TensorFlow's number of the data format.
func (a axes) formatNumber() int {
	if a.first {
		return 1
	}
	return 0
}

// checkPoolPadding checks that explicit padding is smaller than the window.
func (p *pooling) checkPoolPadding() error {
	if err := p.checkPadding(); err != nil {
		return err
	}
	for i, side := range []string{"Top", "Bottom", "Left", "Right"} {
		pad, size := p.explicit[2*p.space(i/2)+i%2], p.ksize[i/2]
		if pad >= size {
			return status.InvalidArgumentf("%s padding %d needs to be smaller than the window size %d", side, pad, size)
		}
	}
	return nil
}

// shapeOf returns the shape of the output.
func (p *pooling) shapeOf(g *grid) tensor.Shape {
	out := membudget.Make[int64](p.spatial)
	for i := range out {
		out[i] = int64(g.spans[3-p.spatial+i].out)
	}
	return p.shape(int64(g.batch), out, int64(g.channels))
}

// pooling returns the description of the grid for the vector code.
func (g *grid) pooling() *channelwise.Pooling {
	p := &channelwise.Pooling{Batch: g.batch, Channels: g.channels, Step: g.step}
	for i, s := range g.spans {
		p.Spans[i] = s.motion()
	}
	return p
}

func (g *grid) inPixels() int  { return g.spans[0].in * g.spans[1].in * g.spans[2].in }
func (g *grid) outPixels() int { return g.spans[0].out * g.spans[1].out * g.spans[2].out }

// region is the part of the input that a window covers: ranges of planes, rows and columns.
type region struct{ plane, row, col [2]int }

func (r *region) count() int {
	return (r.plane[1] - r.plane[0]) * (r.row[1] - r.row[0]) * (r.col[1] - r.col[0])
}

// lines returns the number of rows of windows in the whole batch.
func (g *grid) lines() int { return g.batch * g.spans[0].out * g.spans[1].out }

// perBlock returns the number of lines in a block of a parallel loop.
func (g *grid) perBlock() int {
	work := g.spans[2].out * g.channels * g.spans[0].filter * g.spans[1].filter * g.spans[2].filter
	return max(1, sumGrain/max(work, 1))
}

// windows calls visit for each window in lines lo to hi. visit receives the number of the output
// pixel, the number of the image, and the region of the image that the window covers.
func (g *grid) windows(lo, hi int, visit func(out, image int, r *region)) {
	var r region
	bounds := func(s *span, o int) [2]int {
		from, to, at := s.clip(o)
		return [2]int{at, at + to - from}
	}
	progress := stepctx.Progress{Context: g.step, Each: 8}
	for line := lo; line < hi; line++ {
		row, rest := line%g.spans[1].out, line/g.spans[1].out
		plane, image := rest%g.spans[0].out, rest/g.spans[0].out
		r.plane, r.row = bounds(&g.spans[0], plane), bounds(&g.spans[1], row)
		for col := range g.spans[2].out {
			r.col = bounds(&g.spans[2], col)
			if g.step != nil && progress.Pass(r.count()*g.channels) != nil {
				return
			}
			visit(line*g.spans[2].out+col, image, &r)
		}
	}
}

// pixels calls visit with the number, in the whole input, of each pixel of a region of an image.
func (g *grid) pixels(image int, r *region, visit func(in int)) {
	for p := r.plane[0]; p < r.plane[1]; p++ {
		for y := r.row[0]; y < r.row[1]; y++ {
			at := ((image*g.spans[0].in+p)*g.spans[1].in + y) * g.spans[2].in
			for x := r.col[0]; x < r.col[1]; x++ {
				visit(at + x)
			}
		}
	}
}

// byLine calls visit for all windows, on several cores.
func (g *grid) byLine(visit func(out, image int, r *region)) {
	parallel.For(g.lines(), g.perBlock(), func(lo, hi int) { g.windows(lo, hi, visit) })
}

// byImage calls visit for all windows, on one core per image.
func (g *grid) byImage(visit func(out, image int, r *region)) {
	lines := g.spans[0].out * g.spans[1].out
	parallel.For(g.batch, max(1, g.perBlock()/max(lines, 1)), func(lo, hi int) { g.windows(lo*lines, hi*lines, visit) })
}
