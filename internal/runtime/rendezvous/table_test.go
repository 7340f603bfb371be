package rendezvous

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	alice = "/job:ps/replica:0/task:0/device:CPU:0"
	bob   = "/job:worker/replica:0/task:0/device:CPU:0"
)

var root = kernel.FrameIter{}

func key(name string) *kernel.Key { return kernel.NewKey(alice, 7890, bob, name) }

// get waits for the value under a key. The *kernel.Key may be another one than the sender's.
func get(t *testing.T, r *Table, name string) (tensor.Tensor, bool, error) {
	t.Helper()
	return r.Await(t.Context(), key(name).At(root))
}

func wantValue(t *testing.T, r *Table, name string, want string) {
	t.Helper()
	got, dead, err := get(t, r, name)
	if err != nil || dead {
		t.Fatalf("%s: dead %t, error %v", name, dead, err)
	}
	if v := tensor.Value[string](&got); v != want {
		t.Errorf("%s: got %q, want %q", name, v, want)
	}
}

func TestSendThenReceive(t *testing.T) {
	r := New()
	if err := r.Send(key("foo"), root, tensor.Scalar("hello"), false); err != nil {
		t.Fatal(err)
	}
	wantValue(t, r, "foo", "hello")
	if n := r.Parked(); n != 0 {
		t.Errorf("%d items are left", n)
	}
}

