package logging

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestRecorded compares kernels and shape functions with recorded results of TensorFlow.
func TestRecorded(t *testing.T) { kerneltest.RunCases(t, "testdata/logging.txt", "testdata/debug.txt") }

// stderr returns what f writes to standard error.
func stderr(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	saved := os.Stderr
	os.Stderr = w
	f()
	os.Stderr = saved
	w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPrint(t *testing.T) {
	node, err := kerneltest.NewEnv().Make("Print", opdef.Attrs{
		"T": tensor.Int32, "U": []tensor.DType{tensor.Float32, tensor.String}, "message": "here: ", "first_n": int64(2), "summarize": int64(2),
	})
	if err != nil {
		t.Fatal(err)
	}
	text := stderr(t, func() {
		for i := range int32(3) {
			out, err := node.Run(tensor.Scalar(i), tensor.Vector[float32](1, 2, 3), tensor.Scalar("s"))
			if err != nil || tensor.Value[int32](&out[0]) != i {
				t.Errorf("the input is not passed on: %v", err)
			}
		}
	})
	if want := "here: [1 2...][s]\n"; text != want+want {
		t.Errorf("printed %q", text)
	}
}

func TestPrintV2(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, line := range []string{"a", "b"} {
		kerneltest.Run(t, "PrintV2", opdef.Attrs{"output_stream": "file://" + path, "end": ";"}, tensor.Scalar(line))
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "a;b;" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	for _, stream := range []string{"stderr", "log(warning)"} {
		text := stderr(t, func() {
			kerneltest.Run(t, "PrintV2", opdef.Attrs{"output_stream": stream}, tensor.Scalar("x"))
		})
		if text != "x\n" {
			t.Errorf("%s: printed %q", stream, text)
		}
	}
	_, err := kerneltest.Try("PrintV2", opdef.Attrs{"output_stream": "file:///proc/none"}, tensor.Scalar("x"))
	if status.CodeOf(err) != status.NotFound {
		t.Errorf("a file that cannot be: %v", err)
	}
	_, err = kernel.Default.Find("PrintV2", kernel.CPU, nil).New(&kernel.Construction{Attrs: opdef.Attrs{"output_stream": "tape"}})
	if want := "Unknown output stream: tape, Valid streams are: stdout stderr log(info) log(warning) log(error)"; err == nil || err.Error() != want {
		t.Errorf("an unknown stream: %v", err)
	}
}

func TestTimestamp(t *testing.T) {
	before := time.Now()
	out := kerneltest.Run(t, "Timestamp", nil)
	got := time.UnixMicro(int64(tensor.Value[float64](&out[0]) * 1e6))
	if got.Before(before.Add(-time.Millisecond)) || got.After(time.Now().Add(time.Millisecond)) {
		t.Errorf("the time is %v", got)
	}
}
