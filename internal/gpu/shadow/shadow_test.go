package shadow

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func newRange(t *testing.T, size int) *Range {
	t.Helper()
	r, err := New(size)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestOffsets(t *testing.T) {
	r := newRange(t, 1<<38)
	b := r.Bytes(1<<37, 4096)[256:1024]
	if off, ok := r.Offset(b); !ok || off != 1<<37+256 || len(b) != 768 {
		t.Errorf("a slice of %d bytes is at %d, %t", len(b), off, ok)
	}
	if off, ok := r.Offset(b[768:]); !ok || off != 1<<37+1024 {
		t.Errorf("an empty slice is at %d, %t", off, ok)
	}
	if _, ok := r.Offset(make([]byte, 8)); ok {
		t.Error("memory of the host is in the range")
	}
	if _, ok := r.Offset(nil); ok {
		t.Error("nil is in the range")
	}
	other := newRange(t, 1<<20)
	if _, ok := other.Offset(b); ok {
		t.Error("a slice of one range is in another")
	}
}

func TestAccessFaults(t *testing.T) {
	r := newRange(t, 1<<20)
	b := r.Bytes(0, 4096)
	for name, touch := range map[string]func(){
		"read": func() { runtime.KeepAlive(int(b[0])) }, "clear": func() { clear(b) },
		"copy": func() { copy(make([]byte, 768), b) },
	} {
		func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not fault", name)
				}
			}()
			touch()
		}()
	}
}
