package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// malformed are the codes of requests that make no sense.
var malformed = []status.Code{status.InvalidArgument, status.Internal, status.Unimplemented, status.NotFound, status.ResourceExhausted}

// create is a probe of CreateSession.
func create(name string, build func() *pb.GraphDef) probe {
	return probe{name: name, codes: malformed, run: func(c *client) error {
		_, err := c.create(build())
		return err
	}}
}

var messageProbes = []probe{
	{name: "proto-truncated", codes: malformed, run: func(c *client) error { return c.invoke(rpc.MethodCreateSession, []byte{0x0a, 0x7f, 1}) }},
	{name: "proto-groups", codes: malformed, run: func(c *client) error {
		return c.invoke(rpc.MethodCreateSession, bytes.Repeat([]byte{0x0b}, 1<<20))
	}},
	{name: "proto-nested", codes: malformed, mayPass: true, run: func(c *client) error {
		// AttrValue.func.attr["a"] of itself
		value := []byte{0x18, 1}
		for range 2000 {
			entry := append([]byte{0x0a, 1, 'a'}, repeatField(2, value)...)
			value = repeatField(10, append([]byte{0x0a, 1, 'f'}, repeatField(2, entry)...))
		}
		attr := append([]byte{0x0a, 1, 'a'}, repeatField(2, value)...)
		return raw(c, repeatField(2, repeatField(1, append([]byte{0x0a, 1, 'n', 0x12, 4, 'N', 'o', 'O', 'p'}, repeatField(5, attr)...))))
	}},
	{name: "proto-varint", codes: malformed, run: func(c *client) error {
		return c.invoke(rpc.MethodCreateSession, append([]byte{0x0a}, bytes.Repeat([]byte{0xff}, 20)...))
	}},
	{name: "proto-unknown-fields", codes: malformed, mayPass: true, run: func(c *client) error {
		return c.invoke(rpc.MethodCreateSession, bytes.Repeat([]byte{0xf8, 7, 1}, 20<<20))
	}},
	{name: "proto-utf8", codes: malformed, run: func(c *client) error {
		return raw(c, repeatField(2, repeatField(1, []byte{0x0a, 2, 0xff, 0xfe, 0x12, 2, 0xc0, 0x80})))
	}},
	create("tensor-shape-lies", func() *pb.GraphDef { return constant(1<<40, make([]byte, 8)) }),
	create("tensor-shape-negative", func() *pb.GraphDef { return constant(-5, make([]byte, 8)) }),
	{name: "tensor-repeated-value", run: func(c *client) error {
		return c.runProto(constant(1<<36, nil))
	}, codes: malformed},
}

// constant is a graph with a constant of n floats whose content is given.
func constant(n int64, content []byte) *pb.GraphDef {
	x := &pb.TensorProto{Dtype: pb.DataType_DT_FLOAT, TensorShape: &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: n}}}, TensorContent: content}
	if content == nil {
		x.FloatVal = []float32{1}
	}
	return &pb.GraphDef{Node: []*pb.NodeDef{{Name: "y", Op: "Const", Attr: map[string]*pb.AttrValue{
		"dtype": {Value: &pb.AttrValue_Type{Type: pb.DataType_DT_FLOAT}}, "value": {Value: &pb.AttrValue_Tensor{Tensor: x}},
	}}}}
}

// nodes is a graph of nodes without attributes: name, operation, inputs.
func nodes(all ...[]string) *pb.GraphDef {
	g := &pb.GraphDef{}
	for _, n := range all {
		g.Node = append(g.Node, &pb.NodeDef{Name: n[0], Op: n[1], Input: n[2:]})
	}
	return g
}