func TestReceiveThenSend(t *testing.T) {
	r := New()
	var got string
	r.Recv(key("foo"), root, func(v tensor.Tensor, _ bool, err error) {
		if err != nil {
			t.Error(err)
		}
		got = tensor.Value[string](&v)
	})
	if err := r.Send(key("foo"), root, tensor.Scalar("hello"), false); err != nil {
		t.Fatal(err)
	}
	if got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestConsumerUsesTheTable(t *testing.T) {
	r := New()
	r.Recv(key("foo"), root, func(v tensor.Tensor, dead bool, err error) {
		if err == nil {
			err = r.Send(key("bar"), root, v, dead)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := r.Send(key("foo"), root, tensor.Scalar("secret"), false); err != nil {
		t.Fatal(err)
	}
	wantValue(t, r, "bar", "secret")
}

func TestDeadTensor(t *testing.T) {
	r := New()
	if err := r.Send(key("foo"), root, tensor.Tensor{}, true); err != nil {
		t.Fatal(err)
	}
	if v, dead, err := get(t, r, "foo"); err != nil || !dead || v.Initialized() {
		t.Errorf("got %v, dead %t, error %v", v, dead, err)
	}
}

func TestValuesOfOneKeyKeepTheirOrder(t *testing.T) {
	r := New()
	const n = 100
	for i := range n {
		if err := r.Send(key("foo"), root, tensor.Scalar(fmt.Sprint(i)), false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		wantValue(t, r, "foo", fmt.Sprint(i))
	}
}

func TestConsumersOfOneKeyKeepTheirOrder(t *testing.T) {
	r := New()
	const n = 10
	var got []int
	for i := range n {
		r.Recv(key("foo"), root, func(v tensor.Tensor, _ bool, _ error) {
			got = append(got, i*100+int(tensor.Value[int32](&v)))
		})
	}
	for i := range n {
		if err := r.Send(key("foo"), root, tensor.Scalar(int32(i)), false); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range got {
		if v != i*101 {
			t.Errorf("consumer %d and value %d met at %d", v/100, v%100, i)
		}
	}
}

func TestFramesAreSeparate(t *testing.T) {
	r := New()
	k := key("foo")
	for iter := range int64(3) {
		at := kernel.FrameIter{Frame: 5189404682685958103, Iter: iter}
		if err := r.Send(k, at, tensor.Scalar(fmt.Sprint(iter)), false); err != nil {
			t.Fatal(err)
		}
	}
	for iter := range int64(3) {
		text := fmt.Sprintf("%s;%016x;%s;foo;5189404682685958103:%d", alice, 7890, bob, iter)
		v, _, err := r.Await(t.Context(), text)
		if err != nil || tensor.Value[string](&v) != fmt.Sprint(iter) {
			t.Errorf("iteration %d: got %v, error %v", iter, &v, err)
		}
	}
}

func TestKeysWithoutFrame(t *testing.T) {
	r := New()
	for _, text := range []string{"", ";", "abc", "a;b;c;d;abc", "a;b;c;d;1:2:3", "a;b;c;d;-1:0", "a;b;c;d;99999999999999999999:0"} {
		if err := r.SendText(text, tensor.Scalar(text), false); err != nil {
			t.Fatal(err)
		}
		r.RecvText(text, func(v tensor.Tensor, _ bool, err error) {
			if err != nil || tensor.Value[string](&v) != text {
				t.Errorf("%q: got %v, error %v", text, &v, err)
			}
		})
	}
}

func TestAwaitIsCancelled(t *testing.T) {
	r := New()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	text := key("foo").At(root)
	if _, _, err := r.Await(gone, text); status.CodeOf(err) != status.Cancelled || err.Error() != "RecvAsync is cancelled." {
		t.Errorf("got %v", err)
	}
	if n := r.Parked(); n != 0 {
		t.Errorf("%d items are left", n)
	}

	// The context is done and a value is available. Either may be chosen, but the value must not be
	// lost.
	if err := r.Send(key("foo"), root, tensor.Scalar("hello"), false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Await(gone, text); err != nil {
		wantValue(t, r, "foo", "hello")
	}
}

// TestConsumersWithdraw has four consumers of one key. The second and the last withdraw before two
// values are sent.
func TestConsumersWithdraw(t *testing.T) {
	r := New()
	p := tableKey{key("foo").Prefix(), root}
	got := make([]string, 4)
	waiting := make([]*item, 4)
	for i := range waiting {
		waiting[i] = &item{kept: true, done: func(v tensor.Tensor, _ bool, _ error) { got[i] = tensor.Value[string](&v) }}
		r.recv(p, waiting[i])
	}
	for _, i := range []int{1, 3} {
		if !r.withdraw(p, waiting[i]) {
			t.Errorf("consumer %d does not wait", i)
		}
	}
	for _, v := range []string{"a", "b", "c"} {
		if err := r.Send(key("foo"), root, tensor.Scalar(v), false); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"a", "", "b", ""}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.withdraw(p, waiting[0]) {
		t.Error("a consumer that was served still waits")
	}
	wantValue(t, r, "foo", "c")
}

// TestManyConsumersWithdraw withdraws the consumers of one key, the newest first.
func TestManyConsumersWithdraw(t *testing.T) {
	r := New()
	p := tableKey{key("foo").Prefix(), root}
	waiting := make([]*item, 200_000)
	for i := range waiting {
		waiting[i] = &item{kept: true, done: func(tensor.Tensor, bool, error) {}}
		r.recv(p, waiting[i])
	}
	kerneltest.Quickly(t, func() error {
		for _, it := range slices.Backward(waiting) {
			if !r.withdraw(p, it) {
				return status.Internalf("a consumer does not wait")
			}
		}
		return nil
	})
	if n := r.Parked(); n != 0 {
		t.Errorf("%d consumers still wait", n)
	}
}

func TestAbortReachesWaitingConsumers(t *testing.T) {
	r := New()
	var errs []error
	for _, name := range []string{"a", "b", "b"} {
		r.Recv(key(name), root, func(_ tensor.Tensor, _ bool, err error) { errs = append(errs, err) })
	}
	r.Abort(status.Abortedf("first"))
	r.Abort(status.Internalf("second"))
	if len(errs) != 3 {
		t.Fatalf("%d consumers were called", len(errs))
	}
	for _, err := range errs {
		if status.CodeOf(err) != status.Aborted {
			t.Errorf("got %v", err)
		}
	}
}

func TestAbortThenSendOrReceive(t *testing.T) {
	r := New()
	freed := 0
	value := func() tensor.Tensor {
		mem := make([]byte, 4)
		v, err := tensor.FromBytes(tensor.Float32, tensor.Shape{1}, mem, tensor.NewForeign(mem, func() { freed++ }))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if err := r.Send(key("foo"), root, value(), false); err != nil {
		t.Fatal(err)
	}
	r.Abort(status.Abortedf("gone"))
	if err := r.Send(key("foo"), root, value(), false); status.CodeOf(err) != status.Aborted {
		t.Errorf("send: %v", err)
	}
	if _, _, err := get(t, r, "foo"); status.CodeOf(err) != status.Aborted {
		t.Errorf("receive: %v", err)
	}
	if freed != 2 {
		t.Errorf("%d of 2 values were released", freed)
	}
}

func TestCloseReleasesValues(t *testing.T) {
	r := New()
	mem := make([]byte, 4)
	freed := false
	v, err := tensor.FromBytes(tensor.Float32, tensor.Shape{1}, mem, tensor.NewForeign(mem, func() { freed = true }))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(key("foo"), root, v, false); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if !freed || r.Parked() != 0 {
		t.Errorf("freed %t, %d items are left", freed, r.Parked())
	}
}

func TestTooManyItems(t *testing.T) {
	r := New()
	r.parked = maxParked
	if err := r.Send(key("foo"), root, tensor.Scalar("x"), false); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// TestManyKeys sends and receives one value under each of many keys, on separate goroutines and in
// random order.
func TestManyKeys(t *testing.T) {
	r := New()
	const n = 200
	rng := rand.New(rand.NewPCG(17, 1))
	var all sync.WaitGroup
	for _, i := range rng.Perm(n) {
		all.Go(func() {
			if err := r.Send(key(fmt.Sprint(i)), root, tensor.Scalar(fmt.Sprint(i)), false); err != nil {
				t.Error(err)
			}
		})
	}
	for _, i := range rng.Perm(n) {
		all.Go(func() { wantValue(t, r, fmt.Sprint(i), fmt.Sprint(i)) })
	}
	all.Wait()
	if left := r.Parked(); left != 0 {
		t.Errorf("%d items are left", left)
	}
}

// TestEveryConsumerIsCalledOnce aborts a table in use.
func TestEveryConsumerIsCalledOnce(t *testing.T) {
	r := New()
	const n = 500
	calls := make([]int, n)
	var all sync.WaitGroup
	for i := range n {
		var called sync.WaitGroup
		called.Add(1)
		all.Go(func() {
			r.Recv(key(fmt.Sprint(i)), root, func(tensor.Tensor, bool, error) { calls[i]++; called.Done() })
			called.Wait()
		})
		all.Go(func() {
			err := r.Send(key(fmt.Sprint(i)), root, tensor.Scalar("v"), false)
			if err != nil && !strings.Contains(err.Error(), "enough") {
				t.Error(err)
			}
		})
		if i == n/2 {
			all.Go(func() { r.Abort(status.Abortedf("enough")) })
		}
	}
	all.Wait()
	for i, c := range calls {
		if c != 1 {
			t.Errorf("consumer %d was called %d times", i, c)
		}
	}
}

func FuzzParsePlace(f *testing.F) {
	f.Add("/job:a;0000000000000001;/job:b;edge_1_x;0:0")
	f.Add("a;b;c;d;18446744073709551615:-1")
	f.Fuzz(func(t *testing.T, text string) {
		p := parseKey(text)
		if p.prefix != text && !strings.HasPrefix(text, p.prefix) {
			t.Errorf("%q has prefix %q", text, p.prefix)
		}
	})
}

func BenchmarkSendRecv(b *testing.B) {
	r := New()
	k, v := key("foo"), tensor.Scalar(float32(1))
	done := func(t tensor.Tensor, _ bool, _ error) { t.Release() }
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Send(k, root, v.Retain(), false); err != nil {
			b.Fatal(err)
		}
		r.Recv(k, root, done)
	}
}

func BenchmarkSendRecvParallel(b *testing.B) {
	r := New()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		k, v := key(fmt.Sprint(rand.Uint64())), tensor.Scalar(float32(1))
		done := func(t tensor.Tensor, _ bool, _ error) { t.Release() }
		for pb.Next() {
			if err := r.Send(k, root, v.Retain(), false); err != nil {
				b.Fatal(err)
			}
			r.Recv(k, root, done)
		}
	})
}

func TestTakeText(t *testing.T) {
	r := New()
	text := key("x").At(root)
	if _, _, ok, err := r.TakeText(text); ok || err != nil {
		t.Errorf("a value of an empty table: %t, %v", ok, err)
	}
	for _, v := range []string{"first", "second"} {
		if err := r.SendText(text, tensor.Scalar(v), v == "second"); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"first", "second"} {
		v, dead, ok, err := r.TakeText(text)
		if !ok || err != nil || dead != (want == "second") || tensor.Value[string](&v) != want {
			t.Errorf("got %v, dead %t, %t, %v, want %q", &v, dead, ok, err, want)
		}
	}
	r.RecvText(text, func(tensor.Tensor, bool, error) {})
	if _, _, ok, _ := r.TakeText(text); ok {
		t.Error("returned a consumer as a value")
	}
	why := status.Abortedf("why")
	r.Abort(why)
	if _, _, _, err := r.TakeText(text); status.CodeOf(err) != status.Aborted {
		t.Errorf("got %v after the end", err)
	}
}

func TestReset(t *testing.T) {
	r := New()
	for range 3 {
		for i := range 5 {
			if err := r.Send(key(fmt.Sprint(i%3)), root, tensor.Scalar("left"), false); err != nil {
				t.Fatal(err)
			}
		}
		if !r.Reset() || r.Parked() != 0 {
			t.Fatalf("%d are left", r.Parked())
		}
		if _, _, ok, _ := r.TakeText(key("0").At(root)); ok {
			t.Error("a value of another step")
		}
	}
	r.RecvText("waits", func(tensor.Tensor, bool, error) {})
	if r.Reset() {
		t.Error("a table with a waiting consumer was reset")
	}
	r.Abort(status.Abortedf("why"))
	if r.Reset() {
		t.Error("an aborted table was reset")
	}
}
