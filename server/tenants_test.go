package server_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// counter is a graph with a variable on one task, and a step on another one that reads it.
type counter struct {
	graph      *op.Scope
	init, add  op.Output
	value, far op.Output
}

func newCounter() *counter {
	s := op.NewScope()
	ps, other := s.WithDevice("/job:worker/task:1"), s.WithDevice("/job:worker/task:0")
	v := op.VariableV2(ps.Named("v"), tensor.MakePartial(), tensor.Float32)
	c := &counter{graph: s}
	c.init = op.Assign(ps, v, op.Const(ps, float32(0)))
	c.add = op.AssignAdd(ps, v, op.Const(ps, float32(1)))
	c.value = op.Identity(ps, v)
	c.far = op.Mul(other, op.Identity(other, v), op.Const(other, float32(2)))
	return c
}

// session returns a session of a client with a certificate.
func session(t testing.TB, a *authority, s *server.Server, p trust.Principal, c *counter) *weft.Session {
	t.Helper()
	f := a.files(t, p)
	g, err := c.graph.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("grpc://"+s.Address(), g, weft.WithNetwork(), weft.WithTLS(weft.TLS{Cert: f.Cert, Key: f.Key, CA: f.CA, Task: "worker/0"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	return sess
}

func fetch(t testing.TB, s *weft.Session, out op.Output) (float32, error) {
	t.Helper()
	got, err := s.Fetch(t.Context(), nil, out)
	if err != nil {
		return 0, err
	}
	return tensor.Value[float32](&got[0]), nil
}

func mustFetch(t testing.TB, s *weft.Session, out op.Output, want float32) {
	t.Helper()
	if got, err := fetch(t, s, out); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// TestTenantsHaveTheirOwnVariables runs steps over two tasks with TLS: the clients of a tenant
// share a variable by its name, those of another tenant have another one.
func TestTenantsHaveTheirOwnVariables(t *testing.T) {
	a := newAuthority(t, "train")
	servers := startSecure(t, a, 2)
	c := newCounter()
	alice, bob := session(t, a, servers[0], clientPrincipal("research", "alice"), c), session(t, a, servers[0], clientPrincipal("research", "bob"), c)
	eve := session(t, a, servers[0], clientPrincipal("sales", "eve"), c)
	mustFetch(t, alice, c.init, 0)
	mustFetch(t, alice, c.add, 1)
	mustFetch(t, bob, c.add, 2)
	mustFetch(t, bob, c.far, 4)
	if got, err := fetch(t, eve, c.value); status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("another tenant reads %v, %v", got, err)
	}
	mustFetch(t, eve, c.init, 0)
	mustFetch(t, eve, c.add, 1)
	mustFetch(t, alice, c.value, 2)
	// Reset concerns the tenant of the caller
	f := a.files(t, clientPrincipal("sales", "eve"))
	err := weft.Reset(t.Context(), "grpc://"+servers[0].Address(), nil, nil, weft.WithNetwork(), weft.WithTLS(weft.TLS{Cert: f.Cert, Key: f.Key, CA: f.CA}))
	if err != nil {
		t.Fatal(err)
	}
	mustFetch(t, alice, c.value, 2)
	if _, err := fetch(t, eve, c.value); err == nil {
		t.Error("the session of the tenant is open after Reset")
	}
	again := session(t, a, servers[0], clientPrincipal("sales", "eve"), c)
	if got, err := fetch(t, again, c.value); status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("the variable of the tenant is %v after Reset, %v", got, err)
	}
}

// TestRotation replaces the certificates of both tasks and of the client many times while steps
// run. No step fails.
func TestRotation(t *testing.T) {
	a := newAuthority(t, "train")
	files := map[int]server.TLS{}
	servers := startSecure(t, a, 2, server.WithTaskTLS(func(task cluster.Task) server.TLS {
		files[task.Index] = a.files(t, taskPrincipal("worker", task.Index))
		return files[task.Index]
	}))
	c := newCounter()
	alice := session(t, a, servers[0], clientPrincipal("research", "alice"), c)
	mustFetch(t, alice, c.init, 0)
	for i := range 50 {
		for index, f := range files {
			pair, err := a.ca.Issue(taskPrincipal("worker", index), nil, time.Now(), time.Hour)
			if err == nil {
				err = pair.Write(f.Cert, f.Key)
			}
			if err != nil {
				t.Fatal(err)
			}
			servers[index].Reload()
		}
		mustFetch(t, alice, c.add, float32(i+1))
		mustFetch(t, session(t, a, servers[0], clientPrincipal("research", fmt.Sprint(i)), c), c.far, 2*float32(i+1))
	}
}

// TestPlaintextGetsAReason speaks HTTP/2 without TLS to a port with TLS.
func TestPlaintextGetsAReason(t *testing.T) {
	a := newAuthority(t, "train")
	s := startSecure(t, a, 1)[0]
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if got, _ := io.ReadAll(io.LimitReader(c, 1<<10)); !strings.Contains(string(got), `weft proxy`) {
		t.Errorf("got %q", got)
	}
}

// TestLargeTensorWithTLS fetches a tensor of 64 MiB from another task.
func TestLargeTensorWithTLS(t *testing.T) {
	a := newAuthority(t, "train")
	servers := startSecure(t, a, 2)
	s := op.NewScope()
	far := s.WithDevice("/job:worker/task:1")
	const n = 16 << 20
	x := op.Fill(far, op.Const(far, []int32{n}), op.Const(far, float32(3)))
	f := a.files(t, clientPrincipal("research", "alice"))
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("grpc://"+servers[0].Address(), g, weft.WithNetwork(), weft.WithTLS(weft.TLS{Cert: f.Cert, Key: f.Key, CA: f.CA}))
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	got, err := sess.Fetch(t.Context(), nil, x)
	if err != nil {
		t.Fatal(err)
	}
	if v := tensor.Values[float32](&got[0]); len(v) != n || v[0] != 3 || v[n-1] != 3 {
		t.Errorf("%d elements", len(v))
	}
}

// TestTenantWeights gives one tenant more memory than others by the trust file.
func TestTenantWeights(t *testing.T) {
	a := newAuthority(t, "train")
	f := a.files(t, taskPrincipal("worker", 0))
	f.Trust = a.path("trust")
	if err := os.WriteFile(f.Trust, []byte("tenant research weight 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	limits := server.DefaultLimits()
	limits.TenantMemory = 1 << 20
	s := startSecure(t, a, 1, server.WithTLS(f), server.WithLimits(limits))[0]
	for tenant, most := range map[string]int32{"research": 4 << 20, "others": 1 << 20} {
		c := &counter{graph: op.NewScope()}
		size := op.Placeholder(c.graph, tensor.Int32)
		filled := op.Shape(c.graph, op.Fill(c.graph, op.Reshape(c.graph, size, op.Const(c.graph, []int32{1})), op.Const(c.graph, int8(1))))
		sess := session(t, a, s, clientPrincipal(tenant, "alice"), c)
		for bytes, want := range map[int32]status.Code{most / 2: status.OK, most + most/2: status.ResourceExhausted} {
			_, err := sess.Fetch(t.Context(), weft.Feeds{size: tensor.Scalar(bytes)}, filled)
			if status.CodeOf(err) != want {
				t.Errorf("%s, %d bytes: got %v, want %v", tenant, bytes, err, want)
			}
		}
	}
}
