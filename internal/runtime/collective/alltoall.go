package collective

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// allToAll sends row i of the input to device i. It returns a tensor with the rows that all devices
// have sent to this one. The row of a device is at the rank that the device requested, or else at
// its rank in the group.
func (x *execution) allToAll(ctx context.Context) (tensor.Tensor, error) {
	n := len(x.group.Members)
	if x.in.Rank() == 0 || x.in.Dim(0) != n {
		return tensor.Tensor{}, status.InvalidArgumentf("input to all-to-all first dimension size (%d) must be the same as the group "+
			"size (%d)", firstDim(x.in), n)
	}
	key := func(from, to int) string {
		if x.group.Members[from].task() == x.group.Members[to].task() {
			return fmt.Sprintf("%s:%d:%d", x.key, from, to)
		}
		// TensorFlow's key, which can be ambiguous.
		return fmt.Sprintf("%s%d%d", x.key, from, to)
	}
	out, err := tensor.Alloc(x.op.DType, x.in.Shape())
	if err != nil {
		return tensor.Tensor{}, err
	}
	err = each(ctx, 2*n, func(ctx context.Context, i int) error {
		if i >= n {
			row := x.in.Rows(i-n, i-n+1)
			return x.send(ctx, key(x.rank, i-n), row.Retain())
		}
		from := i
		got, err := x.receive(ctx, from, key(from, x.rank), x.in.NumElements()/n)
		if err != nil {
			return err
		}
		defer got.Release()
		place := from
		if x.group.userRanks != nil {
			place = x.group.userRanks[from]
		}
		row := out.Rows(place, place+1)
		bulk.Copy(row.Bytes(), got.Bytes())
		return nil
	})
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	return out, nil
}

func firstDim(t *tensor.Tensor) int {
	if t.Rank() == 0 {
		return 0
	}
	return t.Dim(0)
}
