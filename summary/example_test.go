package summary_test

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weft-ml/weft/summary"
)

func Example() {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	w, err := summary.NewWriter(dir, summary.Options{})
	if err != nil {
		panic(err)
	}
	for step := range int64(3) {
		loss := summary.Value{Tag: "loss", Data: 1 / float32(step+1)}
		weights := summary.Value{Tag: "weights", Data: summary.NewHistogram([]float64{-1, 0, 2})}
		if err := w.Add(step, loss, weights); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}

	r, err := summary.Open(w.Path())
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for e, err := range r.Events() {
		if err != nil {
			panic(err)
		}
		for _, v := range e.Values {
			if loss, ok := v.Data.(float32); ok {
				fmt.Printf("step %d: %s %.2f\n", e.Step, v.Tag, loss)
			}
		}
	}
	// Output:
	// step 0: loss 1.00
	// step 1: loss 0.50
	// step 2: loss 0.33
}

// Follow a file while it is written: after io.EOF a reader continues with new events.
func ExampleReader_Next() {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	w, err := summary.NewWriter(dir, summary.Options{})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	r, err := summary.Open(w.Path())
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for step := range int64(2) {
		if err := w.Add(step, summary.Value{Tag: "loss", Data: float32(1)}); err != nil {
			panic(err)
		}
		if err := w.Flush(); err != nil {
			panic(err)
		}
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				fmt.Println("end of file")
				break
			}
			if err != nil {
				panic(err)
			}
			if e.FileVersion == "" {
				fmt.Println("step", e.Step)
			}
		}
	}
	// Output:
	// step 0
	// end of file
	// step 1
	// end of file
}

// Count values in TensorFlow's buckets.
func ExampleNewHistogram() {
	h := summary.NewHistogram([]float64{1, 1, 4})
	fmt.Println(h.Count, h.Min, h.Max, h.Sum, h.SumSquares)
	// Output: 3 1 4 6 18
}