var graphProbes = []probe{
	create("graph-cycle", func() *pb.GraphDef { return nodes([]string{"a", "NoOp", "^b"}, []string{"b", "NoOp", "^a"}) }),
	create("graph-self", func() *pb.GraphDef { return nodes([]string{"a", "NoOp", "^a"}) }),
	create("graph-twice", func() *pb.GraphDef { return nodes([]string{"a", "NoOp"}, []string{"a", "NoOp"}) }),
	create("graph-missing-input", func() *pb.GraphDef { return nodes([]string{"a", "NoOp", "^z"}) }),
	create("graph-unknown-op", func() *pb.GraphDef { return nodes([]string{"a", "NoSuchOp"}) }),
	create("graph-bad-output", func() *pb.GraphDef {
		return nodes([]string{"n", "NoOp"}, []string{"a", "Identity", "n:2147483647"})
	}),
	create("graph-bad-names", func() *pb.GraphDef { return nodes([]string{"\x00../^:", "NoOp"}, []string{"", "NoOp"}) }),
	create("graph-internal-op", func() *pb.GraphDef { return nodes([]string{"y", "_HostRecv"}) }),
	{name: "graph-long-name", codes: malformed, mayPass: true, run: func(c *client) error {
		_, err := c.create(nodes([]string{strings.Repeat("n", 30<<20), "NoOp"}))
		return err
	}},
	{name: "graph-deep", codes: malformed, mayPass: true, run: func(c *client) error {
		var all [][]string
		for i := range 200_000 {
			n := []string{fmt.Sprint("n", i), "NoOp"}
			if i > 0 {
				n = append(n, fmt.Sprint("^n", i-1))
			}
			all = append(all, n)
		}
		handle, err := c.create(nodes(all...))
		if err != nil {
			return err
		}
		return c.step(handle, nil, "n199999")
	}},
	{name: "graph-wide", codes: malformed, mayPass: true, run: func(c *client) error {
		all := [][]string{{"y", "NoOp"}}
		for i := range 100_000 {
			name := fmt.Sprint("n", i)
			all = append(all, []string{name, "NoOp"})
			all[0] = append(all[0], "^"+name)
		}
		handle, err := c.create(nodes(all...))
		if err != nil {
			return err
		}
		return c.step(handle, nil, "y")
	}},
	{name: "graph-switches", codes: malformed, mayPass: true, run: func(c *client) error {
		var b strings.Builder
		b.WriteString("k = Const() value=bool[]{true}\ns0 = Const() value=float[]{1}\n")
		for i := range 100_000 {
			at := fmt.Sprint("s", i)
			if i > 0 {
				at += ":1"
			}
			fmt.Fprintf(&b, "s%d = Switch(%s, k)\n", i+1, at)
		}
		return c.timed(40*time.Second, b.String()+"y = Identity(s100000:1)\n")
	}},
	{name: "graph-alike", codes: malformed, mayPass: true, run: func(c *client) error {
		// nodes that differ in their colocation only
		g := &pb.GraphDef{Node: []*pb.NodeDef{{Name: "y", Op: "NoOp"}}}
		for i := range 100_000 {
			class := &pb.AttrValue_ListValue{S: [][]byte{fmt.Append(nil, "loc:@n", (i+1)%100_000)}}
			name := fmt.Sprint("n", i)
			g.Node = append(g.Node, &pb.NodeDef{Name: name, Op: "NoOp", Attr: map[string]*pb.AttrValue{"_class": {Value: &pb.AttrValue_List{List: class}}}})
			g.Node[0].Input = append(g.Node[0].Input, "^"+name)
		}
		handle, err := c.create(g)
		if err != nil {
			return err
		}
		return c.step(handle, &pb.RunOptions{TimeoutInMs: 40_000}, "y")
	}},
	{name: "dataset-deep", codes: malformed, mayPass: true, run: func(c *client) error {
		var b strings.Builder
		b.WriteString(hidden("n", "int64[]{3}", "[]") + hidden("o", "int64[]{1}", "[]") + "d0 = RangeDataset(o, n, o) output_types=[int64] output_shapes=[[]]\n")
		for i := range 9900 {
			fmt.Fprintf(&b, "d%d = TakeDataset(d%d, n) output_types=[int64] output_shapes=[[]]\n", i+1, i)
		}
		return c.timed(30*time.Second, b.String()+`
it = IteratorV2() shared_name="it" container="probe" output_types=[int64] output_shapes=[[]]
make = MakeIterator(d9900, it)
y = IteratorGetNext(it, ^make) output_types=[int64] output_shapes=[[]]
`)
	}},
	{name: "function-recursion", codes: malformed, run: func(c *client) error {
		return c.once("func F(x: float) -> (y: float) {\n  z = F(x)\n  return y=z:y:0\n}\na = Const() value=float[]{1}\np = PlaceholderWithDefault(a) shape=[]\ny = F(p)\n")
	}},
	{name: "function-doubling", codes: append(malformed, status.DeadlineExceeded), run: func(c *client) error {
		var b strings.Builder
		b.WriteString("func F0(x: float) -> (y: float) {\n  z = Neg(x) T=float\n  return y=z:y:0\n}\n")
		for i := 1; i < 40; i++ {
			fmt.Fprintf(&b, "func F%d(x: float) -> (y: float) {\n  v = F%d(x)\n  z = F%d(v:y:0)\n  return y=z:y:0\n}\n", i, i-1, i-1)
		}
		return c.timed(5*time.Second, b.String()+"a = Const() value=float[]{1}\np = PlaceholderWithDefault(a) shape=[]\ny = F39(p)\n")
	}},
	{name: "loop-endless", codes: []status.Code{status.DeadlineExceeded}, run: func(c *client) error { return c.timed(5*time.Second, loop("i", "")) }},
	{name: "loop-nested", codes: append(malformed, status.DeadlineExceeded), mayPass: true, run: func(c *client) error {
		b := bytes.NewBufferString("a0 = Const() value=float[]{1}\n")
		for i := range 3000 {
			fmt.Fprintf(b, "a%d = Enter(a%d) frame_name=\"f%d\"\n", i+1, i, i)
		}
		for i := range 3000 {
			from := fmt.Sprintf("b%d", i)
			if i == 0 {
				from = "a3000"
			}
			fmt.Fprintf(b, "b%d = Exit(%s)\n", i+1, from)
		}
		return c.timed(10*time.Second, b.String()+"y = Identity(b3000)\n")
	}},
	{name: "dataset-shared", codes: malformed, run: func(c *client) error {
		return c.timed(5*time.Second, sharedDatasets()+"y = DatasetCardinality(d45)\n")
	}},
	{name: "queue-waits", codes: []status.Code{status.DeadlineExceeded}, run: func(c *client) error {
		return c.timed(2*time.Second, "q = FIFOQueueV2() component_types=[float] container=\"probe\"\ny = QueueDequeueV2(q) component_types=[float]\n")
	}},
	{name: "merge-alone", codes: append(malformed, status.DeadlineExceeded), mayPass: true, run: func(c *client) error {
		return c.timed(2*time.Second, "a = Const() value=float[]{1}\nm = Merge(a, a)\ny = NextIteration(m)\n")
	}},
}

