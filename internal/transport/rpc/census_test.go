package rpc

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// The census of a message counts its parts, at any depth, without decoding it.
func TestCensus(t *testing.T) {
	g := &pb.GraphDef{
		Node: []*pb.NodeDef{
			{Name: "a", Op: "Const", Attr: map[string]*pb.AttrValue{"value": {Value: &pb.AttrValue_Tensor{Tensor: &pb.TensorProto{IntVal: make([]int32, 1000)}}}}},
			{Name: "b", Op: "AddN", Input: []string{"a", "a", "^a"}},
		},
		Library: &pb.FunctionDefLibrary{Function: []*pb.FunctionDef{{NodeDef: []*pb.NodeDef{{Name: "c", Input: []string{"x"}}}}, {}}},
	}
	data, err := proto.Marshal(&pb.CreateSessionRequest{GraphDef: g})
	if err != nil {
		t.Fatal(err)
	}
	c := newCensus(nil)
	c.count((&pb.CreateSessionRequest{}).ProtoReflect().Descriptor(), data)
	if c.nodes != 3 || c.edges != 4 || c.functions != 2 {
		t.Errorf("%d nodes, %d edges, %d functions; want 3, 4, 2", c.nodes, c.edges, c.functions)
	}
	if least := int64(5*nodeMemory + 4000); c.memory < least || c.memory > 2*least {
		t.Errorf("%d bytes are estimated, want at least %d", c.memory, least)
	}
}

// repeated returns a message of n empty values of a field.
func repeated(field byte, n int) []byte {
	out := make([]byte, 0, 2*n)
	for range n {
		out = append(out, field<<3|lengthDelimited, 0)
	}
	return out
}

// inField returns a message as the value of a field.
func inField(field byte, message []byte) []byte {
	out := []byte{field<<3 | lengthDelimited}
	n := len(message)
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(append(out, byte(n)), message...)
}

func TestCensusLimits(t *testing.T) {
	most := quota.Default()
	for _, tt := range []struct {
		name  string
		graph []byte
	}{
		{"nodes", repeated(1, most.Nodes+1)},
		{"functions", inField(2, repeated(1, most.Functions+1))},
		{"edges", inField(1, repeated(3, most.Edges+1))},
	} {
		_, err := admitMessage(&pb.CreateSessionRequest{}, inField(1, tt.graph), nil)
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("too many %s: %v", tt.name, err)
		}
	}
	for _, tt := range []struct {
		name    string
		message proto.Message
		data    []byte
	}{
		{"feeds of a partial run", &pb.PartialRunSetupRequest{}, repeated(2, most.Nodes+1)},
		{"fetches of a callable", &pb.MakeCallableRequest{}, inField(2, repeated(2, most.Nodes+1))},
	} {
		_, err := admitMessage(tt.message, tt.data, nil)
		if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), quota.Nodes.Flag()) {
			t.Errorf("too many %s: %v", tt.name, err)
		}
	}
	if _, err := admitMessage(&pb.PartialRunSetupRequest{}, repeated(2, most.Nodes), nil); err != nil {
		t.Errorf("as many feeds as a graph may have nodes: %v", err)
	}
	if _, err := admitMessage(&pb.CreateSessionRequest{}, inField(1, repeated(3, most.Nodes)), nil); err != nil {
		t.Errorf("a message without graph: %v", err)
	}
}

// A message is not decoded if it would take more memory than the process may use.
func TestCensusMemory(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(128 << 20)
	_, err := admitMessage(&pb.CreateSessionRequest{}, inField(1, repeated(1, quota.Default().Nodes)), nil)
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("a graph that needs 2.8 GiB: %v", err)
	}
	data := [][]byte{repeated(3, 8<<20)} // fetches
	if err := decode(data, &message.RunStepRequest{}); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("8 million fetches: %v", err)
	}
}

// A message that has arrived in several pieces is copied to decode it, if there is memory for that.
func TestMemoryOfPieces(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1)
	for name, length := range map[string]int{"one piece": 1, "two pieces": 2} {
		var data [][]byte
		for range length {
			data = append(data, make([]byte, 1<<20))
		}
		r := newReader(data)
		if got := r.rest(); (len(got) == 0) != (length > 1) || errors.Is(r.err, errNoMemory) != (length > 1) {
			t.Errorf("%s: %d bytes, %v", name, len(got), r.err)
		}
	}
	values := repeated(5, 1<<20) // a tensor with numbers in a field that is not packed
	var d decoder
	d.reader = newReader([][]byte{values, values})
	if _, err := d.general(d.reader); err != nil || !errors.Is(d.outcome(), errNoMemory) {
		t.Errorf("a tensor in two pieces: %v, %v", err, d.outcome())
	}
}

// When the memory is used, small requests that leave something on the task are refused each, and
// those that free memory or show the state of the task are served.
func TestSmallMessages(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1)
	for range 2 {
		membudget.Take(1 << 20) // reads that there is nothing left
	}
	data := make([]byte, 100)
	for _, tt := range []struct {
		m      proto.Message
		served bool
	}{
		{&pb.RegisterGraphRequest{}, false},
		{&pb.CreateWorkerSessionRequest{}, false},
		{&pb.CreateSessionRequest{}, false},
		{&pb.CompleteInstanceRequest{}, false},
		{&pb.CloseSessionRequest{}, true},
		{&pb.ResetRequest{}, true},
		{&pb.CleanupGraphRequest{}, true},
		{&pb.CleanupAllRequest{}, true},
		{&pb.DeregisterGraphRequest{}, true},
		{&pb.DeleteWorkerSessionRequest{}, true},
		{&pb.ReleaseCallableRequest{}, true},
		{&pb.GetStatusRequest{}, true},
		{&pb.ListDevicesRequest{}, true},
		{&pb.RegisterGraphResponse{}, true},
	} {
		for range 20 {
			if _, err := admitMessage(tt.m, data, nil); (err == nil) != tt.served {
				t.Errorf("%T: %v", tt.m, err)
				break
			} else if err != nil && status.CodeOf(err) != status.ResourceExhausted {
				t.Errorf("%T: %v", tt.m, err)
			}
		}
	}
	membudget.SetLimit(1 << 40)
	if _, err := admitMessage(&pb.RegisterGraphRequest{}, data, nil); err != nil {
		t.Errorf("with memory: %v", err)
	}
}
