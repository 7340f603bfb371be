package nn

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "CTCLoss",
			Doc:  "Computes the connectionist temporal classification loss (Graves, 2006) of each sequence and its gradient with respect to the inputs, which are logits of shape [steps, batch, classes]. The last class is the blank.",
			In:   []string{"inputs: T", "labels_indices: int64", "labels_values: int32", "sequence_length: int32"},
			Out:  []string{"loss: T", "gradient: T"},
			Attrs: []string{"preprocess_collapse_repeated: bool = false", "ctc_merge_repeated: bool = true",
				"ignore_longer_outputs_than_inputs: bool = false", "T: {float32, float64} = float32"},
			Shape: ctcLossShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float32: newCTCLoss[float32], tensor.Float64: newCTCLoss[float64]}),
	})
}

func ctcLossShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 3, 2, 1, 1); err != nil {
		return err
	}
	if _, err := opdef.MergeDims(c.In[1].Dim(0), c.In[2].Dim(0)); err != nil {
		return err
	}
	batch, err := opdef.MergeDims(c.In[0].Dim(1), c.In[3].Dim(0))
	if err != nil {
		return err
	}
	in, err := opdef.WithRank(c.In[0], 3)
	c.Out[0], c.Out[1] = shapefn.Of(batch), shapefn.Replace(in, 1, batch)
	return err
}

type ctcLoss struct {
	collapse, merge, ignoreLonger bool
}

func newCTCLoss[T float32 | float64](c *kernel.Construction) (kernel.Kernel, error) {
	l := ctcLoss{c.Attrs.Bool("preprocess_collapse_repeated"), c.Attrs.Bool("ctc_merge_repeated"), c.Attrs.Bool("ignore_longer_outputs_than_inputs")}
	return kernel.Func(func(ctx *kernel.Context) error {
		in, lengths := ctx.Input(0), ctx.Input(3)
		labels, err := l.labels(ctx)
		if err != nil {
			return err
		}
		loss, err := ctx.AllocateZeros(0, lengths.Shape())
		if err != nil {
			return err
		}
		grad, err := ctx.AllocateZeros(1, in.Shape())
		if err != nil {
			return err
		}
		steps := tensor.Values[int32](lengths)
		for b, n := range steps {
			if n < 0 {
				return status.InvalidArgumentf("seq_len(%d) < 0", b)
			}
		}
		blanked := membudget.Make[[]int](len(labels))
		for b := range labels {
			if blanked[b], err = l.blanked(labels[b], b, in.Dim(2), int(steps[b])); err != nil {
				return err
			}
		}
		x, z, dx := tensor.Values[T](in), tensor.Values[T](loss), tensor.Values[T](grad)
		width := in.Dim(1) * in.Dim(2)
		return parallel.Each(ctx.Context(), len(labels), 1, func(b int) error {
			if steps[b] == 0 || l.ignoreLonger && len(labels[b]) > int(steps[b]) {
				return nil
			}
			s := &ctcSequence{ctx.Context(), blanked[b], in.Dim(2), int(steps[b]), l.merge, nil}
			row := b * s.classes
			s.softmax(func(t, class int) float64 { return float64(x[t*width+row+class]) })
			for i, v := range s.probs {
				s.probs[i] = float64(T(v))
			}
			value, grads, err := s.loss()
			if err != nil {
				return err
			}
			z[b] = T(value)
			for i, v := range grads {
				dx[i/s.classes*width+row+i%s.classes] = T(v)
			}
			return nil
		})
	}), nil
}