// sharedDatasets is text for datasets that each are the one before twice.
func sharedDatasets() string {
	var b strings.Builder
	b.WriteString(hidden("n", "int64[]{3}", "[]") + hidden("o", "int64[]{1}", "[]") + "d0 = RangeDataset(o, n, o) output_types=[int64] output_shapes=[[]]\n")
	for i := range 45 {
		fmt.Fprintf(&b, "d%d = ConcatenateDataset(d%d, d%d) output_types=[int64] output_shapes=[[]]\n", i+1, i, i)
	}
	return b.String()
}

// sharedLists is text for lists that each have the one before twice.
func sharedLists() string {
	var b strings.Builder
	b.WriteString("s = Const() value=int32[]{-1}\nm = Const() value=int32[]{-1}\nl0 = EmptyTensorList(s, m) element_dtype=variant\n")
	for i := range 40 {
		fmt.Fprintf(&b, "h%d = TensorListPushBack(l0, l%d) element_dtype=variant\nl%d = TensorListPushBack(h%d, l%d) element_dtype=variant\n", i, i, i+1, i, i)
	}
	return b.String()
}

// timed is once with a time-out of the step.
func (c *client) timed(d time.Duration, text string) error {
	handle, err := c.session(text)
	if err != nil {
		return err
	}
	return c.step(handle, &pb.RunOptions{TimeoutInMs: d.Milliseconds()}, "y")
}

// hidden is text for a constant that the master does not fold.
func hidden(name, value, shape string) string {
	return fmt.Sprintf("%s_c = Const() value=%s\n%s = PlaceholderWithDefault(%s_c) shape=%s\n", name, value, name, name, shape)
}

// allowedProbe is kernelProbe for a graph that may also run, as it takes no memory.
func allowedProbe(name, text string) probe {
	p := kernelProbe(name, text)
	p.mayPass = true
	return p
}

// kernelProbe runs the node y, which needs too much memory.
func kernelProbe(name, text string) probe {
	return probe{name: name, codes: malformed, run: func(c *client) error { return c.once(text) }}
}

