package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// probe is a request, or a series of requests, that would harm a server without limits.
type probe struct {
	name    string
	run     func(*client) error
	text    string        // that the error contains
	mayPass bool          // the requests may also succeed
	codes   []status.Code // of the error; RESOURCE_EXHAUSTED if empty
	args    []string      // further flags of the server
	rooted  bool          // the folder of the probe is the only one that operations may use
}

// oom is the text that programs match.
const oom = "OOM when allocating tensor"

// probes returns all probes.
func probes() []probe {
	for i := range wireProbes {
		wireProbes[i].mayPass = true // the server answers below gRPC
	}
	return slices.Concat(memoryProbes, stateProbes, growthProbes, loadProbes, wireProbes, messageProbes, graphProbes, callProbes, chainProbes, recordProbes, kernelProbes, textProbes, endlessProbes, fileProbes, sessionProbes)
}

var memoryProbes = []probe{
	{name: "tensors-60m", run: func(c *client) error { return c.once(held(200, 15<<20)) }, text: oom},
	{name: "tensors-1m", run: func(c *client) error { return c.once(held(5000, 1<<18)) }, text: oom},
	{name: "tensor-4g", run: func(c *client) error { return c.once(held(2, 1<<30)) }, text: oom},
	{name: "strings-empty", run: func(c *client) error { return c.once(fill("string[]{\"\"}", 1<<22, "e") + pack("e", 60)) }, text: oom},
	{name: "string-doubled", run: func(c *client) error { return c.once(doubled(31)) }},
	{name: "strings-joined", run: func(c *client) error {
		return c.once(doubledTo(12) + fill("string[]{\"x\"}", 1<<21, "e") + "y = StringJoin(e, s12)\n")
	}},
	{name: "as-string", run: func(c *client) error {
		return c.once(fill("float[]{1}", 1<<25, "e") + "y = AsString(e) width=100\n")
	}},
	{name: "base64", run: func(c *client) error { return c.once(doubledTo(29) + pieces("EncodeBase64", 8)) }},
	{name: "split", run: func(c *client) error {
		return c.once(doubledTo(28) + "sep = Const() value=string[]{\"x\"}\none = Const() value=int32[1]{1}\nv = Reshape(s28, one)\ny = StringSplitV2(v, sep)\n")
	}},
	{name: "unicode", run: func(c *client) error {
		return c.once(doubledTo(28) + "y = UnicodeDecode(s28) input_encoding=\"UTF-8\"\n")
	}},
	{name: "reduce-join", run: func(c *client) error {
		return c.once(doubledTo(20) + fillOf("s20", 1<<13, "e") + "d = Const() value=int32[1]{0}\ny = ReduceJoin(e, d)\n")
	}},
	{name: "ragged-scratch", run: func(c *client) error { return c.once(raggedScratch) }},
	{name: "sparse-scratch", run: func(c *client) error { return c.once(sparseScratch) }},
	{name: "top-k-scratch", run: func(c *client) error {
		return c.once(fill("float[]{1}", 1<<28, "e") + "k = Const() value=int32[]{268435456}\ny = TopKV2(e, k)\n")
	}, text: ""},
	{name: "unique-scratch", run: func(c *client) error {
		return c.once("a = Const() value=int64[]{0}\nb = Const() value=int64[]{100000000}\nd = Const() value=int64[]{1}\nr = Range(a, b, d)\ny = Unique(r)\n")
	}},
	{name: "one-hot", run: func(c *client) error {
		return c.once(fill("int32[]{1}", 1<<14, "e") + "n = Const() value=int32[]{65536}\none = Const() value=float[]{1}\nno = Const() value=float[]{0}\ny = OneHot(e, n, one, no)\n")
	}, text: oom},
	{name: "decode-gzip", run: func(c *client) error { return decodeCompressed(c, 4<<30) }},
	{name: "queue", run: func(c *client) error {
		return c.repeat(400, fill("float[]{1}", 8<<20, "e")+"q = FIFOQueueV2() component_types=[float] container=\"probe\"\ny = QueueEnqueueV2(q, e)\n")
	}, text: oom},
	{name: "queue-small", run: func(c *client) error {
		return c.repeat(4000, fill("float[]{1}", 1<<18, "e")+"q = FIFOQueueV2() component_types=[float] container=\"probe\"\ny = QueueEnqueueV2(q, e)\n")
	}, text: oom},
	{name: "stage", run: func(c *client) error {
		return c.repeat(400, fill("float[]{1}", 8<<20, "e")+"y = Stage(e) container=\"probe\"\n")
	}, text: oom},
	{name: "variables", run: manyVariables, text: oom},
	{name: "stack", run: func(c *client) error { return c.once(stackLoop) }, text: oom},
	{name: "list", run: func(c *client) error { return c.once(listLoop) }},
	{name: "shuffle", run: func(c *client) error { return c.repeat(2, shuffled) }},
	{name: "trace", run: fullTrace, mayPass: true},
	{name: "nodes", run: func(c *client) error { return raw(c, repeatField(2, bytes.Repeat([]byte{0x0a, 0}, 30<<20))) }, text: "nodes"},
	{name: "functions", run: func(c *client) error {
		return raw(c, repeatField(2, repeatField(2, bytes.Repeat([]byte{0x0a, 0}, 30<<20))))
	}, text: "functions"},
	{name: "edges", run: func(c *client) error {
		return raw(c, repeatField(2, repeatField(1, bytes.Repeat([]byte{0x1a, 0}, 30<<20))))
	}, text: "edges"},
	{name: "attribute", run: func(c *client) error {
		list := repeatField(1, repeatField(3, make([]byte, 400<<20))) // AttrValue.list.i
		attr := append([]byte{0x0a, 1, 'a'}, repeatField(2, list)...)
		return raw(c, repeatField(2, repeatField(1, repeatField(5, attr))))
	}},
	{name: "feeds", run: func(c *client) error {
		return c.invoke(rpc.MethodRunStep, bytes.Repeat([]byte{0x12, 0}, 30<<20))
	}},
	{name: "registered-nodes", run: func(c *client) error {
		return c.invoke(rpc.MethodRegisterGraph, repeatField(2, bytes.Repeat([]byte{0x0a, 0}, 30<<20)))
	}, text: "nodes"},
}

