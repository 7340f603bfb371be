package rnn

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "GatherTree",
		Doc: "Computes the full beams of a beam search from the ids and the parents of each step. Values after end_token, " +
			"and from max_sequence_lengths on, are end_token. From tf.contrib.seq2seq of TensorFlow 1.5 to 1.15.",
		In:  []string{"step_ids: T", "parent_ids: T", "max_sequence_lengths: int32", "end_token: T"},
		Out: []string{"beams: T"}, Attrs: []string{"T: {int32}"}, Shape: gatherTreeShape,
	}, func(*kernel.Construction) (kernel.Kernel, error) { return kernel.Func(gatherTree), nil })
}

func gatherTreeShape(c *opdef.ShapeContext) error {
	ids, err := opdef.WithRank(c.In[0], 3)
	if err != nil {
		return err
	}
	if ids, err = opdef.MergeShapes(ids, c.In[1]); err != nil {
		return err
	}
	lengths, err := opdef.WithRank(c.In[2], 1)
	if err != nil {
		return err
	}
	if _, err = opdef.WithRank(c.In[3], 0); err != nil {
		return err
	}
	if n, m := lengths.Dim(0), ids.Dim(1); n >= 0 && m >= 0 && n != m {
		return status.InvalidArgumentf("Dimensions must be equal, but are %d and %d", m, n)
	}
	c.Out[0] = ids
	return nil
}

func gatherTree(ctx *kernel.Context) error {
	ids, parents, lengths, end := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	switch {
	case ids.Rank() != 3:
		return status.InvalidArgumentf("step_ids must be a 3-tensor, saw shape: %v", ids.Shape())
	case lengths.Rank() != 1:
		return status.InvalidArgumentf("max_sequence_lengths must be a vector, saw shape: %v", lengths.Shape())
	case end.Rank() != 0:
		return status.InvalidArgumentf("end_token must be a scalar, saw shape: %v", end.Shape())
	case !ids.Shape().Equal(parents.Shape()):
		return status.InvalidArgumentf("step_ids.shape must match parent_ids.shape.  but shapes are: %v and %v", ids.Shape(), parents.Shape())
	case ids.Dim(1) != lengths.Dim(0):
		return status.InvalidArgumentf("batch size dimensions step_ids.shape[1] and max_sequence_lengths.shape[0] must match.  "+
			"but shapes are: %v and %v", ids.Shape(), lengths.Shape())
	}
	out, err := ctx.Allocate(0, ids.Shape())
	if err != nil {
		return err
	}
	t := beamTree{
		ids: tensor.Values[int32](ids), parents: tensor.Values[int32](parents), beams: tensor.Values[int32](out),
		batches: ids.Dim(1), width: ids.Dim(2), end: tensor.Value[int32](end),
	}
	if len(t.beams) == 0 {
		return nil // there is any number of beams without steps
	}
	for i := range t.beams {
		t.beams[i] = t.end
	}
	for batch, n := range tensor.Values[int32](lengths) {
		for beam := range t.width {
			if err := t.trace(batch, beam, min(int(n), ids.Dim(0))); err != nil {
				return err
			}
		}
	}
	return nil
}

// beamTree holds tensors of shape [time, batches, width].
type beamTree struct {
	ids, parents, beams []int32
	batches, width      int
	end                 int32
}

func (t *beamTree) at(time, batch, beam int) int { return (time*t.batches+batch)*t.width + beam }

// trace writes the beam that ends with an id of the last of n steps.
func (t *beamTree) trace(batch, beam, n int) error {
	from := beam
	for time := n - 1; time >= 0; time-- {
		if from < 0 || from >= t.width {
			return status.InvalidArgumentf("Saw invalid parent id %d at (batch, time, beam) == (%d, %d, %d)", from, batch, time, beam)
		}
		t.beams[t.at(time, batch, beam)] = t.ids[t.at(time, batch, from)]
		from = int(t.parents[t.at(time, batch, from)])
	}
	ended := false
	for time := range n {
		if i := t.at(time, batch, beam); ended {
			t.beams[i] = t.end
		} else {
			ended = t.beams[i] == t.end
		}
	}
	return nil
}
