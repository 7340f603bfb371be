package savedmodel

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// recorded is a model that TensorFlow wrote: y = matmul(x, w), with an asset.
const recorded = "testdata/model"

func TestOpen(t *testing.T) {
	m, err := Open(recorded)
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.MetaGraph(TagServe)
	if err != nil {
		t.Fatal(err)
	}
	want := Signature{
		Inputs:  map[string]TensorInfo{"x": {Name: "x:0", DType: tensor.Float32, Shape: tensor.MakePartial(-1, 2)}},
		Outputs: map[string]TensorInfo{"y": {Name: "y:0", DType: tensor.Float32, Shape: tensor.MakePartial(-1, 1)}},
		Method:  MethodPredict,
	}
	if got := g.Signatures[DefaultSignature]; !reflect.DeepEqual(got, want) {
		t.Errorf("the signature is %+v, want %+v", got, want)
	}
	if s := (Saver{Filename: "save/Const:0", Save: "save/Identity:0", Restore: "save/restore_all", MaxToKeep: 5, Sharded: true, KeepEvery: 10000}); *g.Saver != s {
		t.Errorf("the saver is %+v", *g.Saver)
	}
	if !slices.Equal(g.Assets, []Asset{{Tensor: "Const:0", Filename: "vocab.txt"}}) {
		t.Errorf("the assets are %v", g.Assets)
	}
	if b, err := os.ReadFile(m.AssetPath(g.Assets[0])); err != nil || string(b) != "a\nb\n" {
		t.Errorf("the asset is %q, %v", b, err)
	}
	if _, err := os.Stat(m.Variables() + ".index"); err != nil {
		t.Error(err)
	}
	if got := g.Collections[CollectionMainOp].Nodes; !slices.Equal(got, []string{"my_main"}) {
		t.Errorf("the main op is %v", got)
	}
	if len(g.Ops) != 16 || g.Ops[0].Name != "Assign" || !g.DefaultsStripped || g.MadeBy != "2.21.0" {
		t.Errorf("%d operations, stripped %v, made by %s", len(g.Ops), g.DefaultsStripped, g.MadeBy)
	}
	imported, err := graph.Import(g.Graph, op.Defs, graph.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := FindOutput(imported, "y:0"); err != nil || OutputName(o) != "y:0" {
		t.Errorf("y is %v, %v", o, err)
	}
}

// TestRoundTrip reads a model of TensorFlow and writes it again unchanged.
func TestRoundTrip(t *testing.T) {
	want, err := read(recorded)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(recorded)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.MetaGraphs[0].encode()
	if err != nil {
		t.Fatal(err)
	}
	g := want.GetMetaGraphs()[0]
	g.MetaInfoDef.TensorflowGitVersion = "" // not kept
	got.AssetFileDef = nil                  // TensorFlow lists the asset only in a collection
	for _, p := range []*pb.MetaGraphDef{got, g} {
		for _, n := range p.GetGraphDef().GetNode() {
			delete(n.Attr, "value") // a tensor has several encodings
		}
	}
	if !proto.Equal(got, g) {
		t.Errorf("got\n%s\nwant\n%s", prototext.Format(got), prototext.Format(g))
	}
}

func TestTextForm(t *testing.T) {
	p, err := read(recorded)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if IsModel(dir) {
		t.Error("an empty folder is a model")
	}
	text, err := prototext.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "saved_model.pbtxt"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := Open(dir); err != nil || len(m.MetaGraphs) != 1 || !IsModel(dir) {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "7", "variables"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); status.CodeOf(err) != status.NotFound || !strings.Contains(err.Error(), "SavedModel file does not exist at: "+dir) ||
		!strings.HasSuffix(err.Error(), filepath.Join(dir, "7")) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "saved_model.pb"), []byte("\xff\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); status.CodeOf(err) != status.DataLoss || !strings.Contains(err.Error(), "saved_model.pb") {
		t.Errorf("a damaged file: %v", err)
	}
	m, err := Open(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.MetaGraph("serve", "gpu"); status.CodeOf(err) != status.NotFound ||
		!strings.Contains(err.Error(), "tags {gpu, serve} could not be found") || !strings.Contains(err.Error(), "available tags {serve}") {
		t.Errorf("other tags: %v", err)
	}
}

// everything is a MetaGraph with a value in each field.
func everything() *MetaGraph {
	op, err := (&opdef.Def{Name: "NoOp"}).Parse()
	if err != nil {
		panic(err)
	}
	info := TensorInfo{Name: "x:0", DType: tensor.Int64, Shape: tensor.MakePartial(2, -1)}
	return &MetaGraph{
		Graph: &graph.Def{
			Nodes:    []graph.NodeDef{{Name: "n", Op: "NoOp", Attrs: opdef.Attrs{}}},
			Versions: graph.Versions{Producer: 1},
		},
		Saver: &Saver{Filename: "f:0", Save: "s:0", Restore: "r", KeepEvery: 2, FormatV1: true},
		Collections: map[string]Collection{
			"nodes": {Nodes: []string{"n"}}, "none": {Nodes: []string{}}, "bytes": {Bytes: [][]byte{{1}, {2}}}, "ints": {Ints: []int64{1}},
			"floats": {Floats: []float32{1.5}}, "any": {Any: []Any{{TypeURL: "type.googleapis.com/x.Y", Value: []byte{8, 1}}}},
		},
		Signatures: map[string]Signature{
			"s": {
				Inputs: map[string]TensorInfo{"a": info, "unknown": {Name: "u", DType: tensor.String}},
				Outputs: map[string]TensorInfo{
					"sparse": {DType: tensor.Float32, Sparse: &SparseInfo{"v:0", "i:0", "s:0"}},
					"parts":  {Composite: &CompositeInfo{Type: []byte{}, Components: []TensorInfo{info}}},
				},
				Method:   MethodRegress,
				Defaults: map[string]tensor.Tensor{"a": tensor.Scalar[int64](7)},
			},
		},
		Assets: []Asset{{"a:0", "file"}}, Tags: []string{"serve"}, Ops: []*opdef.Op{op}, DefaultsStripped: true, MadeBy: "x",
	}
}

func TestMetaGraphFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "m.meta")
	want := everything()
	if err := want.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadMetaGraph(path)
	if err != nil {
		t.Fatal(err)
	}
	a := got.Signatures["s"].Defaults["a"]
	if a.Go() != int64(7) {
		t.Errorf("the default is %v", a.Go())
	}
	if !reflect.DeepEqual(got.Collections, want.Collections) || !reflect.DeepEqual(got.Saver, want.Saver) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !reflect.DeepEqual(got.Signatures["s"].Outputs, want.Signatures["s"].Outputs) {
		t.Errorf("the outputs are %+v, want %+v", got.Signatures["s"].Outputs, want.Signatures["s"].Outputs)
	}
	first, err := want.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, err := got.Marshal(); err != nil || !bytes.Equal(again, first) {
			t.Fatalf("Marshal is not deterministic: %v", err)
		}
	}
	if _, err := ReadMetaGraph(path + "x"); status.CodeOf(err) != status.NotFound {
		t.Errorf("a missing file: %v", err)
	}
}

