package worker_test

import (
	"strings"
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/state"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// handles is a graph that keeps tensors, reads them and drops them.
const handles = `
	x = Placeholder() dtype=float
	keep = GetSessionHandle(x)
	keep2 = GetSessionHandleV2(x)
	name = Placeholder() dtype=string
	read = GetSessionTensor(name) dtype=float
	wrong = GetSessionTensor(name) dtype=int32
	drop = DeleteSessionTensor(name)
	y = Identity(x)
`

func TestSessionTensors(t *testing.T) {
	c := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 1}})
	open := func() *testcluster.Session {
		t.Helper()
		s, err := c.Session(t.Context(), c.Node("worker", 0), handles, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	fetch := func(s *testcluster.Session, feed string, value tensor.Tensor, name string) (tensor.Tensor, error) {
		resp, err := s.Step(t.Context(), testcluster.Feeds{feed: value}, []string{name}, nil, nil)
		if err != nil {
			return tensor.Tensor{}, err
		}
		return resp.Tensors[0].Tensor, nil
	}
	first, err := fetch(s, "x:0", tensor.Scalar[float32](7), "keep:0")
	if err != nil {
		t.Fatal(err)
	}
	name := tensor.Value[string](&first)
	if parts := strings.Split(name, ";"); len(parts) != 3 || parts[0] != "keep" || parts[2] != cpu {
		t.Errorf("handle %q", name)
	}
	second, err := fetch(s, "x:0", tensor.Scalar[float32](8), "keep:0")
	if err != nil || tensor.Value[string](&second) == name {
		t.Errorf("a second handle is %v, %v", &second, err)
	}
	for range 2 {
		if got, err := fetch(s, "name:0", first, "read:0"); err != nil || tensor.Value[float32](&got) != 7 {
			t.Errorf("got %v, %v; want 7", &got, err)
		}
	}
	_, err = fetch(s, "name:0", first, "wrong:0")
	expect(t, err, status.Internal, "Output 0 of type float does not match declared output type int32 for node")
	_, err = fetch(open(), "name:0", first, "read:0")
	expect(t, err, status.InvalidArgument, "is not in the session store.")

	if _, err := s.Step(t.Context(), testcluster.Feeds{"name:0": first}, nil, []string{"drop"}, nil); err != nil {
		t.Error(err)
	}
	_, err = s.Step(t.Context(), testcluster.Feeds{"name:0": first}, nil, []string{"drop"}, nil)
	expect(t, err, status.InvalidArgument, "Failed to delete a tensor with handle '"+name+"' in the session store.")
	_, err = fetch(s, "name:0", first, "read:0")
	expect(t, err, status.InvalidArgument, "The tensor with handle '"+name+"' is not in the session store.")
	_, err = fetch(s, "name:0", tensor.Vector("a", "b"), "read:0")
	expect(t, err, status.InvalidArgument, "handle must be scalar")
}

// TestHandlesAreFedInPlaceOfTensors feeds a handle for a placeholder of another type, as
// TensorFlow's clients do.
func TestHandlesAreFedInPlaceOfTensors(t *testing.T) {
	c := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 1}})
	s, err := c.Session(t.Context(), c.Node("worker", 0), handles, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Step(t.Context(), testcluster.Feeds{"x:0": tensor.Scalar[float32](7)}, []string{"keep2:0"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	handle := *tensor.Value[*tensor.Handle](&resp.Tensors[0].Tensor)
	for range 2 {
		if got, err := s.Run(t.Context(), testcluster.Feeds{"x:0": tensor.Scalar(&handle)}, []string{"y:0"}); err != nil || got[0] != 7 {
			t.Errorf("got %v, %v; want 7", got, err)
		}
	}
	unknown := handle
	unknown.Name = "nothing"
	_, err = s.Run(t.Context(), testcluster.Feeds{"x:0": tensor.Scalar(&unknown)}, []string{"y:0"})
	expect(t, err, status.InvalidArgument, "The tensor with handle 'nothing' is not in the session store.")
}

func TestSessionTensorsGoWithTheirSession(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	g := f.register("s", "c = Const() value=float[]{3}\nkeep = GetSessionHandle(c)\nfetch handle keep")
	req := f.request(g, 1, nil, "handle")
	resp, err := f.RunGraph(t.Context(), &message.RunGraphRequest{
		Session: "s", SessionCreated: true, GraphHandle: g, StepID: 1, RecvKeys: req.RecvKeys,
	})
	if err != nil {
		t.Fatal(err)
	}
	name := tensor.Value[string](&resp.Recv[0].Tensor)
	if _, err := f.device.Resources.Lookup("_session s", "TensorHandle", name); err != nil {
		t.Error(err)
	}
	if _, err := f.DeleteWorkerSession(t.Context(), &pb.DeleteWorkerSessionRequest{SessionHandle: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.device.Resources.Lookup("_session s", "TensorHandle", name); err == nil {
		t.Error("the tensor is still there")
	}
}
