package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-ml/weft/status"
)

// grows is a probe of a resource that grows with each of n steps, or with each iteration of a loop.
func grows(name string, n int, text string) probe {
	return probe{name: "grow-" + name, run: func(c *client) error { return c.repeat(n, text) }}
}

// mayGrow is grows for a resource whose memory has a bound.
func mayGrow(name string, n int, text string) probe {
	p := grows(name, n, text)
	p.mayPass = true
	return p
}

// keys is text for n different integers, k, and for the same as strings, ks.
func keys(n int) string {
	return fmt.Sprintf("n = Const() value=int32[1]{%d}\n", n) + `
lo = Const() value=int64[]{0}
hi = Const() value=int64[]{9000000000000000000}
k = RandomUniformInt(n, lo, hi)
ks = AsString(k)
`
}

// consecutive is text for n consecutive integers, k, and for the same as strings, ks.
func consecutive(n int) string {
	return hidden("from", "int64[]{0}", "[]") + hidden("to", fmt.Sprintf("int64[]{%d}", n), "[]") + hidden("by", "int64[]{1}", "[]") + "k = Range(from, to, by)\nks = AsString(k)\n"
}

// table is text for a mutable table t of int64 and a default value.
const table = "t = MutableHashTableV2() key_dtype=int64 value_dtype=int64 shared_name=\"t\" container=\"probe\"\n"

// rows is text for 200 Mi scalars of one byte, r.
func rows() string {
	return hidden("zero", "int8[]{0}", "[]") + fmt.Sprintf("rows = Const() value=int32[1]{%d}\nr = Fill(rows, zero)\n", 200<<20)
}

// dataset is text for an iterator over numbers that goes through a stage, which the text makes as
// dataset s from dataset d, and takes an element.
func dataset(stage, shape string) string {
	return `
start = Const() value=int64[]{0}
stop = Const() value=int64[]{4000000000000}
step = Const() value=int64[]{1}
d = RangeDataset(start, stop, step) output_types=[int64] output_shapes=[[]]
` + stage + fmt.Sprintf(`
it = IteratorV2() shared_name="it" container="probe" output_types=[int64] output_shapes=[%[1]s]
make = MakeIterator(s, it)
y = IteratorGetNext(it, ^make) output_types=[int64] output_shapes=[%[1]s]
`, shape)
}

// skipped is text for a dataset s that takes the elements of dataset c away until c ends.
const skipped = `
many = Const() value=int64[]{3000000000}
s = SkipDataset(c, many) output_types=[int64] output_shapes=[[]]
`

