package nn

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// The beams of a search are counted. The tree keeps all of them, and a step can add as many as the
// beam is wide.
func TestMemoryOfBeams(t *testing.T) {
	const steps, classes = 4, 200
	logits := make([]float32, steps*classes)
	for i := range logits {
		logits[i] = float32(i%classes) / classes
	}
	in, err := tensor.FromSlice(tensor.Shape{steps, 1, classes}, logits)
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 128<<20, "CTCBeamSearchDecoder",
		opdef.Attrs{"beam_width": int64(10_000_000), "top_paths": int64(1), "merge_repeated": true, "T": tensor.Float32},
		in, tensor.Vector[int32](steps))
}

// A search ends when its step ends.
func TestBeamsEndWithStep(t *testing.T) {
	const steps, classes = 3, 200
	in, err := tensor.Zeros(tensor.Float32, tensor.Shape{steps, 1, classes})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelled(t, "CTCBeamSearchDecoder",
		opdef.Attrs{"beam_width": int64(10_000_000), "top_paths": int64(1), "merge_repeated": true, "T": tensor.Float32},
		in, tensor.Vector[int32](steps))
}

// The loss of each sequence of a batch ends when its step ends.
func TestLossEndsWithStep(t *testing.T) {
	in, err := tensor.Zeros(tensor.Float32, tensor.Shape{2, 1, 3})
	if err != nil {
		t.Fatal(err)
	}
	at, err := tensor.FromSlice(tensor.Shape{1, 2}, []int64{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelled(t, "CTCLoss", opdef.Attrs{"ctc_merge_repeated": true, "T": tensor.Float32},
		in, at, tensor.Vector[int32](0), tensor.Vector[int32](2))
}

// An error names some of many labels.
func TestTextOfLabels(t *testing.T) {
	if got := joined([]int32{1, 20, 3}); got != "1,20,3" {
		t.Errorf("got %s", got)
	}
	if got := joined(make([]int32, 1<<20)); len(got) > 4*mostJoined {
		t.Errorf("got %d bytes", len(got))
	}
}

// An error names some of the sizes in an input.
func TestTextOfSizes(t *testing.T) {
	if got := joinInts([]int64{1, 2, 2, 1}); got != "1,2,2,1" {
		t.Errorf("got %s", got)
	}
	if got := joinInts(make([]int64, 1<<20)); len(got) > 1000 {
		t.Errorf("got %d bytes", len(got))
	}
}

// The reach of this window is 1 modulo 2^64.
func TestSizesOfWindows(t *testing.T) {
	in, err := tensor.Zeros(tensor.Float32, tensor.Shape{1, 9, 9, 1})
	if err != nil {
		t.Fatal(err)
	}
	filter, err := tensor.Zeros(tensor.Float32, tensor.Shape{5, 5, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, sizes := range map[string][]int64{"dilations": {1, 1 << 62, 1 << 62, 1}, "explicit_paddings": {0, 0, 1 << 62, 1 << 62, 0, 0, 0, 0}} {
		attrs := opdef.Attrs{
			"T": tensor.Float32, "strides": []int64{1, 1, 1, 1}, "dilations": []int64{1, 1, 1, 1}, "padding": "VALID", "data_format": "NHWC",
		}
		if attrs[name] = sizes; name == "explicit_paddings" {
			attrs["padding"] = "EXPLICIT"
		}
		if _, err := kerneltest.Try("Conv2D", attrs, in, filter); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The order of a row does not make the search for an element take the square of its length. The
// values of the row are chosen while the search asks for them (McIlroy, 1999).
func TestTimeOfNthElement(t *testing.T) {
	const n, later = 4000, 1 << 30
	row, vals := make([]int32, n), make([]int32, n)
	for i := range row {
		row[i], vals[i] = int32(i), later
	}
	candidate, next, asked := int32(0), int32(0), 0
	o := intOrder[int32](0)
	o.less = func(a, b int32) bool {
		if vals[a] == later && vals[b] == later {
			fixed := b
			if a == candidate {
				fixed = a
			}
			vals[fixed] = next
			next++
		}
		if vals[a] == later {
			candidate = a
		} else if vals[b] == later {
			candidate = b
		}
		return vals[a] < vals[b]
	}
	o.nth(slices.Clone(row), n-1)
	o.less = func(a, b int32) bool {
		asked++
		return vals[a] < vals[b]
	}
	o.nth(slices.Clone(row), n-1)
	if asked > 100*n {
		t.Errorf("%d comparisons for %d elements", asked, n)
	}
}
