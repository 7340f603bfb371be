package rpc

import (
	"context"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A request may exceed gRPC's default limit.
func TestLargeMessage(t *testing.T) {
	conn := serve(t, echo{})
	big, err := tensor.Zeros(tensor.Uint8, tensor.Shape{32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer big.Release()
	req := &message.RunStepRequest{Session: markerName, Feeds: []message.NamedTensor{{Name: "x:0", Tensor: big}}}
	if resp, err := NewMasterClient(conn, "test").RunStep(t.Context(), req); err != nil || !isMarked(resp) {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestDialChecksAddresses(t *testing.T) {
	for _, address := range []string{"", "host", "a/b:1", "host:port", "host:-1"} {
		if _, err := Dial(address); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%q: got error %v", address, err)
		}
	}
}

// TestUnreachablePeerIsExplained ends a call that waits for a server that was never started.
func TestUnreachablePeerIsExplained(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	conn := dial(t, address)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for conn.client.LastError() == nil {
			runtime.Gosched()
		}
		cancel()
	}()
	_, err = NewMasterClient(conn, address).CreateSession(ctx, &pb.CreateSessionRequest{})
	if status.CodeOf(err) != status.Cancelled || !strings.Contains(err.Error(), "CreateSession on the master at "+address+" (connection error: ") {
		t.Errorf("got %v", err)
	}
}

// recvFrom requests a tensor from a task and waits for it.
func recvFrom(t *testing.T, peers *Peers, task string, req *message.RecvTensorRequest) (*message.RecvTensorResponse, error) {
	var resp *message.RecvTensorResponse
	var err error
	came := make(chan struct{})
	peers.StartRecv(t.Context(), task, req, func(r *message.RecvTensorResponse, e error) {
		resp, err = r, e
		close(came)
	})
	<-came
	return resp, err
}

func TestPeers(t *testing.T) {
	conn := serve(t, echo{})
	spec := cluster.Spec{"ps": {2: conn.address}}
	conns := NewConnections(NewReceiveLimiter(nil))
	peers := NewPeers(spec, conns)
	for range 2 {
		resp, err := recvFrom(t, peers, "/job:ps/replica:0/task:2", &message.RecvTensorRequest{Key: markerName})
		if err != nil || !isMarked(resp) {
			t.Errorf("got %v, %v", resp, err)
		}
	}
	if a, err := peers.Worker(cluster.Task{Job: "ps", Index: 2}); err != nil {
		t.Error(err)
	} else if b, _ := peers.Worker(cluster.Task{Job: "ps", Index: 2}); a != b {
		t.Error("a task has two clients")
	}
	for _, name := range []string{"/job:ps/replica:0/task:0", "/job:nope/replica:0/task:2", "garbage", ""} {
		if _, err := recvFrom(t, peers, name, &message.RecvTensorRequest{}); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%q: got error %v", name, err)
		}
	}
	conns.Close()
	if _, err := recvFrom(t, peers, "/job:ps/replica:0/task:2", &message.RecvTensorRequest{}); err == nil {
		t.Error("no error after the connections were closed")
	}
	if _, err := NewPeers(spec, conns).Worker(cluster.Task{Job: "ps", Index: 2}); status.CodeOf(err) != status.Unavailable {
		t.Errorf("got error %v", err)
	}
}

// A call that waits for its peer ends with its context.
func TestWaitForReady(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	listener.Close()
	conn, err := Dial(address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := NewWorkerClient(conn, "/job:ps/replica:0/task:0")
	if _, err := client.RegisterGraph(t.Context(), &pb.RegisterGraphRequest{}); status.CodeOf(err) != status.Unavailable {
		t.Errorf("got error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := client.GetStatus(ctx, &pb.GetStatusRequest{})
		done <- err
	}()
	cancel()
	if err := <-done; status.CodeOf(err) != status.Cancelled {
		t.Errorf("got error %v", err)
	}
	go func() {
		_, err := client.GetStatus(t.Context(), &pb.GetStatusRequest{})
		done <- err
	}()
	listener, err = Listen(address)
	if err != nil {
		t.Skip("the port was taken:", err)
	}
	server := NewServer(NewReceiveLimiter(nil), discard)
	RegisterWorker(server, echo{}, discard)
	go server.Serve(listener) //nolint:errcheck // ends with Close
	defer server.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
