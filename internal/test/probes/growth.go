package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tfrecord"
)

// long is text for n different strings of 1,000 bytes, v, which belong to the integers k.
func long(n int) string { return keys(n) + "v = AsString(k) width=1000\n" }

// listedStrings is the value that loops of strings store: about 1 MiB.
const listedStrings = `
v_v = Const(^i) value=float[]{1}
v_n = Const(^i) value=int32[1]{1024}
v_f = Fill(v_n, v_v)
v = AsString(v_f) width=1000
`

// identity is text for functions of one integer.
const identity = `
func Same(x: int64) -> (y: int64) {
  z = Identity(x) T=int64
  return y=z:output:0
}
func Zero(x: int64) -> (y: int64) {
  z = ZerosLike(x) T=int64
  return y=z:y:0
}
func Most(x: int64) -> (y: int64) {
  z = Const() value=int64[]{9000000000000000000} dtype=int64
  return y=z:output:0
}
func Total(x: int64, s: int64) -> (y: int64) {
  z = AddV2(x, s) T=int64
  return y=z:z:0
}
func Text(x: int64) -> (y: string) {
  z = AsString(x) T=int64 precision=-1 scientific=false shortest=false width=1000 fill=""
  return y=z:output:0
}
func Batched(k: int64, d: variant) -> (y: variant) {
  z = Identity(d) T=variant
  return y=z:output:0
}
`

// texts is dataset for elements that are strings.
func texts(stage string) string {
	return datasetOf("string", "c = MapDataset(d) f=@Text Targuments=[] output_types=[string] output_shapes=[[]]\n"+stage)
}

// datasetOf is dataset for scalars of another type.
func datasetOf(dtype, stage string) string {
	text := dataset(stage, "[]")
	at := strings.Index(text, "it = IteratorV2")
	return text[:at] + strings.ReplaceAll(text[at:], "[int64]", "["+dtype+"]")
}

// slow is grows for a resource that may take longer than a step has.
func slow(name string, n int, text string) probe {
	p := grows(name, n, text)
	p.codes = []status.Code{status.ResourceExhausted, status.DeadlineExceeded}
	return p
}

