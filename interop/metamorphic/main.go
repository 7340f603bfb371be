// Program metamorphic writes random programs of package internal/test/metamorphic for TensorFlow to
// run. interop/test_metamorphic.py runs it. Each line is a JSON object with the graph, the feeds
// and fetches of each step, and the results of the reference interpreter.
//
//	go run ./interop/metamorphic -programs 200 -first 1000 [-scripts 'internal/test/metamorphic/testdata/*.txt'] > programs.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/test/metamorphic"
	_ "github.com/weft-ml/weft/kernels" // operation definitions
	"github.com/weft-ml/weft/tensor"
)

// job is one line: a graph and its steps. Tensors and graphs are serialized protocol buffers.
type job struct {
	Name    string              `json:"name"` // file name or seed
	Text    string              `json:"text"`
	Graph   []byte              `json:"graph"`
	Init    []string            `json:"init"`
	Fetches []string            `json:"fetches"`
	Feeds   []map[string][]byte `json:"feeds"` // by step
	Want    [][][]byte          `json:"want"`  // by step, in the order of the fetches
}

func main() {
	programs := flag.Int("programs", 200, "number of random programs")
	first := flag.Uint64("first", 0, "seed of the first program")
	scripts := flag.String("scripts", "", "glob pattern of files with additional programs")
	devices := flag.Int("devices", 3, "number of devices that the nodes are placed on")
	flag.Parse()
	if err := write(*programs, *first, *scripts, *devices); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(programs int, first uint64, scripts string, devices int) error {
	var names []string
	for i := range devices {
		names = append(names, fmt.Sprintf("/device:CPU:%d", i))
	}
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	files, err := filepath.Glob(scripts)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		p, err := metamorphic.Parse(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := encode(encoder, file, p, names); err != nil {
			return err
		}
	}
	for seed := range uint64(programs) {
		seed += first
		if err := encode(encoder, fmt.Sprintf("seed %d", seed), metamorphic.Generate(seed), names); err != nil {
			return err
		}
	}
	return out.Flush()
}

func encode(to *json.Encoder, name string, p *metamorphic.Program, devices []string) error {
	p = p.WithoutFramesInFunctions()
	g, err := metamorphic.Build(p, metamorphic.Options{Devices: devices, GuardCalls: true})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	j := job{Name: name, Text: p.String(), Init: g.Init, Fetches: g.Fetches}
	def, err := pbconv.GraphToProto(g.Def)
	if err != nil {
		return err
	}
	if j.Graph, err = proto.Marshal(def); err != nil {
		return err
	}
	for step, want := range metamorphic.Interpret(p) {
		feeds := map[string][]byte{}
		for i := range p.Feeds {
			if feeds[g.Feeds[i]], err = marshal(&p.Feeds[i].Values[step]); err != nil {
				return err
			}
		}
		j.Feeds = append(j.Feeds, feeds)
		values := make([][]byte, len(want))
		for i := range want {
			if values[i], err = marshal(&want[i]); err != nil {
				return err
			}
		}
		j.Want = append(j.Want, values)
	}
	return to.Encode(j)
}

func marshal(t *tensor.Tensor) ([]byte, error) {
	p, err := pbconv.TensorToProto(t)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(p)
}
