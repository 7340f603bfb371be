package ioops

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func writeRecords(t *testing.T, path string, recs ...string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := record.NewWriter(f, record.None)
	for _, rec := range recs {
		if err == nil {
			err = w.Write([]byte(rec))
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecordInputReturnsEachRecordOncePerPass(t *testing.T) {
	dir := t.TempDir()
	const files, each = 7, 11
	for i := range files {
		var recs []string
		for k := range each {
			recs = append(recs, fmt.Sprintf("%d/%d", i, k))
		}
		writeRecords(t, filepath.Join(dir, fmt.Sprint("f", i)), recs...)
	}
	for _, buffer := range []int64{1, 10, 1000} {
		n, err := kerneltest.NewEnv().Make("RecordInput", opdef.Attrs{
			"file_pattern": dir + "/f[0-3]," + dir + "/f[4-9]", "file_buffer_size": buffer, "batch_size": int64(files * each),
			"file_shuffle_shift_ratio": float32(0.3),
		})
		if err != nil {
			t.Fatal(err)
		}
		var passes []string
		for range 3 {
			out, err := n.Run()
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, rec := range tensor.Values[string](&out[0]) {
				seen[rec] = true
			}
			if len(seen) != files*each {
				t.Errorf("buffer %d: %d different records in a pass of %d", buffer, len(seen), files*each)
			}
			passes = append(passes, fmt.Sprint(tensor.Values[string](&out[0])))
		}
		if passes[0] == passes[1] && passes[1] == passes[2] {
			t.Errorf("buffer %d: three passes in one order", buffer)
		}
		n.Close()
		if _, err := n.Run(); status.CodeOf(err) != status.Cancelled {
			t.Errorf("a closed kernel returned %v", err)
		}
	}
}

func TestRecordInputErrors(t *testing.T) {
	dir := t.TempDir()
	writeRecords(t, filepath.Join(dir, "empty"))
	if err := os.WriteFile(filepath.Join(dir, "bad"), []byte("this is no record at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		attrs opdef.Attrs
		code  status.Code
		want  string
	}{
		{opdef.Attrs{"file_pattern": "nan", "file_parallelism": int64(-1)}, status.InvalidArgument, "file_parallelism should >= 0, got -1"},
		{opdef.Attrs{"file_pattern": "nan", "batch_size": int64(-1)}, status.InvalidArgument, "batch_size must be non-negative but got -1"},
		{opdef.Attrs{"file_pattern": dir + "/none"}, status.NotFound, "Found no files at " + dir + "/none"},
		{opdef.Attrs{"file_pattern": dir + "/empty"}, status.InvalidArgument, "Found no records in the files at " + dir + "/empty"},
		{opdef.Attrs{"file_pattern": dir + "/bad"}, status.DataLoss, "corrupted record at 0"},
	} {
		if _, err := kerneltest.Try("RecordInput", tt.attrs); status.CodeOf(err) != tt.code || err.Error() != tt.want {
			t.Errorf("%v: error %v, want %v: %s", tt.attrs, err, tt.code, tt.want)
		}
	}
}