// fill is text for a node with n equal elements. The value is no constant, so that the master does
// not compute the node.
func fill(value string, n int, name string) string {
	return fmt.Sprintf("%s_c = Const() value=%s\n%s_v = PlaceholderWithDefault(%s_c) shape=[]\n%s", name, value, name, name, fillOf(name+"_v", n, name))
}

// fillOf is text for a node with n elements like that of another node.
func fillOf(value string, n int, name string) string {
	return fmt.Sprintf("%s_n = Const() value=int32[1]{%d}\n%s = Fill(%s_n, %s)\n", name, n, name, name, value)
}

// held is text for n different tensors that are in memory together.
func held(n, elements int) string {
	var b strings.Builder
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("e%d", i)
		b.WriteString(fill(fmt.Sprintf("float[]{%d}", i), elements, names[i]))
	}
	fmt.Fprintf(&b, "y = AddN(%s)\n", strings.Join(names, ", "))
	return b.String()
}

// pack is text for the node y, which holds n copies of a tensor.
func pack(name string, n int) string {
	return fmt.Sprintf("y = Pack(%s)\n", strings.TrimSuffix(strings.Repeat(name+", ", n), ", "))
}

// doubled is text for a string that is doubled n times: node y, and each step sI.
func doubled(n int) string { return doubledTo(n) + fmt.Sprintf("y = StringLength(s%d)\n", n) }

// doubledTo is doubled without the node y. A graph of constants would be folded by the master, so
// the string is read from a queue.
func doubledTo(n int) string {
	var b strings.Builder
	b.WriteString("s_v = Const() value=string[]{\"x\"}\ns0 = PlaceholderWithDefault(s_v) shape=[]\n")
	for i := range n {
		fmt.Fprintf(&b, "s%d = StringJoin(s%d, s%d)\n", i+1, i, i)
	}
	return b.String()
}

// pieces is text for n nodes that apply an operation to the string s29, and for their sum y.
func pieces(op string, n int) string {
	var b strings.Builder
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("l%d", i)
		fmt.Fprintf(&b, "z%d = Const() value=string[]{\"%d\"}\ni%d = StringJoin(s29, z%d)\np%d = %s(i%d)\n", i, i, i, i, i, op, i)
	}
	fmt.Fprintf(&b, "y = StringJoin(p%s)\n", strings.Join(strings.Split("01234567", "")[:n], ", p"))
	return b.String()
}

const raggedScratch = `
e_v = Const() value=int64[]{5}
e_n = Const() value=int32[1]{1}
e = Fill(e_n, e_v)
v = Cast(e) SrcT=int64 DstT=bool
n = Const() value=int64[]{250000000}
d = Const() value=bool[]{false}
y = RaggedFillEmptyRows(e, v, n, d)
`

const sparseScratch = `
i = Const() value=int64[1,1]{5}
v = Const() value=bool[1]{true}
n = Const() value=int64[1]{250000000}
d = Const() value=bool[]{false}
y = SparseFillEmptyRows(i, v, n, d)
`

// loop is text for an endless loop that executes the node named body once an iteration, which has
// the input i.
func loop(body, text string) string {
	return `
i_0 = Const() value=int64[]{0}
one = Const(^i) value=int64[]{1}
t = Const(^i_m) value=bool[]{true}
i_e = Enter(i_0) frame_name="f"
i_m = Merge(i_e, i_n)
c = LoopCond(t)
i_s = Switch(i_m, c)
i = Identity(i_s:1)
next = AddV2(i, one, ^` + body + `)
i_n = NextIteration(next)
y = Exit(i_s)
` + text
}

// listed is the value that the loops store: 1 MiB.
const listed = `
v_v = Const(^i) value=float[]{1}
v_n = Const(^i) value=int32[1]{262144}
v = Fill(v_n, v_v)
`

var stackLoop = loop("push", listed+`
size = Const() value=int32[]{-1}
k = StackV2(size) elem_type=float
k_e = Enter(k) frame_name="f" is_constant=true
push = StackPushV2(k_e, v)
`)

