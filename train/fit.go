package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/sys/callsite"
	"github.com/weft-ml/weft/status"
)

// FitOptions configure [Fit]. The zero value trains for one epoch in this process.
type FitOptions struct {
	Epochs    int       // passes over the data; 1 if 0
	Optimizer Optimizer // [NewAdam] with the rate 0.001 if nil
	Schedule  Schedule  // learning rate by step; it overrides that of the optimizer. May be nil.
	ClipNorm  float64   // limit of the global norm of the gradients; none if 0
	Seed      int64     // of the initial weights and of dropout; random if 0

	Validation Dataset // is evaluated after each epoch; may be nil
	// Monitor is the value by which epochs are compared: "loss", the name of a metric, or one of
	// them after "val_". If it is "", it is "val_loss", or "loss" without Validation.
	Monitor   string
	StopAfter int  // stop after that many epochs without a better one; never if 0
	KeepBest  bool // end with the weights of the best epoch instead of the last

	// Dir is the folder of checkpoints, which are saved after each epoch, of event files for
	// TensorBoard (in "train" and "validation"), and of "history.json". Fit continues after the
	// last epoch that is there. "" for none.
	Dir string
	// Progress gets a line per epoch, and if it is a terminal a bar for the epoch that is running;
	// nil for none.
	Progress io.Writer
	// OnEpoch is called after each epoch; training ends with its error. It may be nil.
	OnEpoch func(Epoch) error

	// DataOnWorker reads the training data on the task of the session with the operations of
	// tf.data. The rows of a [RowDataset] go there once. Of a [GraphDataset] the task reads the
	// files. Otherwise the program reads the data and feeds each batch. The batches are the same
	// ones.
	DataOnWorker bool

	Target  string      // of the session; "local" if "", or the own task of Cluster
	Cluster *FitCluster // nil for training by this program alone
	Session []weft.SessionOption
	Logger  *slog.Logger // logs lost tasks and long waits; slog.Default() if nil
}

// FitCluster is a cluster on which several workers train one model. Each worker calls [Fit] with a
// part of the data of its own. Worker 0 is the chief.
//
// With parameter servers the chief evaluates, saves, and gets the trained weights; what it measures
// in training is that of its own part of the data. With AllReduce there are no parameter servers.
type FitCluster struct {
	Spec cluster.Spec // with the jobs "ps", unless AllReduce is set, and "worker"
	Task int          // index of this worker
	// Sync applies the average of as many gradients as there are workers in each step
	// ([SyncReplicasOptimizer]). Training ends for all workers when the chief has finished its
	// epochs. Without Sync each worker applies its gradients on its own.
	Sync bool
	// AllReduce gives each worker a copy of the model, in its own task, and applies the mean of the
	// gradients of all workers in each step. An epoch ends for all workers with the last batch of
	// the worker that has the fewest. Losses and metrics are those of the data of all workers, and
	// of the validation data that the workers pass, a part each. All workers get the trained
	// weights; the chief saves them. The workers must have the same options.
	//
	// If a worker fails, Fit ends for the others with an error that names it, within seconds. The
	// error has the code Unavailable or Aborted if a task was lost, and else that of the worker.
	// When all workers call Fit again, they continue from the last checkpoint in the chief's Dir.
	// A call waits for the workers that are missing, and logs them.
	AllReduce bool
}

// Fit trains a model and returns what was measured. When it returns, the model has the trained
// weights. A model that has weights, of an earlier Fit for instance, is trained further.
//
//	history, err := train.Fit(ctx, m, trainingSet, train.FitOptions{
//		Epochs: 20, Validation: validationSet, StopAfter: 3, KeepBest: true, Progress: os.Stdout,
//	})
//
// Fit ends with the error of ctx when ctx ends. If Dir is set, another call continues from the last
// epoch. Errors name the line of the program that calls Fit. A loss that is not a number is an
// InvalidArgument error.
func Fit(ctx context.Context, m Model, data Dataset, o FitOptions) (*History, error) {
	ctx, line := callsite.Begin(ctx)
	f, err := newFitting(m, data, o)
	if err == nil {
		err = f.run(ctx)
	}
	if err != nil {
		return nil, withLine(line, err)
	}
	return f.history, nil
}

// withLine puts the line of the program in front of an error that lacks it.
func withLine(line string, err error) error {
	if text := err.Error(); len(line) > 0 && len(text) >= len(line) && text[:len(line)] == line {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%strain: %w", line, err)
	}
	return status.Errorf(status.CodeOf(err), "%s%w", line, err)
}

func (o *FitOptions) setDefaults() {
	if o.Epochs == 0 {
		o.Epochs = 1
	}
	if o.Optimizer == nil {
		o.Optimizer = NewAdam(0.001)
	}
	if o.Monitor == "" {
		o.Monitor = "val_loss"
		if o.Validation == nil {
			o.Monitor = "loss"
		}
	}
}

// chief reports whether this worker initializes, evaluates and saves.
func (o *FitOptions) chief() bool { return o.Cluster == nil || o.Cluster.Task == 0 }

// target returns the target of the session.
func (o *FitOptions) target() (string, error) {
	switch {
	case o.Target != "":
		return o.Target, nil
	case o.Cluster == nil:
		return "local", nil
	}
	task := cluster.Task{Job: "worker", Index: o.Cluster.Task}
	address := o.Cluster.Spec.Address(task)
	if address == "" {
		return "", status.InvalidArgumentf("train: the cluster has no task %s", task)
	}
	return "grpc://" + address, nil
}