// labels checks the inputs and returns the labels of each sequence.
func (l *ctcLoss) labels(ctx *kernel.Context) ([][]int32, error) {
	in, indices, values, lengths := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	switch {
	case in.Rank() != 3:
		return nil, status.InvalidArgumentf("inputs is not a 3-Tensor")
	case lengths.Rank() != 1:
		return nil, status.InvalidArgumentf("sequence_length is not a vector")
	case indices.Rank() != 2:
		return nil, status.InvalidArgumentf("labels_indices is not a matrix")
	case indices.Dim(1) <= 1:
		return nil, status.InvalidArgumentf("labels_indices second dimension must be >= 1. Received %d", indices.Dim(1))
	case values.Rank() != 1:
		return nil, status.InvalidArgumentf("labels_values is not a vector")
	case in.Dim(0) == 0:
		return nil, status.InvalidArgumentf("Max time or first dimension of input cannot be 0.")
	case in.Dim(2) == 0:
		return nil, status.InvalidArgumentf("inputs must have at least one class")
	case in.Dim(2) >= math.MaxInt32:
		return nil, status.InvalidArgumentf("num_classes cannot exceed max int")
	case in.Dim(1) != lengths.Dim(0):
		return nil, status.InvalidArgumentf("len(sequence_length) != batch_size.  len(sequence_length):  %d batch_size: %d", lengths.Dim(0), in.Dim(1))
	case indices.Dim(0) != values.Dim(0):
		return nil, status.InvalidArgumentf("labels_indices and labels_values must contain the same number of rows, but saw shapes: %v vs. %v",
			indices.Shape(), values.Shape())
	case in.Dim(1) == 0:
		return nil, status.InvalidArgumentf("batch_size must not be 0")
	case indices.Dim(1) != 2:
		return nil, status.InvalidArgumentf("Order length must be SparseTensor rank.")
	}
	if err := checkLabels(tensor.Values[int64](indices), in.Dim(1)); err != nil {
		return nil, err
	}
	labels := membudget.Make[[]int32](in.Dim(1))
	for i, v := range tensor.Values[int32](values) {
		b := tensor.Values[int64](indices)[2*i]
		labels[b] = membudget.Append(labels[b], v)
	}
	for b, n := range tensor.Values[int32](lengths) {
		if int(n) > in.Dim(0) {
			return nil, status.InvalidArgumentf("sequence_length(%d) <= %d", b, in.Dim(0))
		}
	}
	return labels, nil
}

// checkLabels checks that the label indices, pairs of sequence and position, are in order.
func checkLabels(indices []int64, batch int) error {
	width := int64(0)
	for i := 1; i < len(indices); i += 2 {
		width = max(width, indices[i]+1)
	}
	for i := 0; i+1 < len(indices); i += 2 {
		b, at := indices[i], indices[i+1]
		name := fmt.Sprintf("label SparseTensor is not valid: indices[%d] = [%d,%d]", i/2, b, at)
		if b < 0 || b >= int64(batch) || at < 0 || at >= width {
			return status.InvalidArgumentf("%s is out of bounds: need 0 <= index < [%d,%d]", name, batch, width)
		}
		if i == 0 {
			continue
		}
		switch before, atBefore := indices[i-2], indices[i-1]; {
		case b < before || b == before && at < atBefore:
			return status.InvalidArgumentf("%s is out of order. Many sparse ops require sorted indices.\n"+
				"    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n", name)
		case b == before && at == atBefore:
			return status.InvalidArgumentf("%s is repeated", name)
		}
	}
	return nil
}

// blanked returns the labels of sequence b with a blank before, between and after them.
func (l *ctcLoss) blanked(labels []int32, b, classes, steps int) ([]int, error) {
	if len(labels) == 0 {
		return nil, status.InvalidArgumentf("Labels length is zero in batch %d", b)
	}
	blank := classes - 1
	var kept []int32
	ended := false
	for i, label := range labels {
		switch {
		case i > 0 && l.collapse && label == labels[i-1]:
		case int(label) >= blank:
			ended = true
		case ended:
			return nil, status.InvalidArgumentf(
				"Saw a non-null label (index >= num_classes - 1) following a null label, batch: %d num_classes: %d labels: %s labels seen so far: %s",
				b, classes, joined(labels), joined(kept))
		default:
			kept = membudget.Append(kept, label)
		}
	}
	out := []int{blank}
	for _, label := range kept {
		if label < 0 {
			return nil, status.InvalidArgumentf("All labels must be nonnegative integers, batch: %d labels: %s", b, joined(kept))
		}
		out = membudget.AppendAll(out, int(label), blank)
	}
	if !l.ignoreLonger && len(labels) > steps {
		return nil, status.InvalidArgumentf("Not enough time for target transition sequence (required: %d, available: %d)%d"+
			"You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs", len(labels), steps, b)
	}
	return out, nil
}

// mostJoined is the number of labels that an error names.
const mostJoined = 1000

// joined formats labels. More than mostJoined are shortened.
func joined(labels []int32) string {
	some := labels[:min(len(labels), mostJoined)]
	text := strings.ReplaceAll(strings.Trim(fmt.Sprint(some), "[]"), " ", ",")
	if len(some) < len(labels) {
		text += ",..."
	}
	return text
}

// ctcSequence computes the loss of one sequence. A position u is an index into labels.
type ctcSequence struct {
	ctx            context.Context // of the step
	labels         []int           // with blanks
	classes, steps int
	merge          bool      // whether equal labels in successive steps count as one
	probs          []float64 // indexed by step and class
}

