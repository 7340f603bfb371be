package random

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// The maps that are made for an input are counted.
func TestMemoryOfMaps(t *testing.T) {
	const n = 3 << 20
	sampled := make([]int64, n)
	var text strings.Builder
	for i := range sampled {
		sampled[i] = int64(i)
	}
	for i := range 1 << 20 {
		fmt.Fprintf(&text, "%x ", i)
	}
	classes, err := tensor.FromSlice(tensor.Shape{1, 1}, []int64{1})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 96<<20, "ComputeAccidentalHits", opdef.Attrs{"num_true": int64(1)}, classes, tensor.Vector(sampled...))

	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 128<<20, "Skipgram",
		opdef.Attrs{"filename": file, "batch_size": int64(1), "min_count": int64(1), "window_size": int64(1)})
}

// Operations whose time does not follow from the sizes of their inputs end with their step.
func TestEndWithStep(t *testing.T) {
	kerneltest.WantCancelled(t, "RandomPoissonV2", opdef.Attrs{"S": tensor.Int32, "R": tensor.Float64, "dtype": tensor.Int32},
		tensor.Vector[int32](1<<10), tensor.Scalar(1e300))
	seeds := tensor.Vector[int64](1, 2, 3)
	kerneltest.WantCancelled(t, "RandomIndexShuffle", opdef.Attrs{"dtype": tensor.Int64, "Tseed": tensor.Int64, "rounds": int64(1024)},
		tensor.Scalar[int64](1), seeds, tensor.Scalar[int64](1<<62))
}

// A step that waits for another one that draws classes ends.
func TestWaitForClassesEndsWithStep(t *testing.T) {
	c, err := learnedClasses(fileio.Files{}, opdef.Attrs{"range_max": int64(4)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.session(t.Context(), func() {
		if c.session(ctx, func() { t.Error("both sessions run") }) == nil {
			t.Error("the wait ended without an error")
		}
	})
	if err != nil {
		t.Error(err)
	}
}
