package collective

import (
	"context"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// groupOf returns a group with the given number of tasks and of devices per task.
func groupOf(tasks, devices int) *Group {
	g := &Group{}
	for i := range tasks {
		for d := range devices {
			g.Members = append(g.Members, Device{
				Name: "/job:worker/replica:0/task:" + strconv.Itoa(i) + "/device:CPU:" + strconv.Itoa(d),
			})
		}
	}
	return g
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestRings compares the orders of devices with TensorFlow's: peers of both implementations must
// send to the same neighbors.
func TestRings(t *testing.T) {
	const mib = 1 << 20 / 4 // elements
	four := upTo(4)
	shifted := []int{4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11, 20, 21, 22, 23, 16, 17, 18, 19}
	back := []int{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 19, 18, 17, 16, 23, 22, 21, 20}
	from3 := []int{3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10, 19, 20, 21, 22, 23, 16, 17, 18}
	backFrom3 := []int{4, 3, 2, 1, 0, 7, 6, 5, 12, 11, 10, 9, 8, 15, 14, 13, 20, 19, 18, 17, 16, 23, 22, 21}
	for _, tt := range []struct {
		tasks, devices, rank int
		offsets              []int64
		most                 int
		elements             int64
		want                 [][]int
		at                   []int
	}{
		{3, 8, 0, []int64{0, 4}, 0, 1, [][]int{upTo(24), shifted}, []int{0, 4}},
		{3, 8, 0, []int64{0, -4}, 0, 1, [][]int{upTo(24), back}, []int{0, 3}},
		{3, 8, 3, []int64{3, -3}, 0, 1, [][]int{from3, backFrom3}, []int{0, 1}},
		{3, 8, 0, nil, 0, 1, [][]int{upTo(24)}, []int{0}},
		{3, 8, 0, nil, 0, 3 * mib * 24 * 2, [][]int{upTo(24), back}, []int{0, 3}},
		{4, 1, 0, nil, 0, 100 * mib, [][]int{four, four}, []int{0, 0}},
		{4, 1, 0, []int64{0}, 4, 100 * mib, [][]int{four}, []int{0}},
		{4, 1, 0, nil, 4, 100 * mib, [][]int{four, four, four, four}, []int{0, 0, 0, 0}},
		{4, 1, 0, nil, -1, 100 * mib, [][]int{four}, []int{0}},
		{1, 3, 0, []int64{math.MaxInt64, math.MinInt64}, 0, 1, [][]int{{1, 2, 0}, {0, 2, 1}}, []int{2, 0}},
	} {
		x := &execution{group: groupOf(tt.tasks, tt.devices), rank: tt.rank, op: &kernel.Collective{
			Offsets: tt.offsets, MaxRings: tt.most, DType: tensor.Float32, Shape: tensor.Shape{tt.elements},
		}}
		got, err := x.rings()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%+v: %d rings", tt, len(got))
			continue
		}
		for i, r := range got {
			if !slices.Equal(r.ranks, tt.want[i]) || r.at != tt.at[i] {
				t.Errorf("%dx%d, rank %d, offsets %v: ring %d is %v at %d, want %v at %d",
					tt.tasks, tt.devices, tt.rank, tt.offsets, i, r.ranks, r.at, tt.want[i], tt.at[i])
			}
		}
	}
}

// TestManyRings refuses more rings than there is memory for.
func TestManyRings(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(256 << 20)
	in := tensor.Vector(make([]float32, 1<<20)...)
	x := &execution{group: groupOf(1, 1), in: &in, op: &kernel.Collective{
		Offsets: make([]int64, 1<<17), DType: tensor.Float32, Shape: tensor.Shape{1 << 20},
	}}
	if _, err := x.reduce(t.Context()); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// TestPanicOfPiece checks that a panic on the goroutine of a piece fails the operation only.
func TestPanicOfPiece(t *testing.T) {
	err := each(t.Context(), 2, func(context.Context, int) error { panic("at the disco") })
	if status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
}
