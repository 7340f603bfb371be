package imageops

import (
	"fmt"
	"math"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Computes non-maximum suppression: selects boxes in descending order of score and drops those that overlap too much with a selected box."
	boxes := []string{"boxes: T", "scores: T", "max_output_size: int32"}
	typed := []string{"T: {float16, float32} = float32", "T_threshold: {float16, float32} = float32"}
	pad := "pad_to_max_output_size: bool = false"
	indices := []string{"selected_indices: int32"}
	thresholds := append(boxes[:3:3], "iou_threshold: T_threshold", "score_threshold: T_threshold")
	for _, def := range []opdef.Def{
		{Name: "NonMaxSuppression", In: []string{"boxes: float32", "scores: float32", "max_output_size: int32"}, Out: indices, Attrs: []string{"iou_threshold: float = 0.5"}},
		{Name: "NonMaxSuppressionV2", In: append(boxes[:3:3], "iou_threshold: T_threshold"), Out: indices, Attrs: typed},
		{Name: "NonMaxSuppressionV3", In: thresholds, Out: indices, Attrs: typed},
		{Name: "NonMaxSuppressionV4", In: thresholds, Out: append(indices[:1:1], "valid_outputs: int32"), Attrs: append(typed[:2:2], pad)},
		{
			Name: "NonMaxSuppressionV5", In: append(boxes[:3:3], "iou_threshold: T", "score_threshold: T", "soft_nms_sigma: T"),
			Out: append(indices[:1:1], "selected_scores: T", "valid_outputs: int32"), Attrs: []string{typed[0], pad},
		},
		{
			Name: "NonMaxSuppressionWithOverlaps", Out: indices,
			In: []string{"overlaps: float32", "scores: float32", "max_output_size: int32", "overlap_threshold: float32", "score_threshold: float32"},
		},
	} {
		def.Doc, def.Shape = doc, suppressionShape
		kernel.RegisterNew(def, newSuppression)
	}
}

func suppressionShape(c *opdef.ShapeContext) error {
	boxes, err := opdef.WithRank(c.In[0], 2)
	if err != nil {
		return err
	}
	scores, err := opdef.WithRank(c.In[1], 1)
	if err != nil {
		return err
	}
	for _, in := range c.In[2:] {
		if _, err := opdef.WithRank(in, 0); err != nil {
			return err
		}
	}
	if _, err := opdef.MergeDims(boxes.Dim(0), scores.Dim(0)); err != nil {
		return err
	}
	if c.Op.Name == "NonMaxSuppressionWithOverlaps" {
		_, err = opdef.MergeDims(boxes.Dim(0), boxes.Dim(1))
	} else {
		err = checkDim(boxes, 1, 4)
	}
	if err != nil {
		return err
	}
	n := shapefn.Unknown
	if c.Attrs.Bool("pad_to_max_output_size") {
		if n, err = shapefn.Dim(c, 2); err != nil {
			return err
		}
	}
	for i := range c.Out {
		c.Out[i] = shapefn.Of(n)
	}
	if len(c.Out) > 1 {
		c.Out[len(c.Out)-1] = shapefn.Of()
	}
	return nil
}

// newSuppression creates the kernel of every version. Later versions have more inputs and outputs.
func newSuppression(c *kernel.Construction) (kernel.Kernel, error) {
	overlaps, rounded := c.Op.Name == "NonMaxSuppressionWithOverlaps", asFloat
	if c.Inputs[0] == tensor.Float16 {
		rounded = asHalf
	}
	attr, pad, v3 := c.Attrs.Float("iou_threshold"), c.Attrs.Bool("pad_to_max_output_size"), c.Op.Name == "NonMaxSuppressionV3"
	return kernel.Func(func(ctx *kernel.Context) error {
		s := &suppression{threshold: attr, least: -math.MaxFloat32, rounded: rounded}
		if c.Inputs[0] == tensor.Float16 {
			s.least = -65504
		}
		if err := s.readScalars(ctx, overlaps, v3); err != nil {
			return err
		}
		if err := s.readBoxes(ctx, overlaps); err != nil {
			return err
		}
		if s.limit < 0 {
			return status.InvalidArgumentf("output size must be non-negative")
		}
		return s.output(ctx, pad)
	}), nil
}

