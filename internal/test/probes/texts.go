package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/proto/pb"
)

// sharedText is text for 2^21 strings of 2 KiB, e. They share the memory of their text, which is
// 4 GiB if an operation copies it for each string.
func sharedText() string { return doubledTo(11) + fillOf("s11", 1<<21, "e") }

// copied runs the node y, which copies shared text.
func copied(name, node string) probe {
	return probe{name: "text-" + name, run: func(c *client) error { return c.once(sharedText() + node + "\n") }}
}

// mayCopy is copied for an operation that may shorten the text.
func mayCopy(name, node string) probe {
	p := copied(name, node)
	p.mayPass, p.codes = true, malformed
	return p
}

// pattern is a regular expression of a few bytes whose program is large.
var pattern = strings.Repeat("a{1000}", 100)

// zstdWindow is a frame of 13 bytes with a window of 512 MiB.
const zstdWindow = "\x28\xb5\x2f\xfd\x80\x98\x00\x00\x00\x20\x01\x00\x00"

var textProbes = []probe{
	copied("serialize", "y = SerializeTensor(e)"),
	copied("serialize-sparse", `
n = Const() value=int32[2]{2097152, 1}
zero = Const() value=int64[]{0}
i = Fill(n, zero)
shape = Const() value=int64[1]{2097152}
y = SerializeSparse(i, e, shape)
`),
	copied("summary", "t = Const() value=string[]{\"tag\"}\nm = Const() value=string[]{\"\"}\ny = TensorSummaryV2(t, e, m)"),
	copied("format", "y = StringFormat(e) summarize=-1"),
	copied("transcode", "y = UnicodeTranscode(e) input_encoding=\"UTF-8\" output_encoding=\"UTF-32-BE\""),
	copied("upper", "y = StringUpper(e)"),
	copied("add", "y = Add(e, e)"),
	copied("scatter", `
n = Const() value=int32[2]{2097152, 1}
zero = Const() value=int32[]{0}
i = Fill(n, zero)
shape = Const() value=int32[1]{1}
y = ScatterNd(i, e, shape)
`),
	copied("join", "d = Const() value=int32[]{0}\ny = ReduceJoin(e, d) separator=\"-\""),
	copied("cross", `
n = Const() value=int32[2]{1, 2000}
f = Fill(n, s11)
sep = Const() value=string[]{"_"}
y = SparseCrossV2(f, f, sep) N=0 sparse_types=[] dense_types=[string, string]
`),
	copied("n-grams", "n = Const() value=int64[2]{0, 2097152}\ny = StringNGrams(e, n) separator=\"\" left_pad=\"\" right_pad=\"\" ngram_widths=[1000] pad_width=0 preserve_short_sequences=false"),
	{name: "text-replace", run: func(c *client) error {
		// a result of 1.2 GiB that is made in memory that grows
		return c.once(doubledTo(20) + "p = Const() value=string[]{\"x\"}\nr = StringJoin(s10, s7, s6)\ny = RegexReplace(s20, p, r)\n")
	}},
	{name: "text-replace-end", run: func(c *client) error {
		return c.once(doubledTo(30) + "p = Const() value=string[]{\"b\"}\nl = StringJoin(s30, p)\ny = RegexReplace(l, p, p)\n")
	}},
	mayCopy("print", "y = Print(e, e) summarize=100000000"),
	mayCopy("assert", "no = Const() value=bool[]{false}\ny = Assert(no, e) summarize=100000000"),
	copied("split", "at = Const() value=string[]{\"x\"}\ny = StringSplitV2(e, at)"),

	{name: "text-pattern", codes: malformed, text: "pattern", run: func(c *client) error {
		return c.once(doubledTo(4) + fmt.Sprintf("p = Const() value=string[]{%q}\n", strings.Repeat(pattern, 10)) + "y = RegexFullMatch(s4, p)\n")
	}},
	{name: "text-patterns", mayPass: true, codes: overloaded, run: func(c *client) error {
		var b strings.Builder
		b.WriteString(doubledTo(4))
		var names []string
		for i := range 200 {
			fmt.Fprintf(&b, "p%d = Const() value=string[]{%q}\nm%d = RegexFullMatch(s4, p%d)\n", i, pattern+fmt.Sprint(i), i, i)
			names = append(names, fmt.Sprint("m", i))
		}
		fmt.Fprintf(&b, "y = Pack(%s)\n", strings.Join(names, ", "))
		return c.timed(probeTime/2, b.String())
	}},
	{name: "text-png", run: func(c *client) error {
		return c.once(fill("uint8[]{1}", 1<<30, "e") + "n = Const() value=int32[3]{32768, 8192, 4}\ni = Reshape(e, n)\ny = EncodePng(i) compression=0\n")
	}},
	{name: "text-jpeg", mayPass: true, codes: overloaded, run: func(c *client) error {
		return c.timed(probeTime/2, fill("uint8[]{1}", 3<<28, "e")+"n = Const() value=int32[3]{32768, 8192, 3}\ni = Reshape(e, n)\ny = EncodeJpeg(i) optimize_size=true progressive=true\n")
	}},
	{name: "text-window", run: func(c *client) error {
		return c.decode(&pb.NodeDef{Op: "DecodeCompressed", Attr: map[string]*pb.AttrValue{"compression_type": stringAttr("ZSTD")}},
			slices.Repeat([][]byte{[]byte(zstdWindow)}, 1000)...)
	}, codes: malformed},
	{name: "text-descriptors", run: func(c *client) error {
		return c.decode(&pb.NodeDef{Op: "DecodeProtoV2", Attr: map[string]*pb.AttrValue{
			"message_type": stringAttr("m"), "field_names": {Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{}}},
			// a set of empty files
			"output_types":      {Value: &pb.AttrValue_List{List: &pb.AttrValue_ListValue{}}},
			"descriptor_source": stringAttr("bytes://" + strings.Repeat("\x0a\x00", 30<<20)),
		}}, nil)
	}},
	{name: "text-checkpoint", rooted: true, run: func(c *client) error {
		prefix := filepath.Join(c.dir, "c")
		if err := os.WriteFile(prefix+".index", indexOfLongKeys(10_000), 0o600); err != nil {
			return err
		}
		return c.once(fmt.Sprintf("p = Const() value=string[]{%q}\n", prefix) +
			"n = Const() value=string[1]{\"v\"}\ns = Const() value=string[1]{\"\"}\ny = RestoreV2(p, n, s) dtypes=[float]\n")
	}},
}

