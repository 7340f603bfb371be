package train

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// run opens the session and trains.
func (f *fitting) run(ctx context.Context) (err error) {
	o := &f.options
	if o.Dir != "" && o.chief() {
		if err := f.history.read(o.Dir); err != nil {
			return err
		}
		f.events = &eventFiles{dir: o.Dir}
		defer func() { err = errors.Join(err, f.events.close()) }()
	}
	target, err := o.target()
	if err != nil {
		return err
	}
	scaffold := &Scaffold{Saver: f.saver}
	if before := f.model.Weights(); before != nil && o.chief() {
		scaffold.InitFn = func(ctx context.Context, sess Session) error { return f.setWeights(ctx, sess, before) }
	}
	m := MonitoredOptions{Chief: o.chief(), Scaffold: scaffold, SessionOptions: o.Session, Logger: o.Logger}
	if f.saver != nil {
		m.CheckpointDir = o.Dir
	}
	if f.ring != nil {
		m.Chief = true // of its own copy
		if m.SessionOptions, err = f.ring.session(o.Session); err != nil {
			return err
		}
	}
	if f.onWorker != nil {
		m.Hooks = append(m.Hooks, f.onWorker)
	}
	if f.sync != nil {
		m.Hooks = append(m.Hooks, f.sync.MakeSessionRunHook(o.chief()))
	}
	if f.sess, err = NewMonitoredSession(ctx, target, f.scope, m); err != nil {
		return err
	}
	if f.ring != nil {
		err = f.together(ctx)
	} else {
		err = f.epochs(ctx)
	}
	if f.onWorker != nil {
		f.onWorker.release(ctx, f.sess)
	}
	if err != nil {
		f.sess.failed = err
		return errors.Join(err, f.sess.Close())
	}
	return f.sess.Close()
}

