package httpbody

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

func TestRead(t *testing.T) {
	for _, size := range []int{0, 1, firstSize - 1, firstSize, firstSize + 1, 100_000, 1 << 20} {
		want := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
		for _, length := range []int64{-1, int64(size), int64(size) / 2, 2 * int64(size)} {
			got, err := Read(iotest.HalfReader(bytes.NewReader(want)), length, 0)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes of %d: got %d bytes, %v", size, length, len(got), err)
			}
			if length == int64(size) && cap(got) > 2*size+firstSize {
				t.Errorf("%d bytes take %d", size, cap(got))
			}
		}
	}
}

func TestLimit(t *testing.T) {
	for _, test := range []struct {
		size          int
		length, limit int64
		ok            bool
	}{
		{100, -1, 100, true}, {100, 100, 100, true}, {101, -1, 100, false}, {101, 101, 100, false}, {50, 101, 100, false},
		{100_000, -1, 99_999, false}, {100_000, -1, 100_000, true},
	} {
		_, err := Read(strings.NewReader(strings.Repeat("x", test.size)), test.length, test.limit)
		if test.ok && err != nil || !test.ok && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%+v: got %v", test, err)
		}
	}
}

func TestError(t *testing.T) {
	broken := errors.New("broken")
	if _, err := Read(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), -1, 0); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// endless is a body without end.
type endless struct{ read int64 }

func (e *endless) Read(b []byte) (int, error) {
	e.read += int64(len(b))
	return len(b), nil
}

func TestMemory(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(256 << 20)
	e := &endless{}
	_, err := Read(e, 1<<40, 0)
	if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "--memory-limit") {
		t.Errorf("got %v", err)
	}
	if e.read > 256<<20 {
		t.Errorf("%d bytes were read", e.read)
	}
}
