package data_test

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A pipeline in a graph reads the batches that the program reads.
func ExampleDataset_Graph() {
	numbers, err := data.FromSlices([]float32{1, 2, 3, 4, 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	batches := numbers.Shuffle(5, 1).MapOps(1, func(s *op.Scope, e []op.Output) []op.Output {
		return []op.Output{op.Square(s, e[0])}
	}).Batch(2)

	s := op.NewScope()
	epoch := op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))
	types, shapes := batches.Types()
	iterator := op.IteratorV2(s, "", "", types, shapes)
	start := op.MakeIterator(s, batches.Graph(s, epoch, nil), iterator)
	next := op.IteratorGetNext(s, iterator, types, shapes)
	g, err := s.Finalize()
	if err != nil {
		fmt.Println(err)
		return
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()

	ctx := context.Background()
	err = sess.Exec(ctx, weft.Feeds{epoch: tensor.Scalar(int64(0))}, start)
	for err == nil {
		var batch []tensor.Tensor
		if batch, err = sess.Fetch(ctx, nil, next...); err == nil {
			fmt.Println(batch[0].Go())
		}
	}
	fmt.Println(status.CodeOf(err)) // the end of the epoch
	for batch, err := range batches.Batches(ctx, 0) {
		fmt.Println(batch[0].Go(), err)
	}
	// Output:
	// [1 16]
	// [4 9]
	// [25]
	// OUT_OF_RANGE
	// [1 16] <nil>
	// [4 9] <nil>
	// [25] <nil>
}
