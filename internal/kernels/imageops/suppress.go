package imageops

import (
	"container/heap"
	"context"
	"math"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// suppression selects boxes in descending order of score. It skips boxes that are too similar to a
// selected one. If sigma is above 0, it lowers their scores instead (Bodla et al., "Soft-NMS",
// 2017).
type suppression struct {
	scores     []float32
	similarity func(i, j int) float32
	limit      int // maximum number of boxes to select
	threshold  float32
	least      float32 // scores must be greater
	sigma      float32
	// rounded rounds to the precision of the computation.
	rounded func(float32) float32
}

// candidate is a box that may still be selected. Its score accounts for the first seen of the
// selected boxes.
type candidate struct {
	box, seen int
	score     float32
}

// candidates is a heap with the best score on top. Equal scores are ordered by box.
type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(v any)   { *c = append(*c, v.(candidate)) }

func (c candidates) Less(i, j int) bool {
	return c[i].score > c[j].score || c[i].score == c[j].score && c[i].box < c[j].box
}

func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// run returns the selected boxes and their scores. It fails if ctx ends.
func (s *suppression) run(ctx context.Context) (boxes []int32, scores []float32, err error) {
	var queue candidates
	for i, score := range s.scores {
		if score > s.least {
			queue = membudget.Append(queue, candidate{box: i, score: score})
		}
	}
	heap.Init(&queue)
	for len(boxes) < s.limit && len(queue) > 0 {
		if ctx.Err() != nil {
			return nil, nil, status.FromContext(ctx, "selecting boxes")
		}
		c := heap.Pop(&queue).(candidate)
		before := c.score
		if !s.lower(&c, boxes) {
			continue
		}
		switch {
		case c.score == before:
			boxes, scores = membudget.Append(boxes, int32(c.box)), membudget.Append(scores, c.score)
		case c.score > s.least:
			heap.Push(&queue, c)
		}
	}
	return boxes, scores, nil
}

// lower lowers the score of a candidate for the selected boxes that it does not account for yet. It
// reports false if the candidate is too similar to one of them.
func (s *suppression) lower(c *candidate, selected []int32) bool {
	for j := len(selected) - 1; j >= c.seen; j-- {
		similar := s.rounded(s.similarity(c.box, int(selected[j])))
		if s.sigma <= 0 {
			if similar > s.threshold {
				return false
			}
			if math.IsNaN(float64(similar)) { // counts as above the threshold
				if c.score = s.rounded(c.score * 0); c.score <= s.least {
					break
				}
			}
			continue
		}
		scale := s.rounded(-0.5 / s.sigma)
		exponent := s.rounded(s.rounded(scale*similar) * similar)
		c.score = s.rounded(c.score * s.rounded(float32(math.Exp(float64(exponent)))))
		if c.score <= s.least {
			break
		}
	}
	c.seen = len(selected)
	return true
}

// overlap returns the intersection over union of two boxes. A box has two opposite corners, y and x
// each.
func overlap(a, b []float32) float32 {
	top, bottom := minOf(a[0], a[2]), maxOf(a[0], a[2])
	left, right := minOf(a[1], a[3]), maxOf(a[1], a[3])
	top2, bottom2 := minOf(b[0], b[2]), maxOf(b[0], b[2])
	left2, right2 := minOf(b[1], b[3]), maxOf(b[1], b[3])
	area, area2 := (bottom-top)*(right-left), (bottom2-top2)*(right2-left2)
	if area <= 0 || area2 <= 0 {
		return 0
	}
	both := maxOf(minOf(bottom, bottom2)-maxOf(top, top2), 0) * maxOf(minOf(right, right2)-maxOf(left, left2), 0)
	return both / (area + area2 - both)
}

// minOf and maxOf behave like std::min and std::max: if an argument is NaN, they return the first
// one.
func minOf(a, b float32) float32 {
	if b < a {
		return b
	}
	return a
}

func maxOf(a, b float32) float32 {
	if a < b {
		return b
	}
	return a
}

func asHalf(v float32) float32  { return tensor.Float16Of(v).Float32() }
func asFloat(v float32) float32 { return v }