var growthProbes = []probe{
	grows("table-long-values", 400, long(1<<16)+`
t = MutableHashTableV2() key_dtype=int64 value_dtype=string shared_name="t" container="probe"
y = LookupTableInsertV2(t, k, v)
`),
	grows("table-long-keys", 400, long(1<<16)+`
t = MutableHashTableV2() key_dtype=string value_dtype=int64 shared_name="t" container="probe"
y = LookupTableInsertV2(t, v, k)
`),
	// the exports share the columns of the table
	{name: "grow-table-export", mayPass: true, run: func(c *client) error {
		var text strings.Builder
		text.WriteString(consecutive(16<<20) + table + "in = LookupTableInsertV2(t, k, k)\n")
		names, last := make([]string, 30), "in"
		for i := range names {
			names[i] = fmt.Sprintf("x%d", i)
			// one after the other: equal nodes would be merged
			fmt.Fprintf(&text, "x%d = LookupTableExportV2(t, ^%s) Tkeys=int64 Tvalues=int64\n", i, last)
			last = names[i]
		}
		// a node that takes both outputs of all of them
		text.WriteString("y = IdentityN(" + strings.Join(names, ", ") + ", " + strings.Join(names, ":1, ") + ":1)\n")
		return c.once(text.String())
	}},
	grows("stack-strings", 1, loop("push", listedStrings+`
size = Const() value=int32[]{-1}
k = StackV2(size) elem_type=string
k_e = Enter(k) frame_name="f" is_constant=true
push = StackPushV2(k_e, v)
`)),
	grows("tensor-array-strings", 1, loop("w", listedStrings+`
size = Const() value=int32[]{0}
ta = TensorArrayV3(size) dtype=string dynamic_size=true
h = Enter(ta) frame_name="f" is_constant=true
flow = Enter(ta:1) frame_name="f" is_constant=true
at = Cast(i) SrcT=int64 DstT=int32
w = TensorArrayWriteV3(h, at, v, flow)
`)),
	grows("list-strings", 1, strings.ReplaceAll(strings.ReplaceAll(listLoop, listed, listedStrings), "element_dtype=float", "element_dtype=string")),
	grows("variable-strings", 200, long(1<<15)+`
q = FIFOQueueV2() component_types=[string] container="probe"
y = QueueEnqueueV2(q, v)
`),
	grows("stage-strings", 400, long(1<<15)+"y = Stage(v) container=\"probe\"\n"),
	grows("list-scattered", 1, consecutive(100<<20)+`
at = Cast(k) SrcT=int64 DstT=int32
none = Const() value=int32[0]{}
most = Const() value=int32[]{-1}
y = TensorListScatterV2(k, at, none, most)
`),
	grows("dataset-shuffle-strings", 1, identity+texts(`
size = Const() value=int64[]{3000000000}
seed = Const() value=int64[]{1}
s = ShuffleDataset(c, size, seed, seed) output_types=[string] output_shapes=[[]]
`)),
	grows("dataset-cache-strings", 1, identity+texts(`
file = Const() value=string[]{""}
m = CacheDataset(c, file) output_types=[string] output_shapes=[[]]
many = Const() value=int64[]{3000000000}
s = SkipDataset(m, many) output_types=[string] output_shapes=[[]]
`)),
	slow("dataset-group-by-reducer", 1, identity+dataset(`
s = GroupByReducerDataset(d) key_func=@Same init_func=@Zero reduce_func=@Total finalize_func=@Same Tkey_func_other_arguments=[] Tinit_func_other_arguments=[] Treduce_func_other_arguments=[] Tfinalize_func_other_arguments=[] output_types=[int64] output_shapes=[[]]
`, "[]")),
	grows("dataset-group-by-window", 1, identity+dataset(`
g = GroupByWindowDataset(d) key_func=@Zero reduce_func=@Batched window_size_func=@Most Tkey_func_other_arguments=[] Treduce_func_other_arguments=[] Twindow_size_func_other_arguments=[] output_types=[int64] output_shapes=[[]]
s = Identity(g)
`, "[]")),
	grows("dataset-window", 1, datasetOf("variant", `
size = Const() value=int64[]{3000000000}
one = Const() value=int64[]{1}
no = Const() value=bool[]{false}
s = WindowDataset(d, size, one, one, no) output_types=[variant] output_shapes=[[]]
`)),
	{name: "grow-ensemble", codes: malformed, run: func(c *client) error {
		// a tree ensemble of empty trees of two bytes each
		return c.serialized("BoostedTreesCreateEnsemble", strings.Repeat("\x0a\x00", 60<<20), `
h = BoostedTreesEnsembleResourceHandleOp() shared_name="h" container="probe"
stamp = Const() value=int64[]{0}
`, "h", "stamp", "x")
	}},
	{name: "grow-summary", rooted: true, run: func(c *client) error {
		return c.repeat(2000, long(1<<10)+fmt.Sprintf("dir = Const() value=string[]{%q}\n", c.dir)+`
none = Const() value=string[]{""}
most = Const() value=int32[]{2147483647}
one = Const() value=int64[]{1}
w = SummaryWriter() shared_name="w" container="probe"
make = CreateSummaryFileWriter(w, dir, most, most, none)
y = WriteSummary(w, one, v, none, none, ^make) T=string
`)
	}, mayPass: true, codes: malformed},
	{name: "grow-record-input", rooted: true, run: func(c *client) error {
		path := filepath.Join(c.dir, "records")
		if err := writeRecords(path, 3000, 1<<20); err != nil {
			return err
		}
		return c.repeat(3, fmt.Sprintf("y = RecordInput() file_pattern=%q file_buffer_size=1000000 batch_size=16 file_parallelism=16\n", path))
	}},
	{name: "grow-record-batch", rooted: true, codes: malformed, mayPass: true, run: func(c *client) error {
		path := filepath.Join(c.dir, "records")
		if err := writeRecords(path, 3, 1<<20); err != nil {
			return err
		}
		return c.timedRepeat(3, fmt.Sprintf("y = RecordInput() file_pattern=%q file_buffer_size=1000000 batch_size=1000000000\n", path))
	}},
}

// writeRecords writes a file of n records of a size.
func writeRecords(path string, n, size int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := tfrecord.NewWriter(f, "")
	if err != nil {
		return err
	}
	record := make([]byte, size)
	for i := range n {
		record[0] = byte(i)
		if err := w.Write(record); err != nil {
			return err
		}
	}
	return w.Close()
}

// serialized runs an operation whose input x is a string. Text has the other nodes.
func (c *client) serialized(op, value, text string, inputs ...string) error {
	g, err := parseGraph(text)
	if err != nil {
		return err
	}
	x := &pb.TensorProto{Dtype: pb.DataType_DT_STRING, TensorShape: &pb.TensorShapeProto{}, StringVal: [][]byte{[]byte(value)}}
	g.Node = append(g.Node,
		&pb.NodeDef{Name: "x", Op: "Const", Attr: map[string]*pb.AttrValue{
			"dtype": {Value: &pb.AttrValue_Type{Type: pb.DataType_DT_STRING}}, "value": {Value: &pb.AttrValue_Tensor{Tensor: x}},
		}},
		&pb.NodeDef{Name: "y", Op: op, Input: inputs})
	return c.runProto(g)
}

// timedRepeat is repeat with a time-out of ten seconds for each step, which is no error.
func (c *client) timedRepeat(n int, text string) error {
	handle, err := c.session(text)
	for i := 0; i < n && err == nil; i++ {
		err = c.step(handle, &pb.RunOptions{TimeoutInMs: 10_000}, "y")
	}
	if status.CodeOf(err) == status.DeadlineExceeded {
		return nil
	}
	return err
}