var stateProbes = []probe{
	grows("table", 400, keys(8<<20)+table+"y = LookupTableInsertV2(t, k, k)\n"),
	grows("table-once", 1, consecutive(120<<20)+table+"y = LookupTableInsertV2(t, k, k)\n"),
	grows("table-strings", 200, keys(4<<20)+"t = MutableHashTableV2() key_dtype=string value_dtype=int64 shared_name=\"t\" container=\"probe\"\ny = LookupTableInsertV2(t, ks, k)\n"),
	grows("table-loop", 1, loop("w", `
n = Const(^i) value=int32[1]{1000000}
lo = Const(^i) value=int64[]{0}
hi = Const(^i) value=int64[]{9000000000000000000}
k = RandomUniformInt(n, lo, hi)
h = MutableHashTableV2() key_dtype=int64 value_dtype=int64 shared_name="t" container="probe"
h_e = Enter(h) frame_name="f" is_constant=true
w = LookupTableInsertV2(h_e, k, k)
`)),
	grows("table-of-tensors", 400, keys(1<<18)+fill("float[]{1}", 16<<18, "e")+`
wide = Const() value=int32[2]{262144, 16}
v = Reshape(e, wide)
t = MutableHashTableOfTensorsV2() key_dtype=int64 value_dtype=float value_shape=[16] shared_name="t" container="probe"
y = LookupTableInsertV2(t, k, v)
`),
	grows("table-dense", 400, keys(4<<20)+`
empty = Const() value=int64[]{-1}
gone = Const() value=int64[]{-2}
t = MutableDenseHashTableV2(empty, gone) key_dtype=int64 value_dtype=int64 shared_name="t" container="probe"
y = LookupTableInsertV2(t, k, k)
`),
	grows("table-buckets", 1, `
empty = Const() value=int64[]{-1}
gone = Const() value=int64[]{-2}
t = MutableDenseHashTableV2(empty, gone) key_dtype=int64 value_dtype=int64 initial_num_buckets=1099511627776 shared_name="t" container="probe"
y = LookupTableSizeV2(t)
`),
	grows("table-static", 1, consecutive(120<<20)+"t = HashTableV2() key_dtype=int64 value_dtype=int64 shared_name=\"t\" container=\"probe\"\ny = InitializeTableV2(t, k, k)\n"),
	grows("table-import", 1, consecutive(120<<20)+table+"y = LookupTableImportV2(t, k, k)\n"),
	{name: "grow-table-file", rooted: true, run: func(c *client) error {
		path := filepath.Join(c.dir, "words")
		if err := writeLines(path, 200<<20); err != nil {
			return err
		}
		return c.once(fmt.Sprintf("f = Const() value=string[]{%q}\n", path) + `
t = HashTableV2() key_dtype=string value_dtype=int64 shared_name="t" container="probe"
y = InitializeTableFromTextFileV2(t, f) key_index=-2 value_index=-1
`)
	}},
	grows("sparse-accumulator", 400, keys(16<<20)+fill("float[]{1}", 16<<20, "e")+`
a = SparseConditionalAccumulator() dtype=float shape=[?] shared_name="a" container="probe"
one = Const() value=int64[]{1}
none = Const() value=int64[0]{}
y = SparseAccumulatorApplyGradient(a, one, k, e, none) has_known_shape=false
`),
	grows("barrier", 4000, keys(1<<19)+`
b = Barrier() component_types=[int64, int64] shapes=[[], []] shared_name="b" container="probe"
y = BarrierInsertMany(b, ks, k) component_index=0
`),
	grows("tensor-array", 1, loop("w", listed+`
size = Const() value=int32[]{0}
ta = TensorArrayV3(size) dtype=float dynamic_size=true
h = Enter(ta) frame_name="f" is_constant=true
flow = Enter(ta:1) frame_name="f" is_constant=true
at = Cast(i) SrcT=int64 DstT=int32
w = TensorArrayWriteV3(h, at, v, flow)
`)),
	grows("tensor-array-rows", 1, rows()+`
size = Const() value=int32[]{209715200}
t = TensorArrayV3(size) dtype=int8
a = Const() value=int32[]{0}
b = Const() value=int32[]{1}
at = Range(a, size, b)
w = TensorArrayScatterV3(t, at, r, t:1)
y = Identity(w)
`),
	grows("list-rows", 1, rows()+`
none = Const() value=int32[0]{}
y = TensorListFromTensor(r, none)
`),
	grows("map", 1, `
list = EmptyTensorMap()
k0 = Const() value=int64[]{0}
t = Const(^m) value=bool[]{true}
one = Const(^k) value=int64[]{1}
e = Enter(list) frame_name="f"
ke = Enter(k0) frame_name="f"
m = Merge(e, n)
km = Merge(ke, kn)
c = LoopCond(t)
s = Switch(m, c)
q = Switch(km, c)
i = Identity(s:1)
k = Identity(q:1)
`+listed+`
put = TensorMapInsert(i, k, v)
next = AddV2(k, one)
n = NextIteration(put)
kn = NextIteration(next)
y = Exit(s)
`),
	grows("map-stage", 4000, `
none = Const() value=int32[0]{}
lo = Const() value=int64[]{0}
hi = Const() value=int64[]{9000000000000000000}
k = RandomUniformInt(none, lo, hi)
at = Const() value=int32[1]{0}
`+fill("float[]{1}", 1<<18, "e")+"y = MapStage(k, at, e) dtypes=[float] container=\"probe\"\n"),
	grows("queue-rows", 20, rows()+"q = FIFOQueueV2() component_types=[int8] shapes=[[]] container=\"probe\"\ny = QueueEnqueueManyV2(q, r)\n"),
	grows("queue-shuffled-rows", 20, rows()+"q = RandomShuffleQueueV2() component_types=[int8] shapes=[[]] container=\"probe\"\ny = QueueEnqueueManyV2(q, r)\n"),
	grows("queue-padded-rows", 20, rows()+"q = PaddingFIFOQueueV2() component_types=[int8] shapes=[[]] container=\"probe\"\ny = QueueEnqueueManyV2(q, r)\n"),
	grows("queue-priority-rows", 20, consecutive(60<<20)+"q = PriorityQueueV2() component_types=[int64] shapes=[[]] container=\"probe\"\ny = QueueEnqueueManyV2(q, k, k)\n"),
	grows("queue-strings", 400, keys(1<<20)+"q = FIFOQueueV2() component_types=[string] container=\"probe\"\ny = QueueEnqueueV2(q, ks)\n"),
	grows("sparse-map", 400, consecutive(1<<20)+`
two = Const() value=int32[2]{524288, 2}
i = Reshape(k, two)
shape = Const() value=int64[2]{2000000, 2000000}
v = StridedSlice(k, b0, e0, s0) Index=int32
b0 = Const() value=int32[1]{0}
e0 = Const() value=int32[1]{524288}
s0 = Const() value=int32[1]{1}
y = AddManySparseToTensorsMap(i, v, shape) container="probe"
`),
	grows("session-handles", 4000, fill("float[]{1}", 1<<18, "e")+"y = GetSessionHandleV2(e)\n"),
	grows("dataset-cache", 1, dataset("file = Const() value=string[]{\"\"}\nc = CacheDataset(d, file) output_types=[int64] output_shapes=[[]]\n"+skipped, "[]")),
	grows("dataset-unique", 1, dataset("c = UniqueDataset(d) output_types=[int64] output_shapes=[[]]\n"+skipped, "[]")),
	grows("dataset-batch", 1, dataset("size = Const() value=int64[]{3000000000}\nno = Const() value=bool[]{false}\ns = BatchDatasetV2(d, size, no) output_types=[int64] output_shapes=[[?]]\n", "[?]")),
	grows("dataset-shuffle", 1, dataset("size = Const() value=int64[]{3000000000}\nseed = Const() value=int64[]{1}\ns = ShuffleDataset(d, size, seed, seed) output_types=[int64] output_shapes=[[]]\n", "[]")),
	{name: "grow-dataset-prefetch", mayPass: true, run: func(c *client) error {
		return c.repeat(2, dataset("size = Const() value=int64[]{3000000000}\ns = PrefetchDataset(d, size) output_types=[int64] output_shapes=[[]]\n", "[]"))
	}},
	mayGrow("quantiles", 400, fill("float[]{1}", 4<<20, "f")+`
n2 = Const() value=int32[2]{1048576, 4}
e = Reshape(f, n2)
eps = Const() value=float[]{0.0000001}
one = Const() value=int64[]{1}
h = BoostedTreesQuantileStreamResourceHandleOp() shared_name="h" container="probe"
make = BoostedTreesCreateQuantileStreamResource(h, eps, one)
y = BoostedTreesQuantileStreamResourceAddSummaries(h, e, ^make) num_features=1
`),
	grows("unique", 1, consecutive(200<<20)+"y = Unique(k)\n"),
	grows("unique-strings", 1, consecutive(48<<20)+"y = Unique(ks)\n"),
	grows("sparse-sets", 1, consecutive(60<<20)+`
one = Const() value=int32[2]{1, 62914560}
m = Reshape(k, one)
y = DenseToDenseSetOperation(m, m) set_operation="union"
`),
	mayGrow("edit-distance", 1, consecutive(40<<20)+`
wide = Const() value=int32[2]{20971520, 2}
i = Reshape(k, wide)
half = Const() value=int32[1]{20971520}
v = Slice(k, none, half) Index=int32
none = Const() value=int32[1]{0}
shape = Const() value=int64[2]{50000000, 50000000}
y = EditDistance(i, v, shape, i, v, shape)
`),
	// An operation waits in each iteration, and all iterations may run at the same time.
	{name: "grow-loop-iterations", codes: []status.Code{status.ResourceExhausted, status.DeadlineExceeded}, run: func(c *client) error {
		return c.timed(probeTime/3, strings.ReplaceAll(loop("i", `
q = FIFOQueueV2() component_types=[float] container="probe"
q_e = Enter(q) frame_name="f" is_constant=true
w = QueueDequeueV2(q_e, ^i) component_types=[float]
`), `frame_name="f"`, `frame_name="f" parallel_iterations=2147483647`))
	}},
	grows("dynamic-partition", 1, rows()+"p = Cast(r) SrcT=int8 DstT=int32\ny = DynamicPartition(r, p) num_partitions=1000\n"),
}

// writeLines writes a file of n short lines.
func writeLines(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	block := strings.Repeat("a\n", 1<<10)
	for range n >> 11 {
		if _, err := w.WriteString(block); err != nil {
			return err
		}
	}
	return w.Flush()
}
