package chrometrace

import (
	"bytes"
	"testing"
	"time"
)

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	span := Span("a", 1, 2, 1500*time.Nanosecond, 0)
	if err := Write(&b, []Event{Name(ProcessName, 1, 0, "p"), SortIndex(ThreadSortIndex, 1, 2, 3), span}); err != nil {
		t.Fatal(err)
	}
	const want = `{"displayTimeUnit":"ms","traceEvents":[
{"name":"process_name","ph":"M","pid":1,"tid":0,"ts":0,"args":{"name":"p"}},
{"name":"thread_sort_index","ph":"M","pid":1,"tid":2,"ts":0,"args":{"sort_index":3}},
{"name":"a","ph":"X","pid":1,"tid":2,"ts":1.5,"dur":0}
]}
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestRows(t *testing.T) {
	var r Rows
	for i, tt := range []struct {
		start, end time.Duration
		row        int
	}{{0, 5, 0}, {1, 3, 1}, {2, 4, 2}, {3, 9, 1}, {5, 6, 0}, {5, 7, 2}} {
		if row := r.Place(tt.start, tt.end); row != tt.row {
			t.Errorf("event %d is in row %d, want %d", i, row, tt.row)
		}
	}
}

// The time grows with the events, also if all of them overlap.
func TestManyRows(t *testing.T) {
	const n = 300_000
	began := time.Now()
	var r Rows
	for i := range time.Duration(n) {
		if row := r.Place(i, 2*n); row != int(i) {
			t.Fatalf("event %d is in row %d", i, row)
		}
	}
	if row := r.Place(2*n, 2*n); row != 0 {
		t.Errorf("the last event is in row %d", row)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
