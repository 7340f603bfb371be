// Command syncreplicas trains with synchronous between-graph replication and hooks, and exports the
// model in two ways. Start it like betweengraph, one process per task, or with --target to use
// running servers:
//
//	go run ./examples/syncreplicas --ps-hosts=… --worker-hosts=… --job-name=worker --task-index=0 --target=grpc://localhost:2223
//
// The chief, worker 0, writes three folders below --model-dir:
//
//	ckpt          checkpoints
//	saved_at_end  a SavedModel that a hook exports at the end of training, in the training session
//	saved_later   a SavedModel of the last checkpoint, restored in another session without its devices
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/examples/digits"
	"github.com/weft-ml/weft/examples/mlp"
	"github.com/weft-ml/weft/examples/task"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local" // for the session that exports the checkpoint
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

type config struct {
	task                task.Flags
	lastStep, saveSteps int64
	rate                float64
	modelDir            string
}

func main() {
	var c config
	c.task.Register()
	flag.Int64Var(&c.lastStep, "last-step", 200, "number of global steps; all workers together make one")
	flag.Int64Var(&c.saveSteps, "save-steps", 100, "global steps between checkpoints")
	flag.Float64Var(&c.rate, "learning-rate", 0.01, "learning rate of Adam")
	flag.StringVar(&c.modelDir, "model-dir", "model", "folder for checkpoints and SavedModels, shared by all tasks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := c.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "syncreplicas:", err)
		if stopped, ok := errors.AsType[*train.SignalError](err); ok {
			os.Exit(stopped.ExitStatus())
		}
		os.Exit(1)
	}
}

func (c *config) run(ctx context.Context, out io.Writer) (err error) {
	// the working directories of the servers may differ
	if c.modelDir, err = filepath.Abs(c.modelDir); err != nil {
		return err
	}
	return c.task.Run(ctx, func(ctx context.Context, target string) error {
		if err := c.train(ctx, out, target); err != nil || c.task.Index != 0 {
			return err
		}
		return c.exportFromCheckpoint(ctx, out)
	})
}

func (c *config) train(ctx context.Context, out io.Writer, target string) error {
	spec, chief := c.task.Cluster(), c.task.Index == 0
	replicas, worker := len(spec["worker"]), fmt.Sprintf("/job:worker/task:%d", c.task.Index)
	s := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{Cluster: spec, WorkerDevice: worker}))
	step := train.GlobalStep(s)
	model := mlp.New(s, 100)
	opt := train.NewSyncReplicasOptimizer(train.NewAdam(c.rate), replicas, replicas)
	update := opt.Minimize(s, model.Loss, step)

	term := train.NewSignalHook() // SIGTERM ends training with a checkpoint
	hooks := []train.SessionRunHook{&train.StopAtStepHook{LastStep: c.lastStep}, term, opt.MakeSessionRunHook(chief)}
	if chief {
		hooks = append(hooks,
			&train.CheckpointSaverHook{Dir: filepath.Join(c.modelDir, "ckpt"), SaveSteps: c.saveSteps, Saver: train.NewSaver(s, train.SaverOptions{})},
			&train.SavedModelHook{Export: c.export("saved_at_end", model.X, model.Probabilities)})
	}
	sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
		Master: target, IsChief: chief, Hooks: hooks,
		SessionOptions: []weft.SessionOption{weft.WithSoftPlacement(), weft.WithDeviceFilters("/job:ps", worker)},
	})
	if err != nil {
		return err
	}
	data := digits.New(uint64(c.task.Index))
	var fetched []tensor.Tensor
	err = sess.Loop(ctx, func(ctx context.Context) error {
		feeds, err := model.Feeds(data, 100)
		if err != nil {
			return err
		}
		values, err := sess.Run(ctx, feeds, []op.Output{step.Value, model.Accuracy}, []*graph.Node{update})
		if err != nil {
			return err
		}
		if fetched = values; fetched[0].Go().(int64)%50 == 0 {
			fmt.Fprintf(out, "job : worker/%d step : %d ,training accuracy : %.2f\n", c.task.Index, fetched[0].Go(), fetched[1].Go())
		}
		return nil
	})
	if err == nil {
		err = term.Err()
	}
	if err == nil && fetched != nil {
		fmt.Fprintf(out, "job : worker/%d done step : %d ,training accuracy : %.2f\n", c.task.Index, fetched[0].Go(), fetched[1].Go())
	}
	return err
}

// export describes the exported model: one signature, from images to probabilities, on any device.
func (c *config) export(dir string, x, probabilities op.Output) train.Export {
	return train.Export{
		Dir: filepath.Join(c.modelDir, dir), ClearDevices: true,
		Signatures: map[string]savedmodel.Signature{savedmodel.DefaultSignature: {
			Inputs:  map[string]savedmodel.TensorInfo{"x": savedmodel.InfoOf(x, tensor.MakePartial(-1, digits.Pixels))},
			Outputs: map[string]savedmodel.TensorInfo{"probabilities": savedmodel.InfoOf(probabilities, tensor.MakePartial(-1, digits.Classes))},
			Method:  savedmodel.MethodPredict,
		}},
	}
}

// exportFromCheckpoint restores the last checkpoint in this process and exports it as a SavedModel.
func (c *config) exportFromCheckpoint(ctx context.Context, out io.Writer) error {
	latest, err := train.LatestCheckpoint(filepath.Join(c.modelDir, "ckpt"))
	if err != nil {
		return err
	}
	meta, err := savedmodel.ReadMetaGraph(latest + ".meta")
	if err != nil {
		return err
	}
	s := op.NewScope()
	saver := train.ImportMetaGraph(s, meta, op.ImportOptions{ClearDevices: true}, train.SaverOptions{})
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		return err
	}
	defer sess.Close()
	if err := saver.Restore(ctx, sess, latest); err != nil {
		return err
	}
	if err := c.export("saved_later", g.Node("x").Out(0), g.Node("probabilities").Out(0)).SaveModel(ctx, sess, s, saver); err != nil {
		return err
	}
	fmt.Fprintf(out, "saved in %s: ckpt, saved_at_end, saved_later\n", c.modelDir)
	return nil
}
