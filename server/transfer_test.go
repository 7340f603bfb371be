package server

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// transferLimit bounds waits that should take milliseconds.
const transferLimit = time.Minute

// thereAndBack returns a graph that sends a feed to the parameter server, and from there to the
// worker.
func thereAndBack(dtype tensor.DType) (root *op.Scope, x, y graph.Output) {
	root = op.NewScope()
	x = op.Placeholder(root, dtype)
	there := op.Identity(root.WithDevice("/job:ps/task:0"), x)
	return root, x, op.Identity(root.WithDevice("/job:worker/task:0"), there)
}

func randomTensor(t *testing.T, dtype tensor.DType, shape tensor.Shape) tensor.Tensor {
	t.Helper()
	x, err := tensor.Alloc(dtype, shape)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = rand.NewChaCha8([32]byte{2}).Read(x.Bytes())
	return x
}

// TestLargeTensors sends tensors of many kinds through a cluster until each transport has carried
// them. They must return unchanged.
func TestLargeTensors(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	lender := servers[ps].lender
	for _, tt := range []struct {
		dtype tensor.DType
		shape tensor.Shape
	}{
		{tensor.Float32, tensor.Shape{1 << 20}}, {tensor.BFloat16, tensor.Shape{3, 1 << 18}}, {tensor.Int8, tensor.Shape{5<<20 + 1}},
		{tensor.Complex128, tensor.Shape{1 << 15, 2}}, {tensor.Float32, tensor.Shape{3}},
	} {
		root, in, out := thereAndBack(tt.dtype)
		s := session(t, servers[worker0], root)
		x := randomTensor(t, tt.dtype, tt.shape)
		before := lender.LeaseCount()
		for end := time.Now().Add(transferLimit); ; {
			got, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{in: x}, []graph.Output{out}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[0].Shape(), tt.shape) || !bytes.Equal(got[0].Bytes(), x.Bytes()) {
				t.Fatalf("%v %v is not what was fed", tt.dtype, tt.shape)
			}
			got[0].Release()
			if len(x.Bytes()) < 1<<10 || lender.LeaseCount() >= before+3 || !servers[worker0].borrower.CanReadMemory() {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%v %v is not borrowed", tt.dtype, tt.shape)
			}
		}
	}
	for end := time.Now().Add(transferLimit); lender.LeasedBytes() > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are still lent", lender.LeasedBytes())
		}
	}
}

// childAddresses is the environment variable that makes a process of this test the parameter server
// of a cluster. It has the addresses of the tasks.
const childAddresses = "WEFT_TEST_PS_AND_WORKER"

// serveChild runs a task in a child process until its input ends.
func serveChild() {
	spec := os.Getenv(childAddresses)
	if spec == "" {
		return
	}
	addresses := bytes.Fields([]byte(spec))
	s, err := New(cluster.ServerDef{Job: "ps", Cluster: cluster.Spec{
		"ps": {0: string(addresses[0])}, "worker": {0: string(addresses[1])},
	}})
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error())
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// TestLenderIsKilled kills the process whose memory is being read. The step fails as with any lost
// task.
func TestLenderIsKilled(t *testing.T) {
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 1})
	listeners[ps].Close()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childAddresses+"="+spec.Address(ps)+" "+spec.Address(worker0))
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	server := start(t, cluster.ServerDef{Cluster: spec, Job: "worker"}, WithListener(listeners[worker0]))
	root, in, out := thereAndBack(tensor.Float32)
	s := session(t, server, root)
	x := randomTensor(t, tensor.Float32, tensor.Shape{4 << 20})
	ctx, cancel := context.WithTimeout(t.Context(), transferLimit)
	defer cancel()
	for i := 0; ; i++ {
		if i == 8 {
			time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, func() { _ = child.Process.Kill() })
		}
		got, err := s.Run(ctx, map[graph.Output]tensor.Tensor{in: x}, []graph.Output{out}, nil)
		if err != nil {
			if code := status.CodeOf(err); i < 8 || code != status.Unavailable && code != status.Aborted {
				t.Errorf("step %d failed: %v", i, err)
			}
			return
		}
		if !bytes.Equal(got[0].Bytes(), x.Bytes()) {
			t.Fatalf("in step %d, what came back is not what was fed", i)
		}
		got[0].Release()
	}
}

// TestReferenceIsReadAfterControlInputs reads a reference variable of the parameter server on
// another task, after an update. Only that other task has the control edge from the update.
func TestReferenceIsReadAfterControlInputs(t *testing.T) {
	servers := startCluster(t, map[string]int{"ps": 1, "worker": 2})
	root := op.NewScope()
	onPS, onWorker := root.WithDevice("/job:ps"), root.WithDevice("/job:worker/task:1")
	v := op.VariableV2(onPS, tensor.MakePartial(), tensor.Float32, op.VariableV2SharedName("counted"))
	init := op.Assign(onPS, v, op.Const(onPS, float32(1)))
	add := op.AssignAdd(onPS, v, op.Const(onPS, float32(10)))
	relayed := op.Neg(onWorker, add)
	read := op.Neg(onWorker.WithControlDependencies(relayed.Node), v)
	sess := session(t, servers[cluster.Task{Job: "worker"}], root)
	if _, err := sess.Run(t.Context(), nil, nil, []*graph.Node{init.Node}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		out, err := sess.Run(t.Context(), nil, []op.Output{read}, nil)
		if want := float32(-11 - 10*i); err != nil || out[0].Go() != want {
			t.Fatalf("got %v, %v, want %v", out, err, want)
		}
	}
}
