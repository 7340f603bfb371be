// Command word2vec learns vectors for words. Words that occur near the same words get similar
// vectors (the skip-gram model, Mikolov et al., 2013). The vectors are split over the parameter
// servers, and only the rows that a step uses, and their gradients, cross the network. The loss is
// noise-contrastive: it compares words of the text with sampled words.
//
//	weft server --cluster-spec=… --job-name=ps     --task-index=0 &   # two parameter servers and a worker
//	weft server --cluster-spec=… --job-name=ps     --task-index=1 &
//	weft server --cluster-spec=… --job-name=worker --task-index=0 &
//	go run ./examples/word2vec --target=grpc://localhost:2224 --ps-tasks=2 --text=text8
//
// Without --text the program generates sentences, each about one of a few themes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

type config struct {
	target, text        string
	psTasks, vocabulary int
	size, negative      int
	window, batch       int
	steps               int
	rate                float64
}

func main() {
	var c config
	flag.StringVar(&c.target, "target", "grpc://localhost:2224", "any task of the cluster")
	flag.StringVar(&c.text, "text", "", "file with words; if empty, generate sentences")
	flag.IntVar(&c.psTasks, "ps-tasks", 2, "number of parameter servers")
	flag.IntVar(&c.vocabulary, "vocabulary-size", 50000, "number of words in the vocabulary, the most frequent ones")
	flag.IntVar(&c.size, "embedding-size", 128, "elements of a vector")
	flag.IntVar(&c.negative, "num-sampled", 64, "sampled words per step")
	flag.IntVar(&c.window, "skip-window", 1, "number of words on each side of a word that count as near")
	flag.IntVar(&c.batch, "batch-size", 128, "pairs of words per step")
	flag.IntVar(&c.steps, "steps", 2000, "training steps")
	flag.Float64Var(&c.rate, "learning-rate", 1, "learning rate of gradient descent")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := c.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "word2vec:", err)
		os.Exit(1)
	}
}

func (c *config) run(ctx context.Context, out io.Writer) error {
	words, err := newCorpus(c.text, c.vocabulary)
	if err != nil {
		return err
	}
	s := op.NewScope()
	s.SetSeed(1)
	m := newModel(s.WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: c.psTasks})), c, words.size())
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
	mean := float32(0)
	for step := 1; step <= c.steps; step++ {
		inputs, labels := words.pairs(c.batch, c.window)
		feeds := map[op.Output]tensor.Tensor{m.inputs: tensor.Vector(inputs...), m.labels: tensor.Vector(labels...)}
		values, err := sess.Run(ctx, feeds, []op.Output{m.loss}, []*graph.Node{m.update})
		if err != nil {
			return err
		}
		mean += tensor.Value[float32](&values[0])
		if every := max(c.steps/10, 1); step%every == 0 {
			fmt.Fprintf(out, "step : %d ,average loss : %.3f\n", step, mean/float32(every))
			mean = 0
		}
	}
	return m.showNearest(ctx, out, sess, words)
}

// shown is the number of words whose neighbors are printed, and the number of neighbors of each.
const shown = 4

func (m *model) showNearest(ctx context.Context, out io.Writer, sess *weft.Session, words *corpus) error {
	ids := make([]int64, min(shown, words.size()))
	for i := range ids {
		ids[i] = int64(i)
	}
	values, err := sess.Run(ctx, map[op.Output]tensor.Tensor{m.asked: tensor.Vector(ids...)}, []op.Output{m.nearest}, nil)
	if err != nil {
		return err
	}
	found := tensor.Values[int32](&values[0])
	for i, id := range ids {
		var names []string
		// the first is the word itself
		for _, near := range found[i*(shown+1)+1 : (i+1)*(shown+1)] {
			names = append(names, words.names[near])
		}
		fmt.Fprintf(out, "nearest to %s: %s\n", words.names[id], strings.Join(names, ", "))
	}
	return nil
}
