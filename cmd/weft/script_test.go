package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

var rewrite = flag.Bool("rewrite", false, "write the output of the commands to testdata/*.txt")

// TestScripts runs the commands in testdata/*.txt, lines that begin with "$ weft", and compares
// their output with the lines that follow. The last line is the exit status, unless that is 0.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, from := range map[string]string{"models": "../../savedmodel/testdata", "old": "../../internal/test/oldfiles/testdata"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	writeSamples(t)
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) { runScript(t, filepath.Join(here, script)) })
	}
}

func runScript(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		command, isCommand := strings.CutPrefix(strings.TrimSpace(line), "$ weft ")
		switch {
		case isCommand:
			got.WriteString(line + execute(t, splitArgs(command)))
		case strings.HasPrefix(line, "#"):
			got.WriteString(line)
		case strings.TrimSpace(line) == "":
			got.WriteString(line)
		}
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.String() != string(text) {
		t.Errorf("the output is\n%s", got.String())
	}
}

// execute returns the output of a command and its error in the form of the program.
func execute(t *testing.T, args []string) string {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		fmt.Fprintf(&out, "weft: %v\nexit status %d\n", err, exitStatus(err))
	}
	return out.String()
}

// splitArgs splits a command line at spaces that are not in single quotes.
func splitArgs(line string) []string {
	var args []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	return args
}

// writeSamples writes the files that the scripts use.
func writeSamples(t *testing.T) {
	t.Helper()
	check := func(errs ...error) {
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	w, err := summary.NewWriter("events", summary.Options{Now: func() time.Time { return now }})
	check(err)
	picture, err := summary.NewImage(1, 1, 3, []byte{1, 2, 3})
	check(err)
	check(w.AddGraph([]byte{}), w.AddRunMetadata(1, summary.RunMetadata{Tag: "step1"}), w.AddSession(0, summary.SessionLog{Status: summary.SessionStart}))
	for step := range int64(3) {
		check(w.Add(step, summary.Value{Tag: "loss", Data: 1 / float32(step+1)}))
	}
	check(w.Add(2, summary.Value{Tag: "weights", Data: summary.NewHistogram([]float64{-1, 2})}, summary.Value{Tag: "digit", Data: picture},
		summary.Text("note", "*good*")), w.Close())
	for name, last := range map[string]float32{"a": 3, "b": 4} {
		c, err := checkpoint.Create(filepath.Join("ckpt", name))
		check(err)
		x, words, only := tensor.Vector(1, 2, last), tensor.Vector("x", "\xff"), tensor.Scalar(int64(1))
		check(c.Add("v", &x), c.Add("words", &words), c.Add("only-"+name, &only))
		if name == "a" {
			half, full := tensor.Vector[float64](1, 2), tensor.Shape{4}
			check(c.AddSlice("parts", full, checkpoint.Slice{{Start: 0, Length: 2}}, &half),
				c.AddSlice("parts", full, checkpoint.Slice{{Start: 2, Length: 2}}, &half))
		}
		check(c.Close())
	}
	writeClusterModel(t)
	check(os.MkdirAll("broken", 0o700))
	for _, file := range []string{checkpoint.IndexFile("ckpt/a"), checkpoint.DataFile("ckpt/a", 0, 1)} {
		b, err := os.ReadFile(file)
		check(err)
		if filepath.Ext(file) != ".index" {
			b[0] ^= 1
		}
		check(os.WriteFile(filepath.Join("broken", filepath.Base(file)), b, 0o600))
	}
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(3, 3)))
	op.MatMul(s.Named("y"), x, x)
	g, err := s.Finalize()
	check(err)
	wrong := g.Def()
	// op.MatMul would reject the shape
	wrong.Nodes[0].Attrs = opdef.Attrs{"dtype": tensor.Float32, "shape": tensor.MakePartial(2, 3)}
	check(savedmodel.WriteGraph("wrong.pb", wrong),
		os.WriteFile("unknown.pbtxt", []byte(`node { name: "a" op: "NoSuchThing" } node { name: "b" op: "NoOp" input: "^a" }`), 0o600))
}

// writeClusterModel writes models of a cluster and of other devices: the nodes of models/ps have
// the device of a parameter server, those of models/gpu that of a GPU.
func writeClusterModel(t *testing.T) {
	t.Helper()
	for name, device := range map[string]string{"ps": "/job:ps/task:0", "gpu": "/device:GPU:0"} {
		m, err := savedmodel.Open("models/loop")
		if err != nil {
			t.Fatal(err)
		}
		g := m.MetaGraphs[0]
		for i := range g.Graph.Nodes {
			g.Graph.Nodes[i].Device = device
		}
		for _, f := range g.Graph.Library {
			for i := range f.Nodes {
				f.Nodes[i].Device = device
			}
		}
		b, err := savedmodel.Create(filepath.Join("models", name))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Abort()
		if err := os.CopyFS(filepath.Dir(b.Variables()), os.DirFS("models/loop/variables")); err != nil {
			t.Fatal(err)
		}
		if err := b.Add(g); err != nil {
			t.Fatal(err)
		}
		if err := b.Save(); err != nil {
			t.Fatal(err)
		}
	}
}
