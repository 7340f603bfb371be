package function_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/internal/kernels/comm"
	"github.com/weft-ml/weft/internal/runtime/function"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// acrossDevices returns functions that run on two devices.
func acrossDevices(t *testing.T, defs ...graph.FunctionDef) *library {
	l := newLibrary(t, defs...)
	second := *device
	second.Name = "/job:localhost/replica:0/task:0/device:CPU:1"
	l.runtime = function.NewRuntime(l.graph.Library, function.Config{Device: device, Devices: []*kernel.Device{device, &second}})
	l.step.Calls, l.step.Resources = new(stepctx.Calls), kernel.NewResources("step")
	return l
}

// onSecond puts a node on the second device.
func onSecond(def graph.FunctionDef, node int) graph.FunctionDef {
	def.Nodes[node].Device = "/device:CPU:1"
	return def
}

// callAcross calls a function of one argument.
func (l *library) callAcross(name string) error {
	l.Helper()
	f, err := l.runtime.InstantiateAcross(opdef.Func{Name: name})
	if err != nil {
		return err
	}
	came := make(chan error, 1)
	f.Call(&kernel.Context{Step: l.step, Device: device}, []tensor.Tensor{tensor.Scalar(int64(1))}, func(rets []tensor.Tensor, err error) {
		for i := range rets {
			rets[i].Release()
		}
		came <- err
	})
	return <-came
}

const twice = `
	x = PartitionedCall(a0) Tin=int64 Tout=int64 f=@tree
	y = PartitionedCall(a0) Tin=int64 Tout=int64 f=@tree
	z = Add2(x:output:0, y:output:0)
	return z:z:0`

// TestTreeOfCallsAcrossDevices has a function that calls itself twice, so calls spread in breadth.
func TestTreeOfCallsAcrossDevices(t *testing.T) {
	l := acrossDevices(t, onSecond(define(t, "tree", 1, twice), 0))
	if err := l.callAcross("tree"); status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "in function tree") {
		t.Errorf("got %v", err)
	}
	if n := l.step.Calls.Begin(); n != 1 {
		t.Errorf("%d calls have not ended", n-1)
	}
}

// TestPreparedLater calls functions while there is no memory to prepare them, and again when there
// is.
func TestPreparedLater(t *testing.T) {
	var large strings.Builder
	large.WriteString("x0 = Identity(a0) T=int64\n")
	for i := range 2000 {
		fmt.Fprintf(&large, "x%d = Identity(x%d:output:0) T=int64\n", i+1, i)
	}
	large.WriteString("return x2000:output:0")
	for _, name := range []string{"plain", "across"} {
		l := acrossDevices(t, define(t, "plain", 1, large.String()), onSecond(define(t, "across", 1, large.String()), 0))
		membudget.SetLimit(1 << 20)
		err := l.callAcross(name)
		membudget.SetLimit(0)
		if want := "There is not enough memory to prepare function " + name; status.CodeOf(err) != status.ResourceExhausted ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("without memory: %v", err)
		}
		if err := l.callAcross(name); err != nil {
			t.Errorf("with memory: %v", err)
		}
	}
}

func TestManyCalls(t *testing.T) {
	const limit = 100_000
	for _, name := range []string{"plain", "across"} {
		l := acrossDevices(t, define(t, "plain", 1, "x = Add2(a0, a0)\n return x:z:0"),
			onSecond(define(t, "across", 1, "x = Add2(a0, a0)\n return x:z:0"), 0))
		for range limit - 1 {
			l.step.Calls.Begin()
		}
		if err := l.callAcross(name); err != nil {
			t.Fatal(err)
		}
		l.step.Calls.Begin()
		err := l.callAcross(name)
		want := "more than 100000 calls of functions in progress, in function " + name
		if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if n := l.step.Calls.Begin(); n != limit+1 {
			t.Errorf("%d calls, want %d", n, limit+1)
		}
	}
}
