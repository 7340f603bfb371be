// Package train trains models. It has variables and their initial values, optimizers, the placement
// of variables on parameter servers, checkpoints, and sessions that recover from the loss of tasks.
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
// Variables and the slots that optimizers keep for them have TensorFlow's names, so that
// checkpoints are interchangeable. As in package op, functions that add nodes return no error:
// build errors are collected in the scope, and [op.Scope.Finalize] returns all of them.
//
// # Training
//
// [MonitoredTrainingSession] initializes the model or restores its latest checkpoint, saves
// checkpoints, writes summaries, and continues in a new session when a task of the cluster is lost.
// Hooks ([SessionRunHook]) do the rest of the work around the steps:
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
// With between-graph replication every worker runs this program. [ReplicaDeviceSetter] places the
// variables on the parameter servers, where all workers share them:
//
//	s := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{
//		Cluster: spec, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", task),
//	}))
//
// Each worker applies its gradients as soon as it has computed them. With [SyncReplicasOptimizer]
// the workers train synchronously, on the average of their gradients. Worker 0 is the chief; the
// other workers wait until it has initialized the model. [NewPartitioned] splits a large variable
// over several parameter servers.
//
// # Results
//
// A [Saver] writes checkpoints. A checkpoint that it has returned survives any later crash.
// [SavedModelHook] exports the trained model for Weft and TensorFlow to serve. The folder examples
// has complete programs.
package train
