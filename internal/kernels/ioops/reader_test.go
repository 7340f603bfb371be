package ioops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// readerBench is a reader and its queue of file names.
type readerBench struct {
	*testing.T
	env           *kerneltest.Env
	reader, queue tensor.Tensor
}

func newReaderBench(t *testing.T, op string, attrs opdef.Attrs) *readerBench {
	b := &readerBench{T: t, env: kerneltest.NewEnv()}
	b.env.Step.Context = t.Context()
	b.queue = b.run("FIFOQueueV2", opdef.Attrs{"component_types": []tensor.DType{tensor.String}})[0]
	b.reader = b.run(op, attrs)[0]
	return b
}

func (b *readerBench) node(op string, attrs opdef.Attrs) *kerneltest.Node {
	b.Helper()
	n, err := b.env.Make(op, attrs)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func (b *readerBench) run(op string, attrs opdef.Attrs, in ...tensor.Tensor) []tensor.Tensor {
	b.Helper()
	out, err := b.node(op, attrs).Run(in...)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func (b *readerBench) enqueue(names ...string) {
	b.Helper()
	b.run("QueueEnqueueManyV2", opdef.Attrs{"Tcomponents": []tensor.DType{tensor.String}}, b.queue, tensor.Vector(names...))
}

func (b *readerBench) read() <-chan kerneltest.Result {
	return b.node("ReaderReadV2", nil).Start(b.reader, b.queue)
}

func TestReadWaitsForWork(t *testing.T) {
	b := newReaderBench(t, "IdentityReaderV2", nil)
	reads := []<-chan kerneltest.Result{b.read(), b.read()}
	// must not wait for the reads
	if n := b.run("ReaderNumRecordsProducedV2", nil, b.reader); tensor.Value[int64](&n[0]) != 0 {
		t.Errorf("%v records before there was a file", n[0])
	}
	b.enqueue("a", "b")
	seen := map[string]bool{}
	for _, r := range reads {
		got := <-r
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		seen[tensor.Value[string](&got.Outputs[1].Tensor)] = true
	}
	if len(seen) != 2 {
		t.Errorf("read %v", seen)
	}
}

func TestReadEndsWithItsStep(t *testing.T) {
	b := newReaderBench(t, "IdentityReaderV2", nil)
	ctx, cancel := context.WithCancel(t.Context())
	b.env.Step.Context = ctx
	first, second := b.read(), b.read() // one waits for the queue, the other for the token
	cancel()
	for _, r := range []<-chan kerneltest.Result{first, second} {
		if got := <-r; status.CodeOf(got.Err) != status.Cancelled {
			t.Errorf("a cancelled read ended with %v", got.Err)
		}
	}
	b.env.Step.Context = t.Context()
	b.enqueue("a")
	if got := <-b.read(); got.Err != nil {
		t.Errorf("a read after a cancelled one: %v", got.Err)
	}
}

// TestConcurrentReads reads lines of files from several goroutines and expects each line once.
func TestConcurrentReads(t *testing.T) {
	b := newReaderBench(t, "TextLineReaderV2", nil)
	const files, perFile = 5, 40
	for i := range files {
		var text strings.Builder
		for k := range perFile {
			fmt.Fprintf(&text, "%d/%d\n", i, k)
		}
		name := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		b.enqueue(name)
	}
	lines := make(chan string, files*perFile)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range files * perFile / 4 {
				got := <-b.read()
				if got.Err != nil {
					t.Error(got.Err)
					return
				}
				lines <- tensor.Value[string](&got.Outputs[1].Tensor)
			}
		})
	}
	wg.Wait()
	close(lines)
	seen := map[string]bool{}
	for l := range lines {
		seen[l] = true
	}
	if len(seen) != files*perFile {
		t.Errorf("%d different lines, want %d", len(seen), files*perFile)
	}
}

func TestRestoreRefusesImpossibleStates(t *testing.T) {
	for state, want := range map[string]string{
		"\x08\x05\x10\x04\x22\x01z": "Inconsistent work started vs. finished when restoring in IdentityReader 'node': " +
			"work_started: 5\nwork_finished: 4\ncurrent_work: \"z\"\n",
		"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": "Unexpected negative value when restoring in IdentityReader 'node': work_finished: -1\n",
	} {
		b := newReaderBench(t, "IdentityReaderV2", nil)
		_, err := b.node("ReaderRestoreStateV2", nil).Run(b.reader, tensor.Scalar(state))
		if status.CodeOf(err) != status.InvalidArgument || err.Error() != want {
			t.Errorf("%q: %v", state, err)
		}
	}
}

func FuzzDecodeCounts(f *testing.F) {
	some := counts{started: 3, finished: 3, produced: 7, work: "a"}
	f.Add([]byte(some.encode()))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := decodeCounts(b)
		if !ok {
			return
		}
		if again, ok := decodeCounts([]byte(c.encode())); !ok || again != c {
			t.Errorf("%+v became %+v", c, again)
		}
	})
}