// softmax computes the probabilities from the logits.
func (s *ctcSequence) softmax(logit func(t, class int) float64) {
	s.probs = membudget.Make[float64](s.steps * s.classes)
	for t := range s.steps {
		row := s.probs[t*s.classes : (t+1)*s.classes]
		largest, sum := math.Inf(-1), 0.0
		for class := range row {
			largest = max(largest, logit(t, class))
		}
		for class := range row {
			row[class] = math.Exp(logit(t, class) - largest)
			sum += row[class]
		}
		for class := range row {
			row[class] /= sum
		}
	}
}

func (s *ctcSequence) blank() int { return s.classes - 1 }

// logProb returns the log probability of the label at position u in step t.
func (s *ctcSequence) logProb(t, u int) float64 { return math.Log(s.probs[t*s.classes+s.labels[u]]) }

// stays reports whether a path may stay at a position.
func (s *ctcSequence) stays(u int) bool { return s.merge || s.labels[u] == s.blank() }

// skips reports whether a path may advance by two positions, over a blank.
func (s *ctcSequence) skips(u int) bool {
	if u < 0 || u+2 >= len(s.labels) {
		return false
	}
	to := s.labels[u+2]
	return to != s.blank() && !(s.merge && to == s.labels[u])
}

// reachable returns the range of positions that a path from the first to the last position can have
// in step t.
func (s *ctcSequence) reachable(t int) (lo, hi int) {
	return max(0, len(s.labels)-2*(s.steps-t)), min(len(s.labels), 2*(t+1))
}

// table returns a matrix indexed by step and position.
func (s *ctcSequence) table() [][]float64 {
	out, all := membudget.Make[[]float64](s.steps), membudget.Make[float64](s.steps*len(s.labels))
	for i := range all {
		all[i] = math.Inf(-1)
	}
	for t := range out {
		out[t], all = all[:len(s.labels)], all[len(s.labels):]
	}
	return out
}

// forward returns the log probabilities of all paths up to and including each step and position.
func (s *ctcSequence) forward() ([][]float64, error) {
	a := s.table()
	for u := range min(2, len(s.labels)) {
		a[0][u] = s.logProb(0, u)
	}
	for t := 1; t < s.steps; t++ {
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		lo, hi := s.reachable(t)
		for u := lo; u < hi; u++ {
			sum := math.Inf(-1)
			if s.stays(u) {
				sum = a[t-1][u]
			}
			if u > 0 {
				sum = logAdd(sum, a[t-1][u-1])
			}
			if s.skips(u - 2) {
				sum = logAdd(sum, a[t-1][u-2])
			}
			a[t][u] = s.logProb(t, u) + sum
		}
	}
	return a, nil
}

// backward returns the log probabilities of all paths that follow each step and position, excluding
// it.
func (s *ctcSequence) backward() ([][]float64, error) {
	b := s.table()
	last := s.steps - 1
	for u := max(0, len(s.labels)-2); u < len(s.labels); u++ {
		b[last][u] = 0
	}
	for t := last - 1; t >= 0; t-- {
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		lo, hi := s.reachable(t)
		for u := lo; u < hi; u++ {
			sum := math.Inf(-1)
			if s.stays(u) {
				sum = b[t+1][u] + s.logProb(t+1, u)
			}
			if u+1 < len(s.labels) {
				sum = logAdd(sum, b[t+1][u+1]+s.logProb(t+1, u+1))
			}
			if s.skips(u) {
				sum = logAdd(sum, b[t+1][u+2]+s.logProb(t+1, u+2))
			}
			b[t][u] = sum
		}
	}
	return b, nil
}

// loss returns the loss and its gradient with respect to the logits.
func (s *ctcSequence) loss() (value float64, grads []float64, err error) {
	a, err := s.forward()
	if err != nil {
		return 0, nil, err
	}
	b, err := s.backward()
	if err != nil {
		return 0, nil, err
	}
	total := math.Inf(-1)
	for u := range s.labels {
		total = logAdd(total, a[0][u]+b[0][u])
	}
	if math.IsInf(total, -1) {
		return -total, s.probs, nil
	}
	sums := membudget.Make[float64](s.classes)
	for t := range s.steps {
		for class := range sums {
			sums[class] = math.Inf(-1)
		}
		for u, label := range s.labels {
			sums[label] = logAdd(sums[label], a[t][u]+b[t][u])
		}
		for class, sum := range sums {
			s.probs[t*s.classes+class] -= math.Exp(sum - total)
		}
	}
	return -total, s.probs, nil
}

// logAdd returns ln(eᵃ + eᵇ).
func logAdd(a, b float64) float64 {
	switch {
	case math.IsInf(a, -1):
		return b
	case math.IsInf(b, -1):
		return a
	}
	return max(a, b) + math.Log1p(math.Exp(-math.Abs(a-b)))
}
