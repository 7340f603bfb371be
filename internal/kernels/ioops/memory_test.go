package ioops

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// contents returns the path of a file with the given contents.
func contents(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file is read as bytes, and its contents are a string. A string is written as bytes.
func TestMemoryOfFiles(t *testing.T) {
	long := strings.Repeat("x", 32<<20)
	path := contents(t, long)
	kerneltest.WantExhausted(t, 60<<20, "ReadFile", nil, tensor.Scalar(path))
	name := tensor.Scalar(strings.Repeat("x", 64<<20))
	kerneltest.WantExhausted(t, 80<<20, "WriteFile", nil, tensor.Scalar(path+"2"), name)
	kerneltest.WantExhausted(t, 80<<20, "ShardedFilename", nil, name, tensor.Scalar[int32](1), tensor.Scalar[int32](2))
	if got := kerneltest.Run(t, "ShardedFilespec", nil, tensor.Scalar("a\x00b"), tensor.Scalar[int32](2)); tensor.Value[string](&got[0]) != "a-?????-of-00002" {
		t.Errorf("got %v", got)
	}
}

// upTo runs ReaderReadUpTo.
func (b *readerBench) upTo(n int64) error {
	return (<-b.node("ReaderReadUpToV2", nil).Start(b.reader, b.queue, tensor.Scalar(n))).Err
}

// The key of each line has the path of the file.
func TestMemoryOfKeys(t *testing.T) {
	path := contents(t, strings.Repeat("\n", 32000))
	b := newReaderBench(t, "TextLineReaderV2", nil)
	b.enqueue(filepath.Dir(path) + strings.Repeat("/.", 1500) + "/f")
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(96 << 20)
	if err := b.upTo(1 << 60); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// Records of 0 bytes do not end.
func TestEmptyRecordsEndWithStep(t *testing.T) {
	b := newReaderBench(t, "FixedLengthRecordReaderV2", opdef.Attrs{"record_bytes": int64(0)})
	b.enqueue(contents(t, "x"))
	if err := b.upTo(1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.env.Step.Context = ctx
	for range 8 { // the wait for the reader ends with the step too, at random
		if err := b.upTo(1 << 16); status.CodeOf(err) != status.Cancelled {
			t.Errorf("got %v", err)
		}
	}
}

// A malformed state is quoted up to a few bytes of it.
func TestMemoryOfStates(t *testing.T) {
	b := newReaderBench(t, "IdentityReaderV2", nil)
	state := tensor.Scalar("\xff" + strings.Repeat("\x00", 16<<20))
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(40 << 20)
	_, err := b.node("ReaderRestoreStateV2", nil).Run(b.reader, state)
	if code := status.CodeOf(err); code != status.ResourceExhausted {
		t.Errorf("got %.100v", err)
	}
}

// The buffer of a RecordInput holds empty records.
func TestMemoryOfEmptyRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	writeRecords(t, path, make([]string, 3<<20)...)
	kerneltest.WantExhausted(t, 56<<20, "RecordInput", opdef.Attrs{"file_pattern": path, "file_buffer_size": int64(1 << 40), "batch_size": int64(1)})
}
