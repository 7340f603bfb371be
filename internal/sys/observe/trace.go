package observe

import "context"

// A Tracer makes spans of the work of a task. Its methods are called concurrently, on the
// goroutines that do the work, and must not block. Each span is a child of that in ctx. The work
// gets the returned context, and end is called once.
type Tracer interface {
	// StepBegan begins the span of a step of a session whose master is this task. tasks is the
	// number of tasks that run a part of it. end gets the number of the step.
	StepBegan(ctx context.Context, session string, tasks int) (step context.Context, end func(id int64, err error))
	// FunctionBegan begins the span of a function that a TensorFlow 2 client calls.
	FunctionBegan(ctx context.Context, name string) (call context.Context, end func(err error))
}
