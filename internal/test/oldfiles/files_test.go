package oldfiles

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/tfrecord"
)

// each runs a test for the files of every release.
func each(t *testing.T, test func(t *testing.T, dir, release string)) {
	t.Helper()
	for _, release := range []string{"0.12", "1.4", "1.15"} {
		t.Run(release, func(t *testing.T) { test(t, filepath.Join("testdata", release), release) })
	}
}

func TestCheckpoints(t *testing.T) {
	types := []string{"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64"}
	onlyV2 := []string{"float16", "complex128", "texts"}
	each(t, func(t *testing.T, dir, _ string) {
		dir = filepath.Join(dir, "checkpoints")
		latest, err := checkpoint.Latest(dir)
		if want := filepath.Join(dir, "v2-3"); err != nil || latest != want {
			t.Errorf("the latest checkpoint is %q, want %q: %v", latest, want, err)
		}
		for _, prefix := range []string{"v1-3", "v2-3"} {
			r := open(t, filepath.Join(dir, prefix))
			names := slices.Concat(types, []string{"parts"})
			if prefix == "v2-3" {
				names = append(names, onlyV2...)
			}
			if n := len(r.Tensors()); n != len(names) {
				t.Errorf("%s: %d tensors, want %d", prefix, n, len(names))
			}
			for _, name := range names {
				want := "1 0"
				switch {
				case name == "parts":
					want = "[0 1][2 3][4 5][6 7][8 9][10 11]"
				case name == "texts":
					want = "a  b\\000\xff"
				case strings.HasPrefix(name, "complex"):
					want = "(1+0i) (0+0i)"
				}
				checkTensor(t, r, name, want)
			}
		}
		for _, prefix := range []string{"v1-sharded-?????-of-00002", "v2-sharded"} {
			r := open(t, filepath.Join(dir, prefix))
			checkTensor(t, r, "a", "1 2")
			checkTensor(t, r, "b", "3 4")
		}
	})
}

func open(t *testing.T, prefix string) *checkpoint.Reader {
	t.Helper()
	r, err := checkpoint.Open(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if err := r.Verify(); err != nil {
		t.Errorf("%s: %v", prefix, err)
	}
	return r
}

func checkTensor(t *testing.T, r *checkpoint.Reader, name, want string) {
	t.Helper()
	value, err := r.Read(name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	got := strings.ReplaceAll(value.Summary(20), "\n", "")
	if value.DType().IsComplex() {
		got = strings.Trim(fmt.Sprint(value.Go()), "[]")
	}
	if got != want {
		t.Errorf("%s is %s, want %s", name, got, want)
	}
}

func TestEvents(t *testing.T) {
	each(t, func(t *testing.T, dir, release string) {
		files, err := summary.Files(filepath.Join(dir, "events"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%d event files: %v", len(files), err)
		}
		r, err := summary.Open(files[0])
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var got []string
		losses := map[int64]float32{}
		for e, err := range r.Events() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, describe(e)...)
			for _, v := range e.Values {
				if x, ok := v.Data.(float32); ok && v.Tag == "loss" {
					losses[e.Step] = x
				}
			}
		}
		want := []string{"graph", "meta graph", "session 1", "loss", "weights", "digit/image/0", "tone/audio/0", "note", "loss", "run step2"}
		if release == "0.12" { // has no summaries of texts
			want = slices.DeleteFunc(want, func(s string) bool { return s == "note" })
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events are %q, want %q", got, want)
		}
		if len(losses) != 2 || losses[1] != 0.5 || losses[2] != 0.25 {
			t.Errorf("the losses are %v", losses)
		}
	})
}

func describe(e summary.Event) []string {
	switch {
	case e.Graph != nil:
		if _, err := savedmodel.ParseGraph(e.Graph); err != nil {
			return []string{err.Error()}
		}
		return []string{"graph"}
	case e.MetaGraph != nil:
		if _, err := savedmodel.ParseMetaGraph(e.MetaGraph); err != nil {
			return []string{err.Error()}
		}
		return []string{"meta graph"}
	case e.Session != nil:
		return []string{"session " + string('0'+rune(e.Session.Status))}
	case e.RunMetadata != nil:
		return []string{"run " + e.RunMetadata.Tag}
	}
	var tags []string
	for _, v := range e.Values {
		tag := v.Tag
		if text, ok := v.Data.(tensor.Tensor); ok && text.Summary(9) != "*good*" {
			tag += " is " + text.Summary(9)
		}
		tags = append(tags, tag)
	}
	return tags
}

func TestRecords(t *testing.T) {
	compressions := map[string]tfrecord.Compression{"plain": tfrecord.None, "zlib": tfrecord.ZLIB, "gzip": tfrecord.GZIP}
	each(t, func(t *testing.T, dir, _ string) {
		for name, compression := range compressions {
			r, err := tfrecord.Open(filepath.Join(dir, name+".tfrecord"), compression)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var got []string
			for record, err := range r.All() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(record))
			}
			if want := []string{"one", "", name}; !slices.Equal(got, want) {
				t.Errorf("%s: the records are %q, want %q", name, got, want)
			}
		}
	})
}
