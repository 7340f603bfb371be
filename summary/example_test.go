package summary_test

import (
	"fmt"
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