// timedProbe is kernelProbe for a node that needs long to use the memory. The kernel has to end
// with its step.
func timedProbe(name, text string) probe {
	p := kernelProbe(name, text)
	p.codes = overloaded
	p.run = func(c *client) error { return c.timed(10*time.Second, text) }
	return p
}

var kernelProbes = []probe{
	kernelProbe("range", hidden("a", "int64[]{0}", "[]")+hidden("b", "int64[]{9000000000000000000}", "[]")+hidden("d", "int64[]{1}", "[]")+"y = Range(a, b, d)\n"),
	kernelProbe("linspace", hidden("a", "float[]{0}", "[]")+hidden("b", "float[]{1}", "[]")+hidden("n", "int32[]{2147483647}", "[]")+"y = LinSpace(a, b, n)\n"),
	kernelProbe("tile", hidden("a", "float[1]{0}", "[1]")+hidden("n", "int64[1]{4000000000}", "[1]")+"y = Tile(a, n)\n"),
	kernelProbe("random", hidden("n", "int64[2]{4000000000, 4000000000}", "[2]")+"y = RandomUniform(n) dtype=float\n"),
	kernelProbe("matrix-diag", fill("float[]{1}", 100_000, "e")+"y = MatrixDiag(e)\n"),
	kernelProbe("unsorted-segment", hidden("a", "float[1]{1}", "[1]")+hidden("s", "int32[1]{0}", "[1]")+hidden("n", "int32[]{2147483647}", "[]")+"y = UnsortedSegmentSum(a, s, n)\n"),
	kernelProbe("resize", hidden("a", "float[1,1,1,1]{1}", "[1,1,1,1]")+hidden("n", "int32[2]{100000, 100000}", "[2]")+"y = ResizeBilinear(a, n)\n"),
	kernelProbe("bincount", hidden("a", "int32[1]{1}", "[1]")+hidden("n", "int32[]{2147483647}", "[]")+hidden("w", "float[0]{}", "[0]")+"y = Bincount(a, n, w)\n"),
	kernelProbe("sparse-to-dense", hidden("i", "int64[1]{0}", "[1]")+hidden("n", "int64[1]{40000000000}", "[1]")+hidden("v", "float[1]{1}", "[1]")+hidden("d", "float[]{0}", "[]")+"y = SparseToDense(i, n, v, d)\n"),
	kernelProbe("scatter-nd", hidden("i", "int64[1,1]{0}", "[1,1]")+hidden("v", "float[1]{1}", "[1]")+hidden("n", "int64[1]{40000000000}", "[1]")+"y = ScatterNd(i, v, n)\n"),
	kernelProbe("broadcast", hidden("a", "float[]{1}", "[]")+hidden("n", "int64[3]{100000, 100000, 100000}", "[3]")+"y = BroadcastTo(a, n)\n"),
	kernelProbe("pad", hidden("a", "float[1]{1}", "[1]")+hidden("n", "int64[1,2]{40000000000, 1}", "[1,2]")+"y = Pad(a, n)\n"),
	kernelProbe("matmul", fill("float[]{1}", 200_000, "e")+hidden("s", "int32[2]{200000, 1}", "[2]")+"m = Reshape(e, s)\ny = MatMul(m, m) transpose_b=true\n"),
	{name: "tensor-array", codes: malformed, mayPass: true, run: func(c *client) error {
		// an element takes memory when it is written
		return c.once(hidden("n", "int32[]{2147483647}", "[]") + "t = TensorArrayV3(n) dtype=float\nh = Identity(t:1)\ny = Identity(h)\n")
	}},
	allowedProbe("list-reserve", hidden("s", "int32[]{-1}", "[]")+hidden("n", "int32[]{2147483647}", "[]")+"y = TensorListReserve(s, n) element_dtype=float\n"),
	kernelProbe("decode-raw", doubledTo(28)+"d = DecodeRaw(s28) out_type=uint8\ne = Cast(d) SrcT=uint8 DstT=double\nf = Cast(d) SrcT=uint8 DstT=complex128\ny = Identity(f, ^e)\n"),
	kernelProbe("eye-negative", hidden("n", "int32[1]{-1}", "[1]")+hidden("v", "float[]{1}", "[]")+"y = Fill(n, v)\n"),
	// one matrix of 2^62 rows without columns
	allowedProbe("empty-matrix", hidden("n", "int64[2]{4611686018427387904, 0}", "[2]")+hidden("v", "double[]{1}", "[]")+"m = Fill(n, v)\ny = BatchSvd(m)\n"),
	allowedProbe("list-shared", sharedLists()+"y = ZerosLike(l40) T=variant\n"),
	kernelProbe("list-shared-text", sharedLists()+"y = SerializeTensor(l40) T=variant\n"),
	kernelProbe("regex-replace", doubledTo(20)+"x = Const() value=string[]{\"x\"}\none = Const() value=int32[1]{1}\nv = Reshape(s20, one)\ny = RegexReplace(v, x, s20)\n"),
	timedProbe("beams", hidden("n", "int32[3]{4, 1, 1000}", "[3]")+"e = RandomUniform(n) dtype=float\nm = Const() value=int32[1]{4}\ny = CTCBeamSearchDecoder(e, m) beam_width=1000000000 top_paths=1\n"),
	timedProbe("boosted-dimensions", hidden("n", "int32[1]{0}", "[1]")+hidden("g", "float[1,1]{1}", "[1,1]")+hidden("i", "int32[0,2]{}", "[0,2]")+hidden("v", "int32[0]{}", "[0]")+hidden("s", "int32[2]{1, 2147483647}", "[2]")+"y = BoostedTreesSparseAggregateStats(n, g, g, i, v, s) max_splits=1 num_buckets=1\n"),
	timedProbe("boosted-no-bytes", hidden("n", "int32[1]{0}", "[1]")+hidden("g", "float[1,0]{}", "[1,0]")+hidden("i", "int32[0,2]{}", "[0,2]")+hidden("v", "int32[0]{}", "[0]")+hidden("s", "int32[2]{1, 2147483647}", "[2]")+"y = BoostedTreesSparseAggregateStats(n, g, g, i, v, s) max_splits=1 num_buckets=1\n"),
	{name: "map-defun", args: []string{"--memory-limit=256MiB"}, run: func(c *client) error {
		return c.once("func Same(x: int8) -> (y: int8) {\n  z = Identity(x) T=int8\n  return y=z:output:0\n}\n" + fill("int8[]{1}", 1<<20, "e") +
			"y = MapDefun(e) f=@Same Targuments=[int8] Tcaptured=[] output_types=[int8] output_shapes=[[]]\n")
	}},
	{name: "step-memory", args: []string{"--max-step-memory=64MiB"}, text: "--max-step-memory", run: func(c *client) error {
		return c.once(fill("float[]{1}", 1<<26, "e") + "y = Neg(e)\n")
	}},
	{name: "session-memory", args: []string{"--max-session-memory=64MiB"}, text: "--max-session-memory", run: func(c *client) error {
		return c.repeat(100, fill("float[]{1}", 1<<20, "e")+"q = FIFOQueueV2() component_types=[float] container=\"probe\"\ny = QueueEnqueueV2(q, e)\n")
	}},
	{name: "tenant-memory", args: []string{"--max-tenant-memory=256MiB"}, text: "--max-tenant-memory", run: func(c *client) error {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			err = c.repeat(1, fill("float[]{1}", 1<<22, "e")+fmt.Sprintf("q = FIFOQueueV2() component_types=[float] shared_name=\"q%d\" container=\"probe\"\ny = QueueEnqueueV2(q, e)\n", i))
		}
		return err
	}},
	{name: "denied-op", args: []string{"--deny-op=Neg"}, codes: []status.Code{status.PermissionDenied}, text: "--deny-op Neg", run: func(c *client) error {
		return c.once("func F(x: float) -> (y: float) {\n  z = Neg(x) T=float\n  return y=z:y:0\n}\na = Const() value=float[]{1}\np = PlaceholderWithDefault(a) shape=[]\ny = F(p)\n")
	}},
	{name: "denied-class", args: []string{"--ops=serving"}, codes: []status.Code{status.PermissionDenied}, text: "--ops serving", run: func(c *client) error {
		return c.once("a = Const() value=string[]{\"/tmp/weft-probe-denied\"}\nw = WriteFile(a, a)\ny = Identity(a, ^w)\n")
	}},
}
