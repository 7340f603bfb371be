package objectstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/internal/test/objecttest"
	"github.com/weft-ml/weft/status"
)

// stores are the stores that every test runs with.
var stores = map[string]func(*testing.T) *objecttest.Store{
	objectstore.S3:  objecttest.S3,
	objectstore.GCS: objecttest.GCS,
}

// each runs a test with each kind of store.
func each(t *testing.T, f func(t *testing.T, s *objecttest.Store, name func(key string) objectstore.Name)) {
	for scheme, start := range stores {
		t.Run(scheme, func(t *testing.T) {
			f(t, start(t), func(key string) objectstore.Name {
				return objectstore.Name{Scheme: scheme, Bucket: objecttest.Bucket, Key: key}
			})
		})
	}
}

// random returns bytes that differ from one another at all offsets.
func random(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func write(t *testing.T, n objectstore.Name, b []byte) {
	t.Helper()
	w, err := objectstore.Create(n)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := objectstore.Stat(t.Context(), n); status.CodeOf(err) != status.NotFound {
		t.Errorf("%v is visible before Commit: %v", n, err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, n objectstore.Name, want []byte) {
	t.Helper()
	r, err := objectstore.Open(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if r.Size() != int64(len(want)) {
		t.Fatalf("%v has %d bytes, want %d", n, r.Size(), len(want))
	}
	got, err := io.ReadAll(reader{t.Context(), r})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v was read in order as %d bytes, equal %v, error %v", n, len(got), bytes.Equal(got, want), err)
	}
	got = make([]byte, len(want))
	if n, err := r.ReadAt(t.Context(), got, 0); n != len(want) || err != nil || !bytes.Equal(got, want) {
		t.Errorf("ReadAt returned %d, %v", n, err)
	}
	for range 20 {
		if len(want) == 0 {
			break
		}
		at := rand.IntN(len(want))
		b := make([]byte, min(rand.IntN(5000), len(want)-at))
		if _, err := r.ReadAt(t.Context(), b, int64(at)); err != nil || !bytes.Equal(b, want[at:at+len(b)]) {
			t.Errorf("ReadAt %d bytes at %d: %v", len(b), at, err)
		}
	}
	if k, err := r.ReadAt(t.Context(), make([]byte, 10), int64(len(want))-1); len(want) > 0 && (k != 1 || !errors.Is(err, io.EOF)) {
		t.Errorf("ReadAt beyond the end returned %d, %v", k, err)
	}
}

type reader struct {
	ctx context.Context
	*objectstore.Reader
}

func (r reader) Read(b []byte) (int, error) { return r.Reader.Read(r.ctx, b) }

func TestObjects(t *testing.T) {
	each(t, func(t *testing.T, s *objecttest.Store, name func(string) objectstore.Name) {
		for _, size := range []int{0, 1, 300_000, 8 << 20, 20<<20 + 12345} {
			n := name(fmt.Sprintf("dir/with space+plus%%41/ü/%d", size))
			b := random(size)
			write(t, n, b)
			check(t, n, b)
		}
		var names []string
		err := objectstore.List(t.Context(), name("dir"), "", func(e objectstore.Entry) error {
			names = append(names, fmt.Sprint(e.Name, e.Folder))
			return nil
		})
		if want := []string{"with space+plus%41true"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("the folder contains %q, %v", names, err)
		}
		from, to := name("dir/with space+plus%41/ü/300000"), name("other/ö")
		info, err := objectstore.Stat(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		if err := objectstore.Rename(t.Context(), from, to, info); err != nil {
			t.Fatal(err)
		}
		check(t, to, random(300_000))
		if _, err := objectstore.Stat(t.Context(), from); status.CodeOf(err) != status.NotFound {
			t.Errorf("after Rename: %v", err)
		}
		if err := objectstore.RemoveFolder(t.Context(), name("dir")); err != nil {
			t.Error(err)
		}
		if folder, err := objectstore.IsFolder(t.Context(), name("dir")); folder || err != nil {
			t.Errorf("after RemoveFolder: %v, %v", folder, err)
		}
	})
}

// TestLists reads lists of several pages.
func TestLists(t *testing.T) {
	each(t, func(t *testing.T, s *objecttest.Store, name func(string) objectstore.Name) {
		for i := range 1003 {
			w, _ := objectstore.Create(name(fmt.Sprintf("many/%04d", i)))
			if err := w.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		count := 0
		err := objectstore.List(t.Context(), name("many"), "", func(objectstore.Entry) error { count++; return nil })
		if err != nil || count != 1003 {
			t.Errorf("the list has %d objects: %v", count, err)
		}
		count = 0
		err = objectstore.List(t.Context(), name("many"), "01", func(objectstore.Entry) error { count++; return nil })
		if err != nil || count != 100 {
			t.Errorf("%d objects begin with 01: %v", count, err)
		}
	})
}

func TestAppend(t *testing.T) {
	each(t, func(t *testing.T, s *objecttest.Store, name func(string) objectstore.Name) {
		n := name("events")
		var want []byte
		for round, sizes := range [][]int{{10, 0, 3 << 20}, {20, 3 << 20}, {1, 9 << 20, 7}} {
			a, err := objectstore.OpenAppender(t.Context(), n, round == 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range sizes {
				b := random(size)
				if _, err := a.Write(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				want = append(want, b...)
				if err := a.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				check(t, n, want)
			}
		}
		if err := objectstore.List(t.Context(), name(""), "", func(e objectstore.Entry) error {
			if e.Name != "events" {
				t.Errorf("%s remains", e.Name)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestFaults writes and reads while every third request fails.
func TestFaults(t *testing.T) {
	each(t, func(t *testing.T, s *objecttest.Store, name func(string) objectstore.Name) {
		faults := []objecttest.Fault{objecttest.Internal, objecttest.SlowDown, objecttest.Cut, objecttest.CutAnswer, objecttest.Lost}
		s.FailEvery(3, faults...)
		b := random(17<<20 + 1)
		for i := range 2 {
			n := name(fmt.Sprintf("dir/%d", i))
			write(t, n, b)
			check(t, n, b)
			a, err := objectstore.OpenAppender(t.Context(), n, false)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Write(t.Context(), []byte("tail")); err != nil {
				t.Fatal(err)
			}
			if err := a.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			check(t, n, append(slices.Clone(b), "tail"...))
		}
		if err := objectstore.RemoveFolder(t.Context(), name("dir")); err != nil {
			t.Error(err)
		}
	})
}

// TestStall ends attempts without an answer.
func TestStall(t *testing.T) {
	t.Setenv("S3_REQUEST_TIMEOUT_MSEC", "100")
	each(t, func(t *testing.T, s *objecttest.Store, name func(string) objectstore.Name) {
		write(t, name("a"), []byte("contents"))
		s.FailEvery(2, objecttest.Hang)
		check(t, name("a"), []byte("contents"))
		s.FailEvery(1, objecttest.Hang)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := objectstore.Stat(ctx, name("a")); status.CodeOf(err) != status.DeadlineExceeded {
			t.Errorf("with a deadline: %v", err)
		}
		t.Setenv("AWS_MAX_ATTEMPTS", "2")
		_, err := objectstore.Stat(t.Context(), name("a"))
		if status.CodeOf(err) != status.Unavailable || !strings.Contains(err.Error(), "the store neither sent nor received a byte for 100ms (after 2 attempts") {
			t.Errorf("got %v", err)
		}
	})
}

// TestReplaced reads an object that is replaced after it was opened.
func TestReplaced(t *testing.T) {
	each(t, func(t *testing.T, s *objecttest.Store, name func(string) objectstore.Name) {
		write(t, name("a"), random(100))
		r, err := objectstore.Open(t.Context(), name("a"))
		if err != nil {
			t.Fatal(err)
		}
		w, _ := objectstore.Create(name("a"))
		_, _ = w.Write(t.Context(), random(99))
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ReadAt(t.Context(), make([]byte, 10), 0); status.CodeOf(err) != status.Aborted {
			t.Errorf("got %v", err)
		}
	})
}

// TestAbort leaves nothing.
func TestAbort(t *testing.T) {
	each(t, func(t *testing.T, s *objecttest.Store, name func(string) objectstore.Name) {
		w, err := objectstore.Create(name("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(t.Context(), random(9<<20)); err != nil {
			t.Fatal(err)
		}
		s.Requests()
		w.Abort(t.Context())
		if requests := s.Requests(); len(requests) != 1 || !strings.HasPrefix(requests[0], http.MethodDelete) {
			t.Errorf("Abort made the requests %q", requests)
		}
		if _, err := objectstore.Stat(t.Context(), name("a")); status.CodeOf(err) != status.NotFound {
			t.Errorf("after Abort: %v", err)
		}
		if err := w.Commit(t.Context()); status.CodeOf(err) != status.FailedPrecondition {
			t.Errorf("Commit after Abort: %v", err)
		}
	})
}
