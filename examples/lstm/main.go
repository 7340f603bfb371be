// Command lstm trains a recurrent network of long short-term memory cells to continue a text letter
// by letter, and prints its output. The network is unrolled: the graph has a copy of the cell for
// each letter of a window.
//
//	go run ./examples/lstm                                   # in this process
//	go run ./examples/lstm --target=grpc://localhost:2222    # on a server
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local" // for the target "local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// text is the training text, which is repeated.
const text = "the warp runs along the loom and the weft runs across it. "

type config struct {
	target        string
	units, window int
	batch, steps  int
	rate          float64
}

func main() {
	var c config
	flag.StringVar(&c.target, "target", "local", "any task of a cluster, or local")
	flag.IntVar(&c.units, "units", 64, "units of the state")
	flag.IntVar(&c.window, "window", 16, "number of letters through which gradients are propagated")
	flag.IntVar(&c.batch, "batch-size", 16, "windows per step")
	flag.IntVar(&c.steps, "steps", 300, "training steps")
	flag.Float64Var(&c.rate, "learning-rate", 0.01, "learning rate of Adam")
	flag.Parse()
	if err := c.run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lstm:", err)
		os.Exit(1)
	}
}

// alphabet contains the distinct letters of the text. A letter is represented by its position.
var alphabet = func() string {
	var b strings.Builder
	for _, r := range text {
		if !strings.ContainsRune(b.String(), r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}()

// An lstm is a layer of memory cells.
type lstm struct {
	kernel, bias *train.Variable
	open         op.Output // initial bias of the forget gates
}

// A state holds the outputs and memories of a layer, [batch, units] each.
type state struct{ h, c op.Output }

func newLSTM(s *op.Scope, inputs, units int) *lstm {
	shape := tensor.Shape{int64(inputs + units), int64(4 * units)}
	return &lstm{
		kernel: train.NewVariable(s, "lstm/kernel", shape, tensor.Float32, train.GlorotUniform()),
		bias:   train.NewVariable(s, "lstm/bias", shape[1:], tensor.Float32, train.Zeros),
		// A forget gate that is open initially passes gradients (Jozefowicz et al., 2015).
		open: op.Const(s, float32(1)),
	}
}

// step returns the state after an input of shape [batch, inputs].
func (l *lstm) step(s *op.Scope, x op.Output, prev state) state {
	both := op.ConcatV2(s, []op.Output{x, prev.h}, op.Const(s, int32(1)))
	gates := op.BiasAdd(s, op.MatMul(s, both, l.kernel.Value), l.bias.Value)
	parts := op.Split(s, op.Const(s, int32(1)), gates, 4)
	if s.Err() != nil {
		return state{}
	}
	input, candidate, forget, output := parts[0], parts[1], parts[2], parts[3]
	kept := op.Mul(s, prev.c, op.Sigmoid(s, op.AddV2(s, forget, l.open)))
	c := op.AddV2(s, kept, op.Mul(s, op.Sigmoid(s, input), op.Tanh(s, candidate)))
	return state{h: op.Mul(s, op.Tanh(s, c), op.Sigmoid(s, output)), c: c}
}

// A model is the graph for training and for writing.
type model struct {
	letters, next op.Output // [batch, window] int32: letters, and the letters that follow them
	loss          op.Output // scalar
	update, init  *graph.Node
	letter        op.Output // [1] int32: a letter
	before, after state     // [1, units]: states before and after letter
	guess         op.Output // [1] int32: the most likely next letter
}

func (c *config) build(s *op.Scope) *model {
	s.SetSeed(1)
	window, size := int64(c.window), int64(len(alphabet))
	m := &model{
		letters: op.Placeholder(s.Named("letters"), tensor.Int32, op.PlaceholderShape(tensor.MakePartial(int64(c.batch), window))),
		next:    op.Placeholder(s.Named("next"), tensor.Int32, op.PlaceholderShape(tensor.MakePartial(int64(c.batch), window))),
		letter:  op.Placeholder(s.Named("letter"), tensor.Int32, op.PlaceholderShape(tensor.MakePartial(1))),
		before:  state{op.Placeholder(s.Named("h"), tensor.Float32), op.Placeholder(s.Named("c"), tensor.Float32)},
	}
	layer := newLSTM(s, int(size), c.units)
	w := train.NewVariable(s, "softmax/w", tensor.Shape{int64(c.units), size}, tensor.Float32, train.GlorotUniform())
	b := train.NewVariable(s, "softmax/b", tensor.Shape{size}, tensor.Float32, train.Zeros)
	oneHot := func(letters op.Output) op.Output {
		return op.OneHot(s, letters, op.Const(s, int32(size)), op.Const(s, float32(1)), op.Const(s, float32(0)))
	}
	logits := func(h op.Output) op.Output { return op.BiasAdd(s, op.MatMul(s, h, w.Value), b.Value) }

	zeros := op.Fill(s, op.Const(s, []int32{int32(c.batch), int32(c.units)}), op.Const(s, float32(0)))
	now := state{zeros, zeros}
	var losses []op.Output
	letters, next := op.Unpack(s, m.letters, window, op.UnpackAxis(1)), op.Unpack(s, m.next, window, op.UnpackAxis(1))
	for i := range letters {
		now = layer.step(s, oneHot(letters[i]), now)
		loss, _ := op.SparseSoftmaxCrossEntropyWithLogits(s, logits(now.h), next[i])
		losses = append(losses, loss)
	}
	m.loss = op.Mean(s.Named("loss"), op.Pack(s, losses), op.Const(s, []int32{0, 1}))
	m.update = train.Minimize(s, train.NewAdam(c.rate), m.loss, train.GlobalStep(s))

	m.after = layer.step(s, oneHot(m.letter), m.before)
	m.guess = op.ArgMax(s, logits(m.after.h), op.Const(s, int32(1)), op.ArgMaxOutputType(tensor.Int32))
	m.init = train.VariablesInitializer(s)
	return m
}

func (c *config) run(ctx context.Context, out io.Writer) error {
	s := op.NewScope()
	m := c.build(s)
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession(c.target, g)
	if err != nil {
		return err
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []*graph.Node{m.init}); err != nil {
		return err
	}
	for step := range c.steps {
		feeds, err := c.windows(m, step)
		if err != nil {
			return err
		}
		values, err := sess.Run(ctx, feeds, []op.Output{m.loss}, []*graph.Node{m.update})
		if err != nil {
			return err
		}
		if step%100 == 0 || step == c.steps-1 {
			fmt.Fprintf(out, "step : %d ,loss : %.3f\n", step, values[0].Go())
		}
	}
	written, err := c.write(ctx, sess, m, "the ", len(text))
	fmt.Fprintln(out, written)
	return err
}

// windows returns the windows of a step. They are at different places of the text, and each
// continues the window of the step before.
func (c *config) windows(m *model, step int) (map[op.Output]tensor.Tensor, error) {
	letters, next := make([][]int32, c.batch), make([][]int32, c.batch)
	for i := range letters {
		at := i*len(text)/c.batch + step*c.window
		for k := range c.window {
			letters[i] = append(letters[i], letterAt(at+k))
			next[i] = append(next[i], letterAt(at+k+1))
		}
	}
	x, err := tensor.New(letters)
	if err != nil {
		return nil, err
	}
	y, err := tensor.New(next)
	return map[op.Output]tensor.Tensor{m.letters: x, m.next: y}, err
}

func letterAt(i int) int32 { return int32(strings.IndexByte(alphabet, text[i%len(text)])) }

// write continues a text by n letters.
func (c *config) write(ctx context.Context, sess *weft.Session, m *model, start string, n int) (string, error) {
	h, err := tensor.Zeros(tensor.Float32, tensor.Shape{1, int64(c.units)})
	if err != nil {
		return "", err
	}
	memory, letters := h, []byte(start)
	for i := range len(start) + n - 1 {
		letter := tensor.Vector(int32(strings.IndexByte(alphabet, letters[i])))
		values, err := sess.Run(ctx, map[op.Output]tensor.Tensor{m.letter: letter, m.before.h: h, m.before.c: memory},
			[]op.Output{m.after.h, m.after.c, m.guess}, nil)
		if err != nil {
			return "", err
		}
		h, memory = values[0], values[1]
		if i >= len(start)-1 {
			letters = append(letters, alphabet[tensor.Values[int32](&values[2])[0]])
		}
	}
	return string(letters), nil
}