const listLoop = `
any = Const() value=int32[]{-1}
size = Const() value=int32[]{-1}
list = EmptyTensorList(any, size) element_dtype=float
t = Const(^m) value=bool[]{true}
e = Enter(list) frame_name="f"
m = Merge(e, n)
c = LoopCond(t)
s = Switch(m, c)
i = Identity(s:1)
` + listed + `
push = TensorListPushBack(i, v)
n = NextIteration(push)
y = Exit(s)
`

var shuffled = fill("float[]{1}", 1024, "e") + `
r = TensorDataset(e) Toutput_types=[float] output_shapes=[[1024]]
count = Const() value=int64[]{-1}
rep = RepeatDataset(r, count) output_types=[float] output_shapes=[[1024]]
size = Const() value=int64[]{1000}
no = Const() value=bool[]{false}
g = BatchDatasetV2(rep, size, no) output_types=[float] output_shapes=[[?,1024]]
buffer = Const() value=int64[]{100000}
seed = Const() value=int64[]{1}
s = ShuffleDataset(g, buffer, seed, seed) output_types=[float] output_shapes=[[?,1024]]
it = IteratorV2() shared_name="it" container="probe" output_types=[float] output_shapes=[[?,1024]]
make = MakeIterator(s, it)
y = IteratorGetNext(it, ^make) output_types=[float] output_shapes=[[?,1024]]
`

// manyVariables fills variables, each in a step of its own.
func manyVariables(c *client) error {
	var b strings.Builder
	b.WriteString(fill("float[]{1}", 8<<20, "e"))
	for i := range 200 {
		fmt.Fprintf(&b, "h%d = VarHandleOp() shared_name=\"v%d\" container=\"probe\" dtype=float shape=[8388608]\na%d = AssignVariableOp(h%d, e)\n", i, i, i, i)
	}
	handle, err := c.session(b.String())
	for i := 0; i < 200 && err == nil; i++ {
		err = c.step(handle, nil, fmt.Sprintf("a%d", i))
	}
	return err
}

// fullTrace traces an endless loop until its step times out.
func fullTrace(c *client) error {
	handle, err := c.session(loop("i", ""))
	if err != nil {
		return err
	}
	err = c.step(handle, &pb.RunOptions{TraceLevel: pb.RunOptions_FULL_TRACE, TimeoutInMs: 40_000}, "y")
	if err != nil && strings.Contains(err.Error(), "DEADLINE") || strings.Contains(fmt.Sprint(err), "imed out") {
		return nil // as it should
	}
	return err
}

// decodeCompressed decompresses a string of zeros.
func decodeCompressed(c *client, size int) error {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // the level is valid
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		if _, err := z.Write(zeros); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return c.runProto(&pb.GraphDef{Node: []*pb.NodeDef{
		{Name: "x", Op: "Const", Attr: map[string]*pb.AttrValue{
			"dtype": {Value: &pb.AttrValue_Type{Type: pb.DataType_DT_STRING}},
			"value": {Value: &pb.AttrValue_Tensor{Tensor: &pb.TensorProto{
				Dtype: pb.DataType_DT_STRING, TensorShape: &pb.TensorShapeProto{}, StringVal: [][]byte{packed.Bytes()},
			}}},
		}},
		{Name: "p", Op: "PlaceholderWithDefault", Input: []string{"x"}, Attr: map[string]*pb.AttrValue{
			"dtype": {Value: &pb.AttrValue_Type{Type: pb.DataType_DT_STRING}},
			"shape": {Value: &pb.AttrValue_Shape{Shape: &pb.TensorShapeProto{}}},
		}},
		{Name: "y", Op: "DecodeCompressed", Input: []string{"p"}, Attr: map[string]*pb.AttrValue{
			"compression_type": {Value: &pb.AttrValue_S{S: []byte("GZIP")}},
		}},
	}})
}

// runProto runs the node y of a graph.
func (c *client) runProto(g *pb.GraphDef) error {
	handle, err := c.create(g)
	if err != nil {
		return err
	}
	return c.step(handle, nil, "y")
}

// raw sends CreateSession with fields that are encoded already.
func raw(c *client, message []byte) error {
	// the graph is field 1 of the request, unlike field 2 of RegisterGraph
	message[0] = 1<<3 | 2
	return c.invoke(rpc.MethodCreateSession, message)
}

// repeatField encodes a message as a field.
func repeatField(number int, message []byte) []byte {
	out := []byte{byte(number<<3 | 2)}
	for n := len(message); ; n >>= 7 {
		if n < 0x80 {
			out = append(out, byte(n))
			break
		}
		out = append(out, byte(n)|0x80)
	}
	return append(out, message...)
}

// invoke calls a method with an encoded request. Its fields are unknown to the message that carries
// them, which encodes them as they are.
func (c *client) invoke(method string, request []byte) error {
	ctx, cancel := context.WithTimeout(c.ctx, probeTime)
	defer cancel()
	message := &pb.ListDevicesRequest{}
	message.ProtoReflect().SetUnknown(request)
	return c.conn.Invoke(ctx, method, message)
}
