package scalars

import (
	"fmt"
	"strings"
	"testing"
)

func TestBoard(t *testing.T) {
	var b Board
	for i := range 5 * maxPoints {
		b.Add("loss", int64(i), float64(i))
	}
	b.Add("accuracy", NoStep, 0.5)
	b.Add(strings.Repeat("x", maxTag+1), 0, 1)
	for i := range 2 * maxSeries {
		b.Add(fmt.Sprintf("tag %d", i), 0, 1)
	}
	all := b.Series()
	if len(all) != maxSeries || all[0].Tag != "accuracy" || all[0].Points[0].Step != NoStep {
		t.Fatalf("%d series, the first %+v", len(all), all[0])
	}
	points := all[1].Points
	if n := len(points); n < maxPoints/2 || n > maxPoints+1 {
		t.Errorf("%d points", n)
	}
	for i := 1; i < len(points); i++ {
		if points[i].Step <= points[i-1].Step || points[i].Value != float64(points[i].Step) {
			t.Fatalf("point %d is %+v after %+v", i, points[i], points[i-1])
		}
	}
	if last := points[len(points)-1]; last.Step != 5*maxPoints-1 {
		t.Errorf("the last point is %+v", last)
	}
	var none *Board
	none.Add("loss", 1, 1)
	if none.Series() != nil {
		t.Error("a nil board has series")
	}
}
