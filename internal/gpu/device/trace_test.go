package device_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/tensor"
)

// kernelTime is the time of a device_test_wait at least.
const kernelTime = time.Millisecond

func init() {
	device.Register(device.Program{
		Name: "device_test_times", Kernels: []string{"device_test_wait"}, Text: func(driver.Language) (string, []string) { return "", nil },
	})
	hostgpu.RegisterKernel("device_test_wait", func(*hostgpu.Args) { <-time.After(kernelTime) })
}

func wait(t *testing.T, d *device.Device) {
	t.Helper()
	if err := d.LaunchLine("device_test_wait", 1000); err != nil {
		t.Fatal(err)
	}
}

func TestTrace(t *testing.T) {
	devices := open(t, 2, time.Millisecond, true)
	d := devices[0]
	wait(t, d) // before the trace
	before := time.Now()
	first, second := d.StartTrace(100), d.StartTrace(1)
	if !d.Traced() {
		t.Error("the device is not traced")
	}
	leave := d.EnterNode("a")
	wait(t, d)
	other := d.EnterNode("b")
	wait(t, d) // of a or b
	leave()
	wait(t, d)
	other()
	small := upload(t, d, floats(10, func(int) float32 { return 1 }))
	large := upload(t, d, floats(1<<16, func(int) float32 { return 1 }))
	if err := d.Fill(&small, 0); err != nil { // not traced
		t.Fatal(err)
	}
	clone, err := d.Clone(&small)
	if err != nil {
		t.Fatal(err)
	}
	clone.Release()
	peer := upload(t, devices[1], floats(10, func(int) float32 { return 2 }))
	taken := make(chan error)
	d.Take(&peer, func(v tensor.Tensor, err error) {
		v.Release()
		taken <- err
	})
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	peer.Release()
	download(t, d, small)
	download(t, d, large)
	_, lost, err := second.Stop()
	if err != nil || lost != 8 {
		t.Errorf("the trace of one operation has lost %d, error %v", lost, err)
	}
	ops, lost, err := first.Stop()
	if err != nil || lost != 0 {
		t.Fatal(lost, err)
	}
	after := time.Now()
	if d.Traced() {
		t.Error("the device is traced after the end")
	}
	var got strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&got, "%d %s %s %s\n", o.Stream, o.Node, o.Name, o.Detail)
		if o.Queued.Before(before) || o.Start.Before(o.Queued) || o.Start.Add(o.Took).After(after) {
			t.Errorf("%s is queued at %v, starts at %v and takes %v", o.Name, o.Queued.Sub(before), o.Start.Sub(before), o.Took)
		}
		if !o.Copy && o.Took < kernelTime {
			t.Errorf("%s takes %v", o.Name, o.Took)
		}
	}
	want := `1 a device_test_wait grid:4,1,1 block:256,1,1
1  device_test_wait grid:4,1,1 block:256,1,1
1 b device_test_wait grid:4,1,1 block:256,1,1
1  MemcpyH2D kind_src:pinned kind_dst:device size:40 async:1
2  MemcpyH2D kind_src:pinned kind_dst:device size:262144 async:1
1  MemcpyD2D kind_src:device kind_dst:device size:40 async:1
1  MemcpyP2P kind_src:device kind_dst:device size:40 async:1
1  MemcpyD2H kind_src:device kind_dst:pinned size:40 async:1
3  MemcpyD2H kind_src:device kind_dst:pinned size:262144 async:1
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

// TestKernelTime compares the estimated time of kernels with the time that they take at least. A
// sample that a busy machine delays stands for others, so there is no largest time.
func TestKernelTime(t *testing.T) {
	d := open(t, 1, 0, false)[0]
	const n = 300
	for range n {
		wait(t, d)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	// The last sample stands for the kernels before it.
	if got := d.Stats().KernelTime; got < n*kernelTime/2 {
		t.Errorf("%d kernels took at least %v; the estimate is %v", n, n*kernelTime, got)
	}
}

// TestUnsupported checks that a device stays usable when a library does not support the arguments.
func TestUnsupported(t *testing.T) {
	d := open(t, 1, 0, false)[0]
	err := d.Do("library", func(driver.Stream) error { return fmt.Errorf("no such type: %w", driver.ErrUnsupported) })
	if !errors.Is(err, driver.ErrUnsupported) || d.Err() != nil {
		t.Errorf("got %v, and the device has the error %v", err, d.Err())
	}
	tr := d.StartTrace(10)
	if err := d.Do("library", func(driver.Stream) error { return driver.ErrUnsupported }); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("in a trace: %v", err)
	}
	if ops, _, err := tr.Stop(); len(ops) != 0 || err != nil {
		t.Errorf("the trace has %v, error %v", ops, err)
	}
	wait(t, d)
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
}
