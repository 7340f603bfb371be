package function_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// The nodes of arguments and results are those of the signature. The indexes of others may be any.
func TestForeignTerminals(t *testing.T) {
	for _, index := range []int64{0, 1000} {
		f := define(t, "f", 1, "return a0")
		f.Nodes = append(f.Nodes, graph.NodeDef{
			Name: "n", Op: "_Retval", Inputs: []string{"a0"}, Attrs: opdef.Attrs{"T": tensor.Int64, "index": index},
		})
		l := newLibrary(t, f)
		if _, err := l.call("f", 1); status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "must not have") {
			t.Errorf("%d: got %v", index, err)
		}
	}
}

// A library is encoded, and a graph with a library is loaded, only if there is memory for it.
func TestNoMemoryForLibrary(t *testing.T) {
	var defs []graph.FunctionDef
	for i := range 200 {
		defs = append(defs, define(t, fmt.Sprintf("f%d", i), 1, "x = Add2(a0, a0)\n return x:z:0"))
	}
	l := newLibrary(t, defs...)
	names := make([]string, len(defs))
	for i := range defs {
		names[i] = defs[i].Signature.Name
	}
	p, err := pbconv.GraphToProto(&graph.Def{Library: defs})
	if err != nil {
		t.Fatal(err)
	}
	text, err := proto.Marshal(&pb.GraphDef{Library: p.GetLibrary()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.runtime.Library(names); err != nil {
		t.Error(err)
	}
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1 << 20)
	if _, err := l.runtime.Library(names); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("encoded: %v", err)
	}
	if _, err := l.runtime.Load(text); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("loaded: %v", err)
	}
}
