package serve_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/weft-ml/weft/local" // the target "local"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
)

// Load a trained model in this process and run its default signature.
func ExampleLoad() {
	ctx := context.Background()
	m, err := serve.Load(ctx, "local", "../testdata/functions")
	if err != nil {
		panic(err)
	}
	defer m.Close()
	sig, err := m.Signature(savedmodel.DefaultSignature)
	if err != nil {
		panic(err)
	}
	out, err := sig.Run(ctx, map[string]any{"x": []float32{0.5, 1.25}, "ids": []int32{2}})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.4f\n", out["y"])
	// Output: [0.0308 1.9159]
}

// Write a model with its variables as constants to one file.
func ExampleFreeze() {
	dir, err := os.MkdirTemp("", "frozen")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	frozen, err := serve.Freeze(context.Background(), "local", "../testdata/lookups", []string{"y"})
	if err != nil {
		panic(err)
	}
	if err := savedmodel.WriteGraph(filepath.Join(dir, "model.pb"), frozen); err != nil {
		panic(err)
	}
	for _, n := range frozen.Nodes {
		if n.Op == "Const" || n.Op == "Placeholder" {
			fmt.Println(n.Op, n.Name)
		}
	}
	// Unordered output:
	// Placeholder x
	// Const w
	// Const b
}
