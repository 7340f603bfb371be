package function_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// counting returns a library with loops that count a0 up to a1 by 1 and add to a2.
func counting(t testing.TB, add string) *library {
	t.Helper()
	return newLibrary(t,
		define(t, "below", 3, "z = Less2(a0, a1)\n return bool z:z:0"),
		define(t, "next", 3, "one = Const() value=1\n i = Add2(a0, one:output:0)\n s = "+add+"(a2, a0)\n return i:z:0, a1, s:z:0"),
		define(t, "count", 3, "x = While(a0, a1, a2) T=int64,int64,int64 cond=@below body=@next\n return x:output:2"),
		define(t, "stateless", 3, "x = StatelessWhile(a0, a1, a2) T=int64,int64,int64 cond=@below body=@next\n return x:output:2"),
	)
}

func TestWhile(t *testing.T) {
	for _, add := range []string{"Add2", "AddLater"} {
		l := counting(t, add)
		l.want("count", 45, 0, 10, 0)
		l.want("stateless", 45, 0, 10, 0)
		l.want("count", 7, 10, 10, 7)
	}
}

// TestLongWhile runs more iterations than the stack could hold if they were nested.
func TestLongWhile(t *testing.T) {
	const n = 200_000
	counting(t, "Add2").want("count", n*(n-1)/2, 0, n, 0)
	const few = 5000
	counting(t, "AddLater").want("count", few*(few-1)/2, 0, few, 0)
}

func TestEndlessWhile(t *testing.T) {
	for _, add := range []string{"Add2", "AddLater"} {
		l := newLibrary(t,
			define(t, "always", 1, "one = Const() value=1\n return one:output:0"),
			define(t, "body", 1, "x = "+add+"(a0, a0)\n return x:z:0"),
			define(t, "endless", 1, "x = While(a0) T=int64 cond=@always body=@body\n return x:output:0"),
		)
		result := make(chan error)
		go func() {
			_, err := l.call("endless", 1)
			result <- err
		}()
		l.step.Cancel(status.DeadlineExceededf("too late"))
		if err := <-result; status.CodeOf(err) != status.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
	}
}

func TestBadWhile(t *testing.T) {
	l := newLibrary(t,
		define(t, "two", 1, "return a0, a0"),
		define(t, "one", 1, "return a0"),
		define(t, "truth", 1, "c = Less2(a0, a0)\n return bool c:z:0"),
		define(t, "badcond", 1, "x = While(a0) T=int64 cond=@two body=@one\n return x:output:0"),
		define(t, "badbody", 1, "x = While(a0) T=int64 cond=@one body=@two\n return x:output:0"),
		define(t, "badtype", 1, "x = While(a0) T=int64 cond=@one body=@truth\n return x:output:0"),
	)
	l.wantError("badcond", status.InvalidArgument, "Expected a single scalar return value from WhileOp cond, got 2 tensors.", 1)
	l = newLibrary(t, define(t, "two", 1, "return a0, a0"), define(t, "one", 1, "return a0"),
		define(t, "badbody", 1, "x = While(a0) T=int64 cond=@one body=@two\n return x:output:0"))
	l.wantError("badbody", status.InvalidArgument, "While loop body returned 2 arguments. Expected: 1", 1)
	l = newLibrary(t, define(t, "one", 1, "return a0"), define(t, "truth", 1, "c = Less2(a0, a0)\n return bool c:z:0"),
		define(t, "badtype", 1, "x = While(a0) T=int64 cond=@one body=@truth\n return x:output:0"))
	l.wantError("badtype", status.InvalidArgument, "Expected type int64 for return value 0 but got bool.", 1)
}

