package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
)

// TestReport examines devices in software. Their kernels are the ones that they are compared with.
func TestReport(t *testing.T) {
	var progress bytes.Buffer
	r := &report{progress: &progress}
	devices := hostgpu.Open(hostgpu.Options{Devices: 2, Memory: 256 << 20, Peers: true})
	driver.Replace("host", func() ([]driver.Device, error) { return devices, nil })
	for i := range networks { // the reference is slow
		networks[i].inputs[0] = 2
	}
	r.examine(driver.Driver{Name: "host", Devices: devices}, options{
		stress: 2, kernels: "^(add|softmax|matmul32)_f32", steps: 2, python: "no-python", networks: "perceptron",
	})
	if r.Failed > 0 {
		t.Fatalf("%d checks failed:\n%s", r.Failed, &progress)
	}
	r.add("host:0", "broken", time.Now(), "", os.ErrInvalid)
	dir := t.TempDir()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "weft-gpu-report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read report
	if err := json.Unmarshal(data, &read); err != nil || read.Failed != 1 || len(read.Devices) != 2 || len(read.Figures) < 20 {
		t.Errorf("%v: %d failed, %d devices, %d figures", err, read.Failed, len(read.Devices), len(read.Figures))
	}
	text, err := os.ReadFile(filepath.Join(dir, "weft-gpu-report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| host:0 | broken | **failed** invalid argument |", "| host:1 | stress | ok", "copy from device 1 to 0", "kernels of family binary",
		"longest kernels of a step, perceptron", "| host:1 | TensorFlow | ok not measured: "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestPanicsAreErrors(t *testing.T) {
	if err := protect(func() error { panic("on purpose") }); err == nil || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("got %v", err)
	}
}

// TestUsage runs the program with a driver and a flag that are not there.
func TestUsage(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-driver", "absent", "-out", t.TempDir()}, &out); err == nil || !strings.Contains(out.String(), "absent") {
		t.Errorf("%v: %s", err, &out)
	}
	if err := run([]string{"-unknown"}, &out); err == nil {
		t.Error("an unknown flag is accepted")
	}
}
