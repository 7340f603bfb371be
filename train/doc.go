// Package train trains models: variables and their initial values, optimizers, the placement of
// variables on parameter servers, checkpoints, and sessions that look after themselves.
//
// # A model
//
// Variables are added to a graph with package op, and an optimizer adds the step that changes them:
//
//	s := op.NewScope()
//	w := train.NewVariable(s, "w", tensor.Shape{784, 10}, tensor.Float32, train.Zeros)
//	loss := …
//	step := train.GlobalStep(s)
//	update := train.Minimize(s, train.NewAdam(0.001), loss, step)
//
// Names of variables and of the slots that optimizers keep for them are those of TensorFlow, so
// that checkpoints fit. As in package op, mistakes are reported together when the graph is
// complete.
//
// # Training
//
// [MonitoredTrainingSession] initializes the model or restores its latest checkpoint, saves it,
// writes summaries, and starts again when a task of the cluster is lost. What else is to happen
// around the steps is the work of hooks ([SessionRunHook]):
//
//	sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
//		Master: "grpc://localhost:2222", IsChief: true, CheckpointDir: "/tmp/model",
//		Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 1000}, &train.NanTensorHook{Loss: loss}},
//	})
//	if err != nil {
//		return err
//	}
//	return sess.Loop(ctx, func(ctx context.Context) error {
//		_, err := sess.Run(ctx, nextBatch(), nil, []*graph.Node{update})
//		return err
//	})
//
// # On a cluster
//
// With between-graph replication every worker runs this program. [ReplicaDeviceSetter] puts the
// variables on the parameter servers, where the workers find each other's:
//
//	s := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{
//		Cluster: spec, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", task),
//	}))
//
// Each worker applies its gradients when it has them. [SyncReplicasOptimizer] makes them train in
// step instead, on the average of their gradients. Worker 0 is the chief, for whom the others wait.
// Large variables are divided with [NewPartitioned].
//
// # What is left
//
// A [Saver] writes checkpoints, of which the last that was reported survives any crash, and
// [SavedModelHook] the finished model, for package weft to run and for TensorFlow to serve. The
// folder examples has whole programs.
package train