func TestBuilder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "model")
	file := filepath.Join(parent, "vocab.txt")
	if err := os.WriteFile(file, []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "vocab.txt")
	if err := os.WriteFile(other, []byte("others"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	if err := os.WriteFile(b.Variables()+".index", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "vocab.txt"} {
		for range 2 {
			if name, err := b.AddAsset(path); err != nil || name != want {
				t.Errorf("asset %s is named %s, %v", path, name, err)
			}
		}
	}
	if name, err := b.AddAsset(other); err != nil || name != "vocab.txt_1" {
		t.Errorf("another file of the same name is named %s, %v", name, err)
	}
	if err := b.Add(everything()); err != nil {
		t.Fatal(err)
	}
	if err := b.Add(everything()); status.CodeOf(err) != status.AlreadyExists {
		t.Errorf("the same tags twice: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the model exists before Save")
	}
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	m, err := Open(dir)
	if err != nil || len(m.MetaGraphs) != 1 {
		t.Fatalf("got %v, %v", m, err)
	}
	if text, err := os.ReadFile(m.AssetPath(Asset{Filename: "vocab.txt_1"})); err != nil || string(text) != "others" {
		t.Errorf("the asset is %q, %v", text, err)
	}
	if _, err := os.Stat(m.Variables() + ".index"); err != nil {
		t.Error(err)
	}
	if _, err := Create(dir); status.CodeOf(err) != status.AlreadyExists {
		t.Errorf("a folder that is not empty: %v", err)
	}
	aborted, err := Create(filepath.Join(parent, "never"))
	if err != nil {
		t.Fatal(err)
	}
	aborted.Abort()
	if files, err := os.ReadDir(parent); err != nil || len(files) != 2 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}

func TestFind(t *testing.T) {
	s := op.NewScope()
	op.Const(s.Named("c"), 1.0)
	for _, name := range []string{"d:0", "c:1", "c:-1", "c:x"} {
		if _, err := FindOutput(s.Graph(), name); err == nil {
			t.Errorf("found output %s", name)
		}
	}
	if n, err := FindNode(s.Graph(), "c:0"); err != nil || n.Name != "c" {
		t.Errorf("got %v, %v", n, err)
	}
	if _, err := FindNode(s.Graph(), "d"); status.CodeOf(err) != status.NotFound {
		t.Errorf("got %v", err)
	}
}

// FuzzParseMetaGraph looks for bytes that make the parser panic, or that change when the MetaGraph
// is written and parsed again.
func FuzzParseMetaGraph(f *testing.F) {
	b, err := everything().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{0x22, 0, 0x2a, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMetaGraph(b)
		if err != nil {
			return
		}
		first, err := m.Marshal()
		if err != nil {
			return // a MetaGraph may hold values that cannot be written, such as an invalid type
		}
		again, err := ParseMetaGraph(first)
		if err != nil {
			t.Fatalf("the written MetaGraph cannot be parsed: %v", err)
		}
		second, err := again.Marshal()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("the MetaGraph has changed: %v", err)
		}
	})
}
