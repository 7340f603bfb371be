package worker_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

func TestGraphsThatCannotBeRegistered(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	node := func(name, op, device string, inputs ...string) *pb.NodeDef {
		return &pb.NodeDef{Name: name, Op: op, Device: device, Input: inputs}
	}
	for _, tt := range []struct {
		nodes []*pb.NodeDef
		code  status.Code
		text  string
	}{
		{[]*pb.NodeDef{node("c", "NoOp", "")}, status.InvalidArgument, "Node 'c' is missing a device specification"},
		{[]*pb.NodeDef{node("c", "NoOp", "garbage")}, status.InvalidArgument, "Missing device name in: {{node c}}"},
		{[]*pb.NodeDef{node("c", "NoOp", "/job:worker")}, status.InvalidArgument, "/job:worker unknown device."},
		{[]*pb.NodeDef{node("c", "NoOp", peer)}, status.InvalidArgument, peer + " unknown device."},
		{[]*pb.NodeDef{node("c", "NoOp", cpu+"7")}, status.InvalidArgument, cpu + "7 unknown device."},
		{[]*pb.NodeDef{node("c", "_FusedNonsense", cpu)}, status.NotFound, "Op type not registered '_FusedNonsense'"},
		{[]*pb.NodeDef{node("a", "NoOp", cpu, "^b"), node("b", "NoOp", cpu, "^a")}, status.InvalidArgument, "cycle"},
		{[]*pb.NodeDef{node("a", "NoOp", cpu), node("a", "NoOp", cpu)}, status.InvalidArgument, "Node 'a' is not unique"},
		{[]*pb.NodeDef{node("a", "NoOp", cpu, "^zz")}, status.InvalidArgument, "Unknown input node '^zz'"},
		{[]*pb.NodeDef{node("a", "TestAdd", cpu)}, status.InvalidArgument, "a"},
	} {
		_, err := f.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{
			SessionHandle: "s", CreateWorkerSessionCalled: true, GraphDef: &pb.GraphDef{Node: tt.nodes},
		})
		expect(t, err, tt.code, tt.text)
	}
}

func TestEmptyGraph(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	g := f.register("s", "")
	if _, err := f.run(f.request(g, 1, nil)); err != nil {
		t.Error(err)
	}
}

// TestDefaultsAreAddedAgain registers nodes in the form that masters send: without attributes that
// have their default, and with private attributes of the sender.
func TestDefaultsAreAddedAgain(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	def := f.graph("feed x\nfetch y x")
	for _, n := range def.Node {
		delete(n.Attr, "use_locking")
		n.Attr["_XlaHasReferenceVars"] = &pb.AttrValue{Value: &pb.AttrValue_B{B: false}}
		n.Attr["_dst"] = &pb.AttrValue{Value: &pb.AttrValue_S{S: []byte("x")}}
	}
	def.Node = append(def.Node, &pb.NodeDef{Name: "f", Op: "TestFail", Device: cpu, Input: []string{"x"}})
	resp, err := f.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{SessionHandle: "s", CreateWorkerSessionCalled: true, GraphDef: def})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.run(f.request(resp.GraphHandle, 1, map[string]float32{"x": 1}, "y"))
	expect(t, err, status.InvalidArgument, "failed\n\t [[{{node f}}]]")
}

func TestGraphHandles(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	a, b := f.register("s", addOne), f.register("s", addOne)
	if a != "0000000000000001" || a == b {
		t.Errorf("handles %q and %q", a, b)
	}
	deregister := func(handle string) error {
		_, err := f.DeregisterGraph(t.Context(), &pb.DeregisterGraphRequest{SessionHandle: "s", CreateWorkerSessionCalled: true, GraphHandle: handle})
		return err
	}
	if err := deregister(a); err != nil {
		t.Error(err)
	}
	expect(t, deregister(a), status.Aborted, "Graph handle is not found: "+a+". Possibly, this worker just restarted.")
	_, err := f.run(f.request(a, 1, map[string]float32{"x": 1}, "y"))
	expect(t, err, status.Aborted, "Graph handle is not found: "+a)
	if _, err := f.run(f.request(b, 1, map[string]float32{"x": 1}, "y")); err != nil {
		t.Error(err)
	}
}
