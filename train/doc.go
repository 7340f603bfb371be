// Package train trains models: variables and their initial values, optimizers, and the placement of variables on parameter
// servers.
//
//	s := op.NewScope()
//	dev := s.WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: 1, WorkerDevice: "/job:worker/task:0"}))
//	w := train.NewVariable(dev, "w", tensor.Shape{784, 10}, tensor.Float32, train.Zeros)
//	step := train.GlobalStep(dev)
//	loss := …
//	update, err := train.Minimize(dev, &train.GradientDescent{Rate: op.Const(dev, float32(0.5))}, loss, step)
//
// Names of variables and of the slots that optimizers keep for them are those of TensorFlow, so that checkpoints fit.
package train