func TestRecursion(t *testing.T) {
	l := newLibrary(t,
		define(t, "stop", 1, "return a0"),
		define(t, "go", 1, "m = Const() value=-1\n one = Const() value=1\n two = Add2(one:output:0, one:output:0)\n"+
			"x = Add2(a0, m:output:0)\n y = Add2(x:z:0, m:output:0)\n f = fib(x:z:0)\n g = fib(y:z:0)\n s = Add2(f:r0:0, g:r0:0)\n return s:z:0"),
		define(t, "fib", 1, "two = Const() value=2\n c = Less2(a0, two:output:0)\n"+
			"x = If(c:z:0, a0) Tcond=bool Tin=int64 Tout=int64 then_branch=@stop else_branch=@go\n return x:output:0"),
	)
	l.want("fib", 610, 15)
}

func TestEndlessRecursion(t *testing.T) {
	l := newLibrary(t, define(t, "forever", 1, "x = forever(a0)\n y = forever(x:r0:0)\n return y:r0:0"))
	l.wantError("forever", status.ResourceExhausted, "nested more than", 1)
}

func TestFor(t *testing.T) {
	l := newLibrary(t, graph.FunctionDef{
		Signature: opdef.Op{
			Name:    "body",
			Inputs:  []opdef.Arg{{Name: "i", DType: tensor.Int32}, {Name: "x", DType: tensor.Int64}},
			Outputs: []opdef.Arg{{Name: "r", DType: tensor.Int64}},
		},
		Nodes: []graph.NodeDef{{Name: "y", Op: "Add2", Inputs: []string{"x", "x"}, Attrs: opdef.Attrs{}}},
		Ret:   map[string]string{"r": "y:z:0"},
	})
	n := newNode(l, "For", opdef.Attrs{"T": []tensor.DType{tensor.Int64}, "body": opdef.Func{Name: "body"}})
	tests := []struct {
		start, limit, delta int32
		want                int64
		err                 string
	}{
		{0, 5, 1, 32, ""}, {5, 0, -1, 32, ""}, {0, 5, 2, 8, ""}, {3, 3, 0, 1, ""}, {3, 3, 1, 1, ""},
		{2147483645, 2147483647, 2, 2, ""},
		{0, 5, -1, 0, "Invalid start/limit/delta: 0 5 -1"}, {5, 0, 1, 0, "Invalid"}, {0, 1, 0, 0, "Invalid"},
	}
	for _, tt := range tests {
		out, err := n.run(tensor.Scalar(tt.start), tensor.Scalar(tt.limit), tensor.Scalar(tt.delta), tensor.Scalar(int64(1)))
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%+v: got %v", tt, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", tt, err)
		default:
			if got := tensor.Value[int64](&out[0]); got != tt.want {
				t.Errorf("%+v: got %d", tt, got)
			}
		}
	}
}

// TestLoopVariablesAreTakenOver checks that the body of a loop may modify its arguments in place.
func TestLoopVariablesAreTakenOver(t *testing.T) {
	l := newLibrary(t,
		define(t, "again", 2, "one = Const() value=0\n c = Less2(one:output:0, a1)\n return bool c:z:0"),
		define(t, "step", 2, "m = Const() value=-1\n n = Add2(a1, m:output:0)\n p = InPlace(a0)\n"+
			"x = If(p:same:0, p:y:0) Tcond=bool Tin=int64 Tout=int64 then_branch=@good else_branch=@bad\n return x:output:0, n:z:0"),
		define(t, "good", 1, "return a0"),
		define(t, "bad", 1, "x = Fail(a0)\n return x:z:0"),
	)
	n := newNode(l, "While", opdef.Attrs{
		"T": []tensor.DType{tensor.Int64, tensor.Int64}, "cond": opdef.Func{Name: "again"}, "body": opdef.Func{Name: "step"},
	})
	counted, err := tensor.Alloc(tensor.Int64, nil)
	if err != nil {
		t.Fatal(err)
	}
	tensor.Values[int64](&counted)[0] = 42
	out, err := n.run(counted, tensor.Scalar(int64(5)))
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Value[int64](&out[0]); got != 42 {
		t.Errorf("got %d", got)
	}
}

func BenchmarkWhile(b *testing.B) {
	l := counting(b, "Add2")
	for b.Loop() {
		l.want("count", 1000*999/2, 0, 1000, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/iteration")
}
