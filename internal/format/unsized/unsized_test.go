package unsized

import (
	"bufio"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

func TestExactly(t *testing.T) {
	text := strings.Repeat("0123456789", 3000)
	for _, test := range []struct {
		before string
		n      int64
		want   string
		err    error
	}{
		{"", 0, "", nil},
		{"", 10, text[:10], nil},
		{"ab", 511, "ab" + text[:511], nil},
		{"ab", 30000, "ab" + text, nil},
		{"ab", 30001, "ab" + text, io.ErrUnexpectedEOF},
		{"", math.MaxInt64, text, io.ErrUnexpectedEOF},
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.DataErrReader(strings.NewReader(text)), iotest.HalfReader(strings.NewReader(text))} {
			b, err := Exactly([]byte(test.before), r, test.n)
			if string(b) != test.want || !errors.Is(err, test.err) {
				t.Errorf("%q and %d bytes: %d bytes, %v", test.before, test.n, len(b), err)
			}
		}
	}
	if b, err := Exactly([]byte("ab"), strings.NewReader(""), 5); string(b) != "ab" || !errors.Is(err, io.EOF) {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := All(iotest.OneByteReader(strings.NewReader(text))); string(b) != text || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := All(iotest.TimeoutReader(strings.NewReader(text))); !errors.Is(err, iotest.ErrTimeout) {
		t.Error(err)
	}
}

// Lines of all lengths around that of the buffer are those of bufio.Reader.ReadString.
func TestLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 200 {
		text.WriteString(strings.Repeat("x", rng.IntN(70)))
		text.WriteString("\n")
	}
	for _, end := range []string{"", "no line end", strings.Repeat("y", 5000)} {
		all := text.String() + end
		got, want := bufio.NewReaderSize(strings.NewReader(all), 16), bufio.NewReader(strings.NewReader(all))
		for {
			line, err := Line(got)
			expected, _ := want.ReadString('\n')
			if line != expected || (err != nil) != (expected == "") {
				t.Fatalf("%q, %v; want %q", line, err, expected)
			}
			if err != nil {
				break
			}
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestOutOfMemory(t *testing.T) {
	limit := membudget.Limit()
	defer membudget.SetLimit(limit)
	membudget.SetLimit(256 << 20)
	_, all := All(endless{})
	_, exactly := Exactly(nil, endless{}, 1<<40)
	_, line := Line(bufio.NewReader(endless{}))
	for _, err := range []error{all, exactly, line} {
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Error(err)
		}
	}
}
