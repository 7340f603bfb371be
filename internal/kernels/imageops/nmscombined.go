package imageops

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "CombinedNonMaxSuppression", Doc: "Computes non-maximum suppression for each class separately and returns the boxes with the highest scores of all classes.",
		In: []string{
			"boxes: float32", "scores: float32", "max_output_size_per_class: int32", "max_total_size: int32",
			"iou_threshold: float32", "score_threshold: float32",
		},
		Out:   []string{"nmsed_boxes: float32", "nmsed_scores: float32", "nmsed_classes: float32", "valid_detections: int32"},
		Attrs: []string{"pad_per_class: bool = false", "clip_boxes: bool = true"}, Shape: combinedShape,
	}, newCombined)
}

func combinedShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 4, 3, 0, 0, 0, 0); err != nil {
		return err
	}
	boxes, scores := c.In[0], c.In[1]
	for i := range 2 {
		if _, err := opdef.MergeDims(boxes.Dim(i), scores.Dim(i)); err != nil {
			return err
		}
	}
	if err := checkDim(boxes, 3, 4); err != nil {
		return err
	}
	d, classes := boxes.Dim(2), scores.Dim(2)
	if d >= 0 && classes >= 0 && d != 1 && d != classes {
		return status.InvalidArgumentf("third dimension of boxes must be either 1 or equal to the third dimension of scores")
	}
	n, err := shapefn.Dim(c, 3)
	if err != nil {
		return err
	}
	if n == 0 {
		return status.InvalidArgumentf("max_total_size should be > 0 ")
	}
	perClass, err := shapefn.Dim(c, 2)
	if err != nil {
		return err
	}
	if c.Attrs.Bool("pad_per_class") {
		if perClass == 0 {
			return status.InvalidArgumentf("max_output_size_per_class must be > 0 if pad_per_class is set to true ")
		}
		if perClass < 0 || classes < 0 {
			n = shapefn.Unknown
		} else {
			n = min(n, perClass*classes)
		}
	}
	batch := boxes.Dim(0)
	c.Out[0], c.Out[1], c.Out[2], c.Out[3] = shapefn.Of(batch, n, 4), shapefn.Of(batch, n), shapefn.Of(batch, n), shapefn.Of(batch)
	return nil
}

// combined holds the inputs of CombinedNonMaxSuppression.
type combined struct {
	perClass, total      int
	threshold, least     float32
	n, classes, variants int // n boxes per image; variants is 1 or classes
}

func (c *combined) read(ctx *kernel.Context) error {
	boxes, scores := ctx.Input(0), ctx.Input(1)
	if boxes.Rank() == 0 || scores.Rank() == 0 || boxes.Dim(0) != scores.Dim(0) {
		return status.InvalidArgumentf("boxes and scores must have same batch size")
	}
	for i, name := range []string{"max_size_per_class", "max_total_size", "iou_threshold", "score_threshold"} {
		in := ctx.Input(2 + i)
		if in.Rank() != 0 {
			return status.InvalidArgumentf("%s must be 0-D, got shape %v", name, in.Shape())
		}
		v := pixels(in)[0]
		switch i {
		case 0:
			if c.perClass = int(tensor.Value[int32](in)); v <= 0 {
				return status.InvalidArgumentf("max_size_per_class must be positive")
			}
		case 1:
			if c.total = int(tensor.Value[int32](in)); v <= 0 {
				return status.InvalidArgumentf("max_total_size must be > 0")
			}
		case 2:
			c.threshold = v
		case 3:
			c.least = v
		}
	}
	if !(c.threshold >= 0 && c.threshold <= 1) {
		return status.InvalidArgumentf("iou_threshold must be in [0, 1]")
	}
	switch {
	case boxes.Rank() != 4:
		return status.InvalidArgumentf("boxes must be 4-D%v", boxes.Shape())
	case scores.Rank() != 3:
		return status.InvalidArgumentf("scores must be 3-D%v", scores.Shape())
	case boxes.Dim(2) != 1 && boxes.Dim(2) != scores.Dim(2):
		return status.InvalidArgumentf("third dimension of boxes must be either 1 or num classes")
	case boxes.Dim(3) != 4:
		return status.InvalidArgumentf("boxes must have 4 columns")
	case scores.Dim(1) != boxes.Dim(1):
		return status.InvalidArgumentf("scores has incompatible shape")
	}
	c.n, c.classes, c.variants = boxes.Dim(1), scores.Dim(2), boxes.Dim(2)
	return nil
}

// detection is a selected box.
type detection struct {
	score float32
	class int
	box   []float32
}

// detect returns the selected boxes of an image in descending order of score. It fails if ctx ends.
func (c *combined) detect(ctx context.Context, boxes, scores []float32) ([]detection, error) {
	if c.n == 0 {
		return nil, nil // scores without boxes have any number of classes
	}
	var found []detection
	for class := range c.classes {
		at := func(i int) []float32 { return boxes[(i*c.variants+min(class, c.variants-1))*4:][:4] }
		s := &suppression{
			limit: c.perClass, threshold: c.threshold, least: c.least, rounded: asFloat,
			similarity: func(i, j int) float32 {
				similar := overlap(at(i), at(j))
				if math.IsNaN(float64(similar)) {
					return 0 // NaN prunes no box
				}
				return similar
			},
		}
		for i := range c.n {
			s.scores = membudget.Append(s.scores, scores[i*c.classes+class])
		}
		selected, values, err := s.run(ctx)
		if err != nil {
			return nil, err
		}
		for k, i := range selected {
			found = membudget.Append(found, detection{values[k], class, at(int(i))})
		}
	}
	slices.SortStableFunc(found, func(a, b detection) int { return cmp.Compare(b.score, a.score) })
	return found, nil
}

func newCombined(c *kernel.Construction) (kernel.Kernel, error) {
	pad, clip := c.Attrs.Bool("pad_per_class"), c.Attrs.Bool("clip_boxes")
	return kernel.Func(func(ctx *kernel.Context) error {
		c := &combined{}
		if err := c.read(ctx); err != nil {
			return err
		}
		size := c.total
		if pad {
			size = min(size, c.perClass*c.classes)
		}
		batch := int64(ctx.Input(0).Dim(0))
		var outs [4]*tensor.Tensor
		for i, shape := range []tensor.Shape{{batch, int64(size), 4}, {batch, int64(size)}, {batch, int64(size)}, {batch}} {
			var err error
			if outs[i], err = ctx.AllocateZeros(i, shape); err != nil {
				return err
			}
		}
		boxes, scores := tensor.Values[float32](ctx.Input(0)), tensor.Values[float32](ctx.Input(1))
		for b := range int(batch) {
			found, err := c.detect(ctx.Context(), boxes[b*c.n*c.variants*4:], scores[b*c.n*c.classes:])
			if err != nil {
				return err
			}
			found = found[:min(len(found), size)]
			tensor.Values[int32](outs[3])[b] = int32(len(found))
			for k, d := range found {
				at := b*size + k
				tensor.Values[float32](outs[1])[at] = d.score
				tensor.Values[float32](outs[2])[at] = float32(d.class)
				for j, v := range d.box {
					if clip {
						v = max(min(v, 1), 0)
					}
					tensor.Values[float32](outs[0])[at*4+j] = v
				}
			}
		}
		return nil
	}), nil
}
