package sparse

import "testing"

// An error names some of the sizes of a sparse tensor of a rank that no dense one has.
func TestTextOfShapes(t *testing.T) {
	if got := joined([]int64{1, 2, 3}, ","); got != "1,2,3" {
		t.Errorf("got %s", got)
	}
	if got := joined(make([]int64, 1<<20), ","); len(got) > 1000 {
		t.Errorf("got %d bytes", len(got))
	}
}
