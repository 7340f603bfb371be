// Program files writes files of every kind for TensorFlow to read, and reads files that TensorFlow
// wrote. interop/test_files.py runs it.
//
//	go run ./interop/files write DIR    # prints the contents of the files as JSON
//	go run ./interop/files read DIR     # the same for files written by TensorFlow
//	go run ./interop/files data DIR     # pipelines of package data as graphs, and their batches
//	go run ./interop/files keras DIR    # exports the model that interop/keras/served.py has saved
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	_ "github.com/weft-ml/weft/local"
)

// contents maps the name of a file and a name within it to a value.
type contents map[string]map[string]any

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: files write|read|data|keras DIR")
	}
	steps := map[string][]func(context.Context, string, contents) error{
		"write": {writeCheckpoints, writeModels, writeEvents, writeRecords},
		"read":  {readCheckpoints, readModels, readEvents, readRecords},
		"data":  {writePipelines},
		"keras": {exportKeras},
	}[args[0]]
	if steps == nil {
		return fmt.Errorf("%s: want write, read, data or keras", args[0])
	}
	held := contents{}
	for _, step := range steps {
		if err := step(ctx, args[1], held); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(held)
}
