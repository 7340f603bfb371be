package tutorial

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// show runs a program and prints its error.
func show(program func(ctx context.Context) error) {
	if err := program(context.Background()); err != nil {
		fmt.Println(err)
	}
}

func constant(ctx context.Context) error {
	s := op.NewScope()
	hello := op.Const(s, "hello")
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		return err
	}
	defer sess.Close()
	out, err := sess.Fetch(ctx, nil, hello)
	if err != nil {
		return err
	}
	fmt.Println(out[0].Go())
	return nil
}

func Example_constant() {
	show(constant)
	// Output: hello
}

func placeholder(ctx context.Context) error {
	s := op.NewScope()
	celsius := op.Placeholder(s, tensor.Float32)
	fahrenheit := op.AddV2(s, op.Mul(s, celsius, op.Const(s, float32(1.8))), op.Const(s, float32(32)))
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		return err
	}
	defer sess.Close()
	out, err := sess.Fetch(ctx, weft.Feeds{celsius: tensor.Vector[float32](0, 20, 100)}, fahrenheit)
	if err != nil {
		return err
	}
	fmt.Println(out[0].Go())
	return nil
}

func Example_placeholder() {
	show(placeholder)
	// Output: [32 68 212]
}

func variable(ctx context.Context) error {
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32)
	y := op.Placeholder(s, tensor.Float32)
	factor := train.NewVariable(s, "factor", tensor.Shape{}, tensor.Float32, train.Zeros)
	offset := train.NewVariable(s, "offset", tensor.Shape{}, tensor.Float32, train.Zeros)
	predicted := op.AddV2(s, op.Mul(s, x, factor.Value), offset.Value)
	loss := op.Mean(s, op.SquaredDifference(s, predicted, y), op.Const(s, []int32{0}))
	update := train.Minimize(s, train.NewGradientDescent(0.2), loss, train.GlobalStep(s))
	init := train.VariablesInitializer(s)
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		return err
	}
	defer sess.Close()
	if err := sess.Exec(ctx, nil, init); err != nil {
		return err
	}
	feeds := weft.Feeds{x: tensor.Vector[float32](0, 1, 2), y: tensor.Vector[float32](32, 33.8, 35.6)}
	for range 300 {
		if _, err := sess.Run(ctx, feeds, nil, []*graph.Node{update}); err != nil {
			return err
		}
	}
	out, err := sess.Fetch(ctx, nil, factor.Value, offset.Value)
	if err != nil {
		return err
	}
	fmt.Printf("%.1f %.1f\n", out[0].Go(), out[1].Go())
	return nil
}

func Example_variable() {
	show(variable)
	// Output: 1.8 32.0
}

// circle returns n points of a square, with the label 1 for those within a circle.
func circle(n int) (points [][]float32, labels []float32) {
	for i := range n {
		x, y := math.Mod(float64(i)*0.618, 1)*2-1, math.Mod(float64(i)*0.755, 1)*2-1
		label := float32(0)
		if x*x+y*y < 0.5 {
			label = 1
		}
		points, labels = append(points, []float32{float32(x), float32(y)}), append(labels, label)
	}
	return points, labels
}

func model(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "tutorial")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	points, labels := circle(1000)
	all, err := data.FromSlices(points, labels)
	if err != nil {
		return err
	}
	training, test := all.Split(0.8, 1)
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Dense{Units: 16, Activation: nn.ReLU},
			&nn.Dense{Units: 16, Activation: nn.ReLU},
			&nn.Dense{Units: 1, Activation: nn.Sigmoid},
		},
		Loss:    nn.BinaryCrossentropy{},
		Metrics: []train.Metric{metrics.BinaryAccuracy{}},
	}
	history, err := train.Fit(ctx, m, training.Shuffle(1000, 1).Batch(32), train.FitOptions{
		Epochs: 30, Optimizer: train.NewAdam(0.01), Seed: 1, Validation: test.Batch(100), KeepBest: true,
	})
	if err != nil {
		return err
	}
	fmt.Println(history.Last()["val_binary_accuracy"] > 0.95)

	p, err := m.Predict(ctx, [][]float32{{0, 0}, {0.9, 0.9}})
	if err != nil {
		return err
	}
	for _, row := range p.Go().([][]float32) {
		fmt.Printf("%.0f\n", row[0])
	}

	if err := m.Save(ctx, filepath.Join(dir, "circle", "1")); err != nil {
		return err
	}

	model, err := serve.Load(ctx, "local", filepath.Join(dir, "circle", "1"))
	if err != nil {
		return err
	}
	defer model.Close()
	sig, err := model.Signature("serving_default")
	if err != nil {
		return err
	}
	out, err := sig.Run(ctx, map[string]any{"inputs": [][]float32{{0.1, -0.2}}})
	if err != nil {
		return err
	}
	fmt.Printf("%.0f\n", out["outputs"].([][]float32)[0][0])
	return nil
}

func Example_model() {
	show(model)
	// Output:
	// true
	// 1
	// 0
	// 1
}

// TestPage compares the page with the programs above: each of its blocks of Go is a part of them.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("tutorial_test.go")
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.ReplaceAll(string(source), "\n\t", "\n") // the bodies of the functions
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 6 {
		t.Errorf("the page has %d blocks", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(flat, b[1]) {
			t.Errorf("this block is not in the programs:\n%s", b[1])
		}
	}
}
