package server

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// numbers is a graph that takes an element of dataset s, which is made of d, the numbers from 0.
func numbers(stage, types, shapes string) string {
	return strings.NewReplacer("TYPES", types, "SHAPES", shapes).Replace(`
zero = Const() value=int64[]{0}
stop = Const() value=int64[]{4000000000000}
step = Const() value=int64[]{1}
many = Const() value=int64[]{3000000000}
no = Const() value=bool[]{false}
d = RangeDataset(zero, stop, step) output_types=[int64] output_shapes=[[]]
` + stage + `
it = IteratorV2() shared_name="it" container="" output_types=[TYPES] output_shapes=[SHAPES]
make = MakeIterator(s, it)
y = IteratorGetNext(it, ^make) output_types=[TYPES] output_shapes=[SHAPES]
`)
}

// rowsOfBytes is text for a vector r of 200,000 bytes.
const rowsOfBytes = `
v = Const() value=int8[]{0}
p = PlaceholderWithDefault(v) shape=[]
n = Const() value=int32[1]{200000}
r = Fill(n, p)
`

// manyNumbers is text for a vector k of 10,000 random numbers.
const manyNumbers = `
n = Const() value=int32[1]{10000}
lo = Const() value=int64[]{0}
hi = Const() value=int64[]{9000000000000000000}
k = RandomUniformInt(n, lo, hi)
`

// A session pays for what its resources hold, whatever kind they are of. Each of these graphs grows
// without end, in one step or in several.
func TestHeldByResources(t *testing.T) {
	spec := "output_types=[int64] output_shapes=[[]]\n"
	for name, text := range map[string]string{
		"shuffle": numbers("s = ShuffleDataset(d, many, step, step) "+spec, "int64", "[]"),
		"shuffle and repeat": numbers("all = Const() value=int64[]{-1}\n"+
			"s = ShuffleAndRepeatDataset(d, many, step, step, all) "+spec, "int64", "[]"),
		"batch":  numbers("s = BatchDatasetV2(d, many, no) output_types=[int64] output_shapes=[[?]]\n", "int64", "[?]"),
		"unique": numbers("u = UniqueDataset(d) "+spec+"s = SkipDataset(u, many) "+spec, "int64", "[]"),
		"cache": numbers("file = Const() value=string[]{\"\"}\nc = CacheDataset(d, file) "+spec+
			"s = SkipDataset(c, many) "+spec, "int64", "[]"),
		"window": numbers("w = WindowDataset(d, many, many, step, no) output_types=[variant] output_shapes=[[]]\n"+
			"s = SkipDataset(w, many) output_types=[variant] output_shapes=[[]]\n", "variant", "[]"),
		"rows of a queue":    rowsOfBytes + "q = FIFOQueueV2() component_types=[int8] shapes=[[]]\ny = QueueEnqueueManyV2(q, r)\n",
		"rows of a shuffled": rowsOfBytes + "q = RandomShuffleQueueV2() component_types=[int8] shapes=[[]]\ny = QueueEnqueueManyV2(q, r)\n",
		"barrier": manyNumbers + "ks = AsString(k)\nb = Barrier() component_types=[int64, int64] shapes=[[], []]\n" +
			"y = BarrierInsertMany(b, ks, k) component_index=0\n",
		"sparse tensors": manyNumbers + `
i2 = Const() value=int32[2]{5000, 2}
i = Reshape(k, i2)
none = Const() value=int32[1]{0}
half = Const() value=int32[1]{5000}
one = Const() value=int64[]{1}
first = Const() value=int64[]{0}
last = Const() value=int64[]{5000}
row = Range(first, last, one)
column = ZerosLike(row)
at = Pack(row, column) N=2 axis=1
shape = Const() value=int64[2]{5000, 1}
values = Slice(k, none, half) Index=int32
y = AddManySparseToTensorsMap(at, values, shape)
`,
	} {
		l := DefaultLimits()
		l.SessionMemory = 8 << 20
		s, a := quotaServer(t, WithLimits(l))
		handle := a.textSession(text)
		var err error
		for range 200 {
			req := &pb.RunStepRequest{SessionHandle: handle, Target: []string{"y"}}
			if err = a.send(rpc.MethodRunStep, req); err != nil {
				break
			}
		}
		if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "--max-session-memory") {
			t.Errorf("%s: got the error %v", name, err)
		}
		if err := a.graph("y = Const() value=float[]{1}\n"); err != nil {
			t.Errorf("%s: another session: %v", name, err)
		}
		if err := a.send(rpc.MethodReset, &pb.ResetRequest{}); err != nil {
			t.Fatal(err)
		}
		// A garbage collection ends the charges of memory without a holder.
		deadline := time.Now().Add(10 * time.Second)
		for used := int64(1); used > 0; {
			used = 0
			for _, n := range s.quota.TenantMemory() {
				used += n
			}
			if used > 0 && time.Now().After(deadline) {
				t.Errorf("%s: %d bytes are charged after the session has ended", name, used)
				break
			}
			runtime.GC()
		}
	}
}