// readScalars reads the inputs from the third on.
func (s *suppression) readScalars(ctx *kernel.Context, overlaps, v3 bool) error {
	names := []string{"max_output_size", "iou_threshold", "score_threshold", "soft_nms_sigma"}
	if overlaps {
		names[1] = "overlap_threshold"
	}
	to := []*float32{nil, &s.threshold, &s.least, &s.sigma}
	for i := 2; i < max(ctx.NumInputs(), 4); i++ {
		if i < ctx.NumInputs() {
			in := ctx.Input(i)
			if in.Rank() != 0 {
				text := ""
				if v3 && i < 4 {
					text = shapeRankText(in, 0)
				}
				return status.InvalidArgumentf("%s must be 0-D, got shape %v%s", names[i-2], in.Shape(), text)
			}
			if i == 2 {
				s.limit = int(tensor.Value[int32](in))
			} else {
				*to[i-2] = s.rounded(pixels(in)[0])
			}
		}
		switch {
		case i == 3 && !overlaps && !(s.threshold >= 0 && s.threshold <= 1):
			return status.InvalidArgumentf("iou_threshold must be in [0, 1]")
		case i == 5 && !(s.sigma >= 0):
			return status.InvalidArgumentf("soft_nms_sigma_val must be >= 0")
		}
	}
	return nil
}

// readBoxes reads the first two inputs: boxes or their pairwise overlaps, and scores.
func (s *suppression) readBoxes(ctx *kernel.Context, overlaps bool) error {
	boxes, scores := ctx.Input(0), ctx.Input(1)
	switch {
	case overlaps && boxes.Rank() != 2:
		return status.InvalidArgumentf("overlaps must be 2-D%v", boxes.Shape())
	case overlaps && boxes.Dim(0) != boxes.Dim(1):
		return status.InvalidArgumentf("overlaps must be square%v", boxes.Shape())
	case boxes.Rank() != 2:
		return status.InvalidArgumentf("boxes must be 2-D%v%s", boxes.Shape(), shapeRankText(boxes, 2))
	case !overlaps && boxes.Dim(1) != 4:
		return status.InvalidArgumentf("boxes must have 4 columns (Dimension must be 4 but is %d)", boxes.Dim(1))
	case scores.Rank() != 1:
		return status.InvalidArgumentf("scores must be 1-D%v%s", scores.Shape(), shapeRankText(scores, 1))
	case scores.Dim(0) != boxes.Dim(0):
		return status.InvalidArgumentf("scores has incompatible shape (Dimensions must be equal, but are %d and %d)",
			boxes.Dim(0), scores.Dim(0))
	}
	b, n := pixels(boxes), boxes.Dim(0)
	s.scores = pixels(scores)
	s.similarity = func(i, j int) float32 { return overlap(b[4*i:4*i+4], b[4*j:4*j+4]) }
	if overlaps {
		s.similarity = func(i, j int) float32 { return b[i*n+j] }
	}
	return nil
}

func shapeRankText(t *tensor.Tensor, want int) string {
	return fmt.Sprintf(" (Shape must be rank %d but is rank %d)", want, t.Rank())
}

func (s *suppression) output(ctx *kernel.Context, pad bool) error {
	boxes, scores, err := s.run(ctx.Context())
	if err != nil {
		return err
	}
	n := len(boxes)
	if pad {
		n = s.limit
	}
	out, err := ctx.AllocateZeros(0, tensor.Shape{int64(n)})
	if err != nil {
		return err
	}
	copy(tensor.Values[int32](out), boxes)
	if ctx.NumOutputs() == 3 {
		if out, err = ctx.AllocateZeros(1, tensor.Shape{int64(n)}); err != nil {
			return err
		}
		all := scratch(out)
		copy(all, scores)
		store(out, all)
	}
	if last := ctx.NumOutputs() - 1; last > 0 {
		ctx.SetOutput(last, tensor.Scalar(int32(len(boxes))))
	}
	return nil
}
