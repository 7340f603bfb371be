package listops

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// TestVector changes vectors at random and compares every version with a slice, also after later
// changes.
func TestVector(t *testing.T) {
	type version struct {
		v    vector
		want []*tensor.Tensor
	}
	random := rand.New(rand.NewPCG(1, 2))
	versions := []version{{}}
	for range 3000 {
		from := versions[random.IntN(len(versions))]
		want := append([]*tensor.Tensor(nil), from.want...)
		v, elem := from.v, &tensor.Tensor{}
		switch random.IntN(5) {
		case 0:
			n := random.IntN(2500)
			v = v.resize(n)
			for len(want) < n {
				want = append(want, nil)
			}
			want = want[:n]
		case 1, 2:
			v, want = v.push(elem), append(want, elem)
		default:
			if len(want) > 0 {
				i := random.IntN(len(want))
				v, want[i] = v.set(i, elem), elem
			}
		}
		versions = append(versions, version{v, want})
	}
	for _, x := range versions {
		if x.v.n != len(x.want) {
			t.Fatalf("%d elements, want %d", x.v.n, len(x.want))
		}
		for i, want := range x.want {
			if x.v.get(i) != want {
				t.Fatalf("element %d of %d is wrong", i, x.v.n)
			}
		}
		for i, got := range x.v.all() {
			if got != x.want[i] {
				t.Fatalf("element %d of %d is out of order", i, x.v.n)
			}
			x.want[i] = nil
		}
		for i, left := range x.want {
			if left != nil {
				t.Fatalf("element %d of %d is passed over", i, x.v.n)
			}
		}
	}
}

// TestVectorIsSparse creates a vector too large to allocate densely.
func TestVectorIsSparse(t *testing.T) {
	elem := &tensor.Tensor{}
	v := vector{}.resize(1<<40).set(1<<39, elem)
	if v.get(1<<39) != elem || v.get(5) != nil {
		t.Error("wrong elements")
	}
	if v = v.resize(1 << 39).resize(1 << 40); v.get(1<<39) != nil {
		t.Error("an element is still there after it was cut off")
	}
}

// vectorOf makes the same vectors as pushing the elements, and stops at an error.
func TestVectorOf(t *testing.T) {
	for _, n := range []int{0, 1, width, width + 1, width * width, width*width + 1, 3*width*width*width + 5} {
		all := make([]tensor.Tensor, n)
		asked := 0
		v, err := vectorOf(n, func(i int) (*tensor.Tensor, error) {
			if i != asked {
				t.Fatalf("element %d is asked for, want %d", i, asked)
			}
			asked++
			return &all[i], nil
		})
		if err != nil || v.n != n || asked != n {
			t.Fatalf("%d of %d elements, %d were asked for: %v", v.n, n, asked, err)
		}
		for i := range all {
			if v.get(i) != &all[i] {
				t.Fatalf("element %d of %d is wrong", i, n)
			}
		}
		last := &tensor.Tensor{}
		if v = v.push(last); v.get(n) != last || n > 0 && v.get(n-1) != &all[n-1] {
			t.Errorf("pushing after %d elements is wrong", n)
		}
		fail := errors.New("none")
		if _, err := vectorOf(n, func(i int) (*tensor.Tensor, error) {
			if i == n-1 {
				return nil, fail
			}
			return &all[i], nil
		}); n > 0 && !errors.Is(err, fail) {
			t.Errorf("error %v of the last of %d elements", err, n)
		}
	}
}
