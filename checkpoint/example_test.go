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

// create writes a checkpoint with one tensor, or one slice of it.
func create(prefix string, add func(w *checkpoint.Writer) error) error {
	w, err := checkpoint.Create(prefix)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := add(w); err != nil {
		return err
	}
	return w.Close()
}

// Write the halves of a vector to two checkpoints, as two tasks of a cluster do, merge these, and
// read a slice that overlaps both halves.
func ExampleMerge() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var parts []string
	for i := range int64(2) {
		half := tensor.Vector(10*i, 10*i+1, 10*i+2)
		prefix := filepath.Join(dir, fmt.Sprintf("part-%d", i))
		err := create(prefix, func(w *checkpoint.Writer) error {
			return w.AddSlice("v", tensor.Shape{6}, checkpoint.Slice{{Start: 3 * i, Length: 3}}, &half)
		})
		if err != nil {
			panic(err)
		}
		parts = append(parts, prefix)
	}
	whole := filepath.Join(dir, "model.ckpt")
	if err := checkpoint.Merge(parts, whole, false); err != nil {
		panic(err)
	}

	r, err := checkpoint.Open(whole)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	middle, err := r.ReadSlice("v", checkpoint.Slice{{Start: 2, Length: 2}})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Tensors()[0].Slices, middle.Go())
	// Output: [0,3 3,3] [2 10]
}

// Find the latest checkpoint in a folder. A folder without a state file has none.
func ExampleLatest() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	latest, err := checkpoint.Latest(dir)
	fmt.Printf("%q %v\n", latest, err)

	prefix := filepath.Join(dir, "model.ckpt-100")
	one := tensor.Scalar(float32(1))
	if err := create(prefix, func(w *checkpoint.Writer) error { return w.Add("v", &one) }); err != nil {
		panic(err)
	}
	state := checkpoint.State{Latest: prefix, All: []string{prefix}}
	if err := state.Write(dir, checkpoint.StateFile, false); err != nil {
		panic(err)
	}
	latest, err = checkpoint.Latest(dir)
	fmt.Printf("%q %v\n", filepath.Base(latest), err)
	// Output:
	// "" <nil>
	// "model.ckpt-100" <nil>
}
