//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/drivertest"
)

// standIn is why there is no stand-in for libcuda, or nil.
var standIn error

// TestMain builds a stand-in for libcuda, unless WEFT_CUDA_DEVICE=1 asks for the GPUs of the
// machine.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Getenv("WEFT_CUDA_DEVICE") == "1" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "standin")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "libcuda.so.1")
		if cc, err := exec.LookPath("cc"); err != nil {
			standIn = err
		} else if out, err := exec.Command(cc, "-shared", "-fPIC", "-O2", "-o", path, "testdata/standin.c", "-lpthread").CombinedOutput(); err != nil {
			standIn = fmt.Errorf("%w: %s", err, out)
		}
		os.Setenv("WEFT_CUDA", path)
		return m.Run()
	}())
}

func open(t *testing.T) []driver.Device {
	t.Helper()
	if standIn != nil {
		t.Skip(standIn)
	}
	devices, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	before := violations(t)
	t.Cleanup(func() {
		if n := violations(t) - before; n != 0 {
			t.Errorf("the stand-in refused %d calls", n)
		}
	})
	return devices
}

// violations returns the number of calls that the stand-in refused, or 0 without one.
func violations(t *testing.T) int {
	t.Helper()
	l, err := dl.Open("WEFT_CUDA", "libcuda.so.1")
	if err != nil {
		t.Fatal(err)
	}
	var standin struct {
		StandinViolations uintptr `dl:"optional"`
	}
	if err := l.Bind("cu", &standin); err != nil {
		t.Fatal(err)
	}
	if standin.StandinViolations == 0 {
		return 0
	}
	return int(int32(dl.Call(standin.StandinViolations)))
}

func TestDevices(t *testing.T) {
	devices := open(t)
	for i, d := range devices {
		for _, o := range drivertest.Check(d) {
			if o.Err != nil {
				t.Errorf("device %d: %s: %v", i, o.Name, o.Err)
			}
		}
	}
	for _, o := range drivertest.Peers(devices) {
		if o.Err != nil {
			t.Errorf("%s: %v", o.Name, o.Err)
		}
	}
}

func TestStress(t *testing.T) {
	devices := open(t)
	var wg sync.WaitGroup
	for _, d := range devices { // at once, so that threads change their contexts
		wg.Go(func() {
			if err := drivertest.Stress(d, 8, 40); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestErrorsNameTheCause(t *testing.T) {
	d := open(t)[0]
	_, err := d.Load(".version 7.8\nnonsense")
	if err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_INVALID_PTX") || !strings.Contains(err.Error(), "ptxas") {
		t.Errorf("broken PTX: %v", err)
	}
	if _, err := d.Load("__kernel void f() {}"); err == nil || !strings.Contains(err.Error(), "not PTX") {
		t.Errorf("OpenCL C: %v", err)
	}
	if _, err := d.Alloc(1 << 40); !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "1099511627776") {
		t.Errorf("a terabyte: %v", err)
	}
	m, err := drivertest.Load(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Kernel("absent"); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("no kernel: %v", err)
	}
}

// TestMistakesAreRefused checks the stand-in itself.
func TestMistakesAreRefused(t *testing.T) {
	if standIn != nil || os.Getenv("WEFT_CUDA_DEVICE") == "1" {
		t.Skip("there is no stand-in")
	}
	devices, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	a, b := devices[0].(*device), devices[1].(*device)
	s, err := a.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	mine, err1 := a.Alloc(1024)
	other, err2 := b.Alloc(1024)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	own := s.(*stream)
	for name, f := range map[string]func() error{
		"memory of another device": func() error { return s.Fill(other, 0) },
		"outside an allocation":    func() error { return s.Fill(mine.Slice(0, 2048), 0) },
		"stream of another device": func() error { return (&stream{device: b, handle: own.handle}).Sync() },
		"free of another's":        func() error { return a.Free(other) },
	} {
		if err := f(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := errors.Join(s.Close(), a.Free(mine), b.Free(other)); err != nil {
		t.Error(err)
	}
	if err := s.Fill(mine, 0); err == nil {
		t.Error("work on a closed stream is accepted")
	}
}
