package kernels

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

// signatures returns TensorFlow 2.21's operation definitions by name. The file uses the syntax of
// package opdef: a line "op Name flags…", followed by "in", "out" and "attr" lines.
func signatures(t *testing.T) map[string]*opdef.Op {
	t.Helper()
	file, err := os.Open("testdata/ops-2.21.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defs := map[string]*opdef.Def{}
	var def *opdef.Def
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "op":
			name, flags, _ := strings.Cut(rest, " ")
			def = flagged(name, strings.Fields(flags))
			defs[name] = def
		case "in":
			def.In = append(def.In, rest)
		case "out":
			def.Out = append(def.Out, rest)
		case "attr":
			def.Attrs = append(def.Attrs, rest)
		default:
			t.Fatalf("unknown line %q", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	ops := make(map[string]*opdef.Op, len(defs))
	for name, def := range defs {
		if ops[name], err = def.Parse(); err != nil {
			t.Fatal(err)
		}
	}
	return ops
}

func flagged(name string, flags []string) *opdef.Def {
	has := func(flag string) bool { return slices.Contains(flags, flag) }
	return &opdef.Def{
		Name: name, Stateful: has("stateful"), Commutative: has("commutative"), Aggregate: has("aggregate"),
		AllowsUninitialized: has("uninitialized"), Distributed: has("distributed"),
	}
}

// gone are operations of TensorFlow 0.12 to 1.15, those of tf.contrib included, that TensorFlow
// 2.21 lacks.
var gone = []string{
	"CompareAndBitpack", "CreateVariableOp", "GatherTree", "ImageProjectiveTransform", "IteratorSetStatsAggregator",
	"MapAndBatchDatasetV2", "SlideDataset", "SloppyInterleaveDataset", "SparseFeatureCross", "SparseFeatureCrossV2",
}

// TestSignatures checks that every operation is defined as in TensorFlow. Both must accept the same
// graphs, and errors print the definition.
func TestSignatures(t *testing.T) {
	want := signatures(t)
	if len(want) < 1500 {
		t.Fatalf("only %d operations are known", len(want))
	}
	for _, name := range kernel.Default.Names() {
		op, _ := kernel.Default.LookupOp(name)
		if slices.Contains(gone, name) {
			continue
		}
		if want[name] == nil {
			t.Errorf("%s is no operation of TensorFlow", name)
			continue
		}
		for _, d := range differences(op, want[name]) {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// differences lists the parts of a definition that differ from the expected ones.
func differences(have, want *opdef.Op) []string {
	split := func(op *opdef.Op) []string { return strings.Split(strings.TrimSuffix(op.String(), ">"), "; ") }
	h, w := split(have), split(want)
	var out []string
	for _, part := range h {
		if !slices.Contains(w, part) {
			out = append(out, "has "+part)
		}
	}
	for _, part := range w {
		if !slices.Contains(h, part) {
			out = append(out, "lacks "+part)
		}
	}
	if out == nil && !slices.Equal(h, w) {
		out = append(out, fmt.Sprintf("attributes are in the order %q, not %q", h, w))
	}
	return out
}

// TestDifferencesAreFound checks that one difference of each kind is detected.
func TestDifferencesAreFound(t *testing.T) {
	base := opdef.Def{
		Name: "Op", In: []string{"a: T"}, Out: []string{"b: float"}, Attrs: []string{"T: {float, int32} = float", "n: int >= 1"},
	}
	parse := func(change func(*opdef.Def)) *opdef.Op {
		d := base
		d.In, d.Out, d.Attrs = slices.Clone(d.In), slices.Clone(d.Out), slices.Clone(d.Attrs)
		change(&d)
		op, err := d.Parse()
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	want := parse(func(*opdef.Def) {})
	if d := differences(want, want); d != nil {
		t.Errorf("the same operation differs: %q", d)
	}
	for name, change := range map[string]func(*opdef.Def){
		"name of an input":  func(d *opdef.Def) { d.In[0] = "c: T" },
		"type of an output": func(d *opdef.Def) { d.Out[0] = "b: double" },
		"reference":         func(d *opdef.Def) { d.In[0] = "a: Ref(T)" },
		"allowed types":     func(d *opdef.Def) { d.Attrs[0] = "T: {float, int32, bool} = float" },
		"default":           func(d *opdef.Def) { d.Attrs[0] = "T: {float, int32}" },
		"minimum":           func(d *opdef.Def) { d.Attrs[1] = "n: int" },
		"attribute":         func(d *opdef.Def) { d.Attrs = d.Attrs[:1] },
		"order":             func(d *opdef.Def) { slices.Reverse(d.Attrs) },
		"flag":              func(d *opdef.Def) { d.Stateful = true },
	} {
		if differences(parse(change), want) == nil {
			t.Errorf("a difference in %s is not found", name)
		}
	}
}