func stringAttr(s string) *pb.AttrValue {
	return &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte(s)}}
}

// decode runs a node, which it names y, whose input is a vector of strings.
func (c *client) decode(node *pb.NodeDef, values ...[]byte) error {
	x := &pb.TensorProto{Dtype: pb.DataType_DT_STRING, TensorShape: shapeOf(int64(len(values))), StringVal: values}
	node.Name, node.Input = "y", []string{"p"}
	stringType := &pb.AttrValue{Value: &pb.AttrValue_Type{Type: pb.DataType_DT_STRING}}
	return c.runProto(&pb.GraphDef{Node: []*pb.NodeDef{
		{Name: "x", Op: "Const", Attr: map[string]*pb.AttrValue{"dtype": stringType, "value": {Value: &pb.AttrValue_Tensor{Tensor: x}}}},
		// the master does not fold it
		{Name: "p", Op: "PlaceholderWithDefault", Input: []string{"x"}, Attr: map[string]*pb.AttrValue{
			"dtype": stringType, "shape": {Value: &pb.AttrValue_Shape{Shape: shapeOf(int64(len(values)))}},
		}},
		node,
	}})
}

// indexOfLongKeys is the index of a checkpoint whose n keys share all but the end: the file has 1
// MiB, and each key as well.
func indexOfLongKeys(n uint32) []byte {
	long := strings.Repeat("k", 1<<20)
	appendEntry := func(b []byte, shared int, delta, value string) []byte {
		b = binary.AppendUvarint(b, uint64(shared))
		b = binary.AppendUvarint(b, uint64(len(delta)))
		b = binary.AppendUvarint(b, uint64(len(value)))
		return append(append(b, delta...), value...)
	}
	block := appendEntry(nil, 0, "", "\x08\x01") // the header
	block = appendEntry(block, 0, long, "")
	for i := range n {
		block = appendEntry(block, len(long), string(binary.BigEndian.AppendUint32(nil, i)), "")
	}
	var file []byte
	write := func(b []byte) (handle []byte) {
		at := len(file)
		file = append(append(file, b...), 0, 0, 0, 0, 0) // no restarts, no compression
		file = binary.LittleEndian.AppendUint32(file, crc32c.Mask(crc32c.Sum(file[at:])))
		return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(at)), uint64(len(b)+4))
	}
	index := write(appendEntry(nil, 0, "z", string(write(block))))
	footer := make([]byte, 40)
	copy(footer[copy(footer, index):], index)
	return binary.LittleEndian.AppendUint64(append(file, footer...), 0xdb4775248b80fb57)
}
