package table

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// Keys that share a long text, and keys that collide, do not hold a table after the end of the
// step. The table is as before.
func TestTablesEndWithStep(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	texts := tensor.Vector(slices.Repeat([]string{strings.Repeat("x", 64<<10)}, 4)...)
	colliding := make([]int64, 4096)
	for i := range colliding {
		colliding[i] = int64(i) << 32
	}
	numbers := tensor.Vector(colliding...)
	empty, deleted := tensor.Scalar[int64](-1), tensor.Scalar[int64](-2)
	hashed, err := newMutable(layout{keyType: tensor.String, valueType: tensor.String})
	if err != nil {
		t.Fatal(err)
	}
	dense, err := newDense(nil, layout{keyType: tensor.Int64, valueType: tensor.Int64}, &empty, &deleted, 0.8, 1<<13)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		contents
		keys tensor.Tensor
	}{"text": {hashed, texts}, "collisions": {dense, numbers}} {
		def, err := tensor.Zeros(test.keys.DType(), tensor.Shape{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := test.keys.Clone()
		if err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"insert": test.insert(ended, nil, &test.keys, &test.keys), "remove": test.remove(ended, nil, &test.keys),
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if test.contents == hashed && hashed.size() != 0 {
			t.Errorf("%s: %d keys are left", name, hashed.size())
		}
		if err := test.insert(t.Context(), nil, &test.keys, &test.keys); err != nil {
			t.Fatal(err)
		}
		size := test.size()
		if err := test.find(ended, &out, &test.keys, &def); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: find: %v", name, err)
		}
		if err := test.find(t.Context(), &out, &test.keys, &def); err != nil || test.size() != size {
			t.Errorf("%s: find: %v", name, err)
		}
	}
	// a larger table is not taken over before it has all entries
	before := dense.size()
	more := tensor.Vector(make([]int64, 1<<13)...)
	if err := dense.insert(ended, nil, &more, &more); !errors.Is(err, context.Canceled) || dense.size() != before {
		t.Errorf("growth: %v, %d entries of %d", err, dense.size(), before)
	}
}