// together is epochs for the workers of an all-reduce, which end when one of them fails. A worker
// does not continue in a new session: its copy of the model would differ from those of the others.
func (f *fitting) together(ctx context.Context) error {
	f.sess.once = true
	training, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := f.sess.RunStep(training, func(ctx context.Context, sess Session) error { return f.ring.begin(ctx, sess, cancel) })
	if err == nil {
		err = f.epochs(training)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return f.ring.roll.end(ctx, err)
}

// epochs trains until the last epoch, or until there were no better ones for a while.
func (f *fitting) epochs(ctx context.Context) error {
	first := 0
	err := f.sess.RunStep(ctx, func(ctx context.Context, sess Session) error {
		if f.ring != nil {
			if err := f.ring.agree(ctx, sess, &f.options, len(f.built.Metrics)); err != nil {
				return err
			}
			if _, err := sess.Run(ctx, f.ring.feeds(), nil, []*graph.Node{f.ring.start}); err != nil {
				return err
			}
		}
		at, err := readStep(ctx, sess, f.epoch)
		first = int(at)
		return err
	})
	if err != nil {
		return err
	}
	f.firstEpoch = first
	if f.options.chief() {
		f.history.cut(first)
		if err := f.readBest(); err != nil {
			return err
		}
	}
	if first >= f.options.Epochs && f.options.Progress != nil {
		fmt.Fprintf(f.options.Progress, "%s has %d epochs already: nothing is left to train\n", f.options.Dir, first)
	}
	bar := newProgress(f.options.Progress, f.options.Epochs, batches(f.data))
	for epoch := first; epoch < f.options.Epochs; epoch++ {
		if stalled, err := f.stalled(ctx); stalled || err != nil {
			if err != nil {
				return err
			}
			break
		}
		err := f.runEpoch(ctx, epoch, bar)
		if f.sync != nil && !f.options.chief() && status.CodeOf(err) == status.OutOfRange {
			return nil // the chief has closed the queue of tokens, because it has finished
		}
		if err != nil {
			bar.stop()
			return err
		}
	}
	if !f.measures() {
		return nil
	}
	return f.sess.RunStep(ctx, f.keep)
}

// measures reports whether this worker evaluates the model and gets its weights.
func (f *fitting) measures() bool { return f.options.chief() || f.ring != nil }

// stalled reports whether there were no better epochs for a while. The chief decides for all
// workers: after a restart it alone knows the earlier epochs.
func (f *fitting) stalled(ctx context.Context) (stop bool, err error) {
	stop = f.history.stalled(f.monitor(), f.options.StopAfter)
	if f.ring == nil {
		return stop, nil
	}
	err = f.sess.RunStep(ctx, func(ctx context.Context, sess Session) error {
		vote := []float64{0}
		if stop && f.options.chief() {
			vote[0] = 1
		}
		all, err := f.ring.run(ctx, sess, &f.ring.votes, vote)
		stop = err == nil && all[0] > 0
		return err
	})
	return stop, err
}

// runEpoch trains for one epoch, and as the chief evaluates and saves.
func (f *fitting) runEpoch(ctx context.Context, epoch int, bar *progress) error {
	start := time.Now()
	values, err := f.trainEpoch(ctx, epoch, bar)
	if err != nil || !f.measures() {
		return err
	}
	e := Epoch{Epoch: epoch + 1, Values: values}
	err = f.sess.RunStep(ctx, func(ctx context.Context, sess Session) (err error) {
		if f.options.Validation != nil {
			validated, err := f.evaluate(ctx, sess, epoch)
			if err != nil {
				return err
			}
			for name, v := range validated {
				values["val_"+name] = v
			}
		}
		if e.Step, err = readStep(ctx, sess, f.step); err != nil {
			return err
		}
		e.Seconds = time.Since(start).Seconds()
		f.history.Epochs = append(f.history.Epochs, e)
		f.history.BestEpoch = 0
		if at := f.history.best(f.monitor()); at >= 0 {
			f.history.BestEpoch = f.history.Epochs[at].Epoch
		}
		return f.save(ctx, sess, epoch)
	})
	if err != nil {
		return err
	}
	bar.epoch(e)
	if f.options.OnEpoch != nil {
		return f.options.OnEpoch(e)
	}
	return nil
}

// trainEpoch runs a step for each batch and returns the means over the epoch.
func (f *fitting) trainEpoch(ctx context.Context, epoch int, bar *progress) (map[string]float64, error) {
	total := newTotals(f.built.Metrics)
	fetches := f.built.Training.fetches()
	if f.ring != nil {
		fetches = append(fetches, f.ring.all)
	}
	own := len(fetches)
	if f.onWorker != nil {
		fetches = append(fetches, f.onWorker.fetches()...)
	}
	for next, err := range f.upcoming(ctx, epoch) {
		if err != nil {
			return nil, fmt.Errorf("epoch %d, batch %d: %w", epoch+1, total.batches+1, err)
		}
		feeds := map[graph.Output]tensor.Tensor{}
		if f.onWorker == nil {
			if feeds, err = f.feeds(next.batch); err != nil {
				return nil, err
			}
		}
		if f.ring != nil {
			maps.Copy(feeds, f.ring.feeds())
			if !f.ring.onTask {
				feeds[f.ring.more] = tensor.Scalar(float32(0))
				if next.more {
					feeds[f.ring.more] = tensor.Scalar(float32(1))
				}
			}
		}
		out, err := f.sess.Run(ctx, feeds, fetches, []*graph.Node{f.update})
		if f.onWorker != nil && total.batches == 0 && isEnd(err) {
			break
		}
		if err != nil {
			return nil, explain(err, epoch, total.batches)
		}
		if f.onWorker != nil {
			next = f.onWorker.fetched(next, out[own:])
			out = out[:own]
		}
		if err := total.add(next, out); err != nil {
			return nil, fmt.Errorf("epoch %d, batch %d: %w", epoch+1, total.batches, err)
		}
		bar.batch(epoch, total)
		if f.ring != nil && tensor.Values[float32](&out[len(out)-1])[0] < float32(f.ring.workers) {
			break // one of the workers has no more
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if total.batches == 0 {
		return nil, status.InvalidArgumentf("train: the training data has no batches in epoch %d; "+
			"is it empty, or smaller than a batch whose remainder is dropped?", epoch+1)
	}
	if f.ring == nil {
		return total.values(), nil
	}
	err := f.sess.RunStep(ctx, func(ctx context.Context, sess Session) error {
		if f.ring.mix != nil {
			if _, err := sess.Run(ctx, f.ring.feeds(), nil, []*graph.Node{f.ring.mix}); err != nil {
				return err
			}
		}
		return f.ring.share(ctx, sess, total)
	})
	return total.values(), err
}

// upcoming yields the batches of an epoch, or their sizes if a worker reads them.
func (f *fitting) upcoming(ctx context.Context, epoch int) iter.Seq2[upcoming, error] {
	if f.onWorker != nil {
		return f.onWorker.epoch(ctx, f.sess, epoch)
	}
	return lookahead(f.data.Batches(ctx, epoch), f.ring != nil)
}

// feeds returns the feeds of a batch.
func (f *fitting) feeds(batch []tensor.Tensor) (map[graph.Output]tensor.Tensor, error) {
	if len(batch) != len(f.batch) {
		return nil, status.InvalidArgumentf("train: a batch has %d tensors, and the data announces %d", len(batch), len(f.batch))
	}
	feeds := make(map[graph.Output]tensor.Tensor, len(batch))
	for i, p := range f.batch {
		feeds[p] = batch[i]
	}
	return feeds, nil
}

// explain adds to the error of a step what the program can do about it.
func explain(err error, epoch, batch int) error {
	hint := ""
	if strings.Contains(err.Error(), "label value") {
		hint = "; labels must be at least 0 and less than the units of the last layer"
	}
	return status.Errorf(status.CodeOf(err), "epoch %d, batch %d: %w%s", epoch+1, batch+1, err, hint)
}

// evaluate returns the means over the validation data.
func (f *fitting) evaluate(ctx context.Context, sess Session, epoch int) (map[string]float64, error) {
	total := newTotals(f.built.Metrics)
	for batch, err := range f.options.Validation.Batches(ctx, 0) {
		if err != nil {
			return nil, fmt.Errorf("validation after epoch %d: %w", epoch+1, err)
		}
		feeds, err := f.feeds(batch)
		if err != nil {
			return nil, err
		}
		out, err := sess.Run(ctx, feeds, f.built.Evaluation.fetches(), nil)
		if err != nil {
			return nil, explain(err, epoch, total.batches)
		}
		total.sum(rows(batch), out)
	}
	if total.batches == 0 {
		return nil, status.InvalidArgumentf("train: the validation data has no batches")
	}
	if f.ring != nil {
		if err := f.ring.share(ctx, sess, total); err != nil {
			return nil, err
		}
	}
	return total.values(), nil
}

// monitor returns the value that decides which of two epochs is better.
func (f *fitting) monitor() monitor {
	name := strings.TrimPrefix(f.options.Monitor, "val_")
	for _, m := range f.built.Metrics {
		if m.Name() == name {
			return monitor{f.options.Monitor, m.Rises()}
		}
	}
	return monitor{f.options.Monitor, false}
}

// save keeps the weights of the best epoch, and writes the checkpoint and the history.
func (f *fitting) save(ctx context.Context, sess Session, epoch int) (err error) {
	if f.options.KeepBest && f.history.best(f.monitor()) == len(f.history.Epochs)-1 {
		if f.best, err = f.weights(ctx, sess); err != nil {
			return err
		}
	}
	if _, err := sess.Run(ctx, map[graph.Output]tensor.Tensor{f.nextEpoch: tensor.Scalar(int64(epoch + 1))}, nil, []*graph.Node{f.advance}); err != nil {
		return err
	}
	if f.saver == nil {
		return nil
	}
	e := f.history.Epochs[len(f.history.Epochs)-1]
	if err := f.writeBest(e); err != nil {
		return err
	}
	if _, err := f.saver.Save(ctx, sess, fileio.Join(f.options.Dir, defaultBasename), e.Step); err != nil {
		return err
	}
	if err := f.events.add(e); err != nil {
		return err
	}
	return f.history.write(f.options.Dir)
}

// keep gives the model its weights: the best ones, or those of the session.
func (f *fitting) keep(ctx context.Context, sess Session) error {
	weights := f.best
	if weights == nil {
		var err error
		if weights, err = f.weights(ctx, sess); err != nil {
			return err
		}
	}
	f.model.SetWeights(weights)
	return nil
}

// fetches returns the outputs to fetch for each batch.
func (m *Measured) fetches() []op.Output { return append([]op.Output{m.Loss}, m.Sums...) }

// totals adds up the results of batches.
type totals struct {
	metrics []Metric
	loss    float64 // sum over elements
	count   float64 // elements
	batches int
	sums    [][]float64
}

func newTotals(metrics []Metric) *totals {
	return &totals{metrics: metrics, sums: make([][]float64, len(metrics))}
}

// add adds the results of a training step. It fails if the loss is not a finite number.
func (t *totals) add(u upcoming, out []tensor.Tensor) error {
	loss, batch := float64(tensor.Value[float32](&out[0])), u.batch
	t.sum(u.size, out)
	if !math.IsNaN(loss) && !math.IsInf(loss, 0) {
		return nil
	}
	for i := range batch {
		if batch[i].DType() == tensor.Float32 && !finite(tensor.Values[float32](&batch[i])) {
			return status.InvalidArgumentf("train: the loss is %v, because tensor %d of the batch has an element that is not a finite number", loss, i)
		}
	}
	return status.InvalidArgumentf("train: the loss is %v; lower the learning rate, limit the gradients (FitOptions.ClipNorm), "+
		"or scale the inputs to about 1", loss)
}

func finite(values []float32) bool {
	for _, v := range values {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// rows returns the number of elements of a batch.
func rows(batch []tensor.Tensor) int {
	if len(batch) == 0 || batch[len(batch)-1].Rank() == 0 {
		return 0
	}
	return batch[len(batch)-1].Dim(0)
}

// sum adds the results of a batch: the loss and the sums of the metrics.
func (t *totals) sum(size int, out []tensor.Tensor) {
	n := float64(size)
	t.loss += n * float64(tensor.Value[float32](&out[0]))
	t.count += n
	t.batches++
	for i := range t.sums {
		values := tensor.Values[float64](&out[i+1])
		if t.sums[i] == nil {
			t.sums[i] = make([]float64, len(values))
		}
		for j, v := range values {
			t.sums[i][j] += v
		}
	}
}

// values returns the mean loss and the metrics.
func (t *totals) values() map[string]float64 {
	out := map[string]float64{"loss": t.loss / t.count}
	for i, m := range t.metrics {
		out[m.Name()] = m.Result(t.sums[i])
	}
	return out
}
