package checkpoint_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/tensor"
)

func Example() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	prefix := filepath.Join(dir, "model.ckpt-100")

	w, err := checkpoint.Create(prefix)
	if err != nil {
		panic(err)
	}
	defer w.Abort()
	weights, words := tensor.Vector[float32](0.5, -1), tensor.Vector("a", "b")
	if err := w.Add("weights", &weights); err != nil {
		panic(err)
	}
	if err := w.Add("words", &words); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}

	r, err := checkpoint.Open(prefix)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for _, info := range r.Tensors() {
		t, err := r.Read(info.Name)
		if err != nil {
			panic(err)
		}
		fmt.Println(info.Name, info.DType.Name(), info.Shape, t.Go())
	}
	// Output:
	// weights float32 [2] [0.5 -1]
	// words string [2] [a b]
}
