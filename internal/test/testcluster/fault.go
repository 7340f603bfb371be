package testcluster

import (
	"context"
	"slices"
	"sync"

	"github.com/weft-ml/weft/cluster"
)

// Call is one call between two tasks.
type Call struct {
	Method   string // of WorkerService
	From, To cluster.Task
	StepID   int64 // 0 for methods without a step
}

// Interceptor is called before every call between two tasks. If it returns an error, the caller
// receives that error. It may block to delay the call. It must be safe for concurrent use.
type Interceptor func(ctx context.Context, call Call) error

// Intercept sets the interceptor of all further calls; nil removes it.
func (c *Cluster) Intercept(f Interceptor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interceptor = f
}

// Fail returns an interceptor that fails calls of a method to a task with err.
func Fail(method, job string, index int, err error) Interceptor {
	return func(_ context.Context, call Call) error {
		if call.is(method, job, index) {
			return err
		}
		return nil
	}
}

// Drop returns an interceptor that blocks calls of a method to a task until their context ends.
func Drop(method, job string, index int) Interceptor {
	return func(ctx context.Context, call Call) error {
		if !call.is(method, job, index) {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// Freeze returns an interceptor under which a task neither answers nor makes calls, as if its
// process were stopped.
func Freeze(job string, index int) Interceptor {
	frozen := cluster.Task{Job: job, Index: index}
	return func(ctx context.Context, call Call) error {
		if call.To != frozen && call.From != frozen {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// Hold returns an interceptor that blocks calls of a method to a task until release is closed.
func Hold(method, job string, index int, release <-chan struct{}) Interceptor {
	return func(ctx context.Context, call Call) error {
		if !call.is(method, job, index) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-release:
			return nil
		}
	}
}

func (c Call) is(method, job string, index int) bool {
	return c.Method == method && c.To == cluster.Task{Job: job, Index: index}
}

// Calls returns the calls between two tasks since the previous call of Calls.
func (c *Cluster) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.calls
	c.calls = nil
	return out
}

// Count returns the number of calls of a method.
func Count(calls []Call, method string) int {
	return len(slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return c.Method != method }))
}

// Once returns an interceptor that calls f before the first call of a method to a task. That call
// then proceeds.
func Once(method, job string, index int, f func()) Interceptor {
	var once sync.Once
	return func(_ context.Context, call Call) error {
		if call.is(method, job, index) {
			once.Do(f)
		}
		return nil
	}
}
