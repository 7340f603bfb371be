package data

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("UniqueDataset", "Creates a dataset of the unique elements of its input.", nil, withSpecAndMetadata(),
		func(_ *node, _ *kernel.Context, s stage) (dataset, error) {
			types := s.input.elementSpec().types
			if len(types) != 1 {
				return nil, status.InvalidArgumentf("UniqueDataset only supports inputs with a single component.")
			}
			switch t := types[0]; t {
			case tensor.Int32, tensor.Int64, tensor.String:
			default:
				return nil, status.InvalidArgumentf("UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` component.")
			}
			return &uniqueDataset{s}, nil
		})
}

type uniqueDataset struct{ stage }

func (d *uniqueDataset) cardinality() int64 { return unknown }

func (d *uniqueDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &uniqueIterator{source: src, seen: map[string]bool{}, paid: membudget.NewHolding()}, err
}

type uniqueIterator struct {
	source
	seen  map[string]bool    // keys are contents
	all   []element          // elements returned
	meter membudget.Meter    // of seen
	paid  *membudget.Holding // the same
}

func (it *uniqueIterator) next(r *run) (element, error) {
	for {
		e, err := it.pull(r)
		if err != nil {
			return nil, err
		}
		if key := contents(&e[0]); !it.seen[key] {
			it.meter.MustTakeEntry(len(key))
			if err := resource.Hold(it.paid, resource.Account(r.ctx), int64(len(key))+keySize); err != nil {
				e.release()
				return nil, err
			}
			it.seen[key] = true
			it.all = membudget.Append(it.all, e.retain())
			return e, nil
		}
		e.release()
	}
}

// keySize is the memory of an entry of seen without the text of its key, in bytes.
const keySize = 64

// contents returns a string that is equal for two tensors of one type if and only if they are
// equal.
func contents(t *tensor.Tensor) string {
	key := []byte(fmt.Sprint(t.Shape()))
	switch t.DType() {
	case tensor.String:
		for _, s := range tensor.Values[string](t) {
			//sizedmake:ok about the size of the tensor
			key = append(binary.AppendUvarint(key, uint64(len(s))), s...)
		}
	case tensor.Int32:
		for _, v := range tensor.Values[int32](t) {
			key = binary.AppendVarint(key, int64(v))
		}
	default:
		for _, v := range tensor.Values[int64](t) {
			key = binary.AppendVarint(key, v)
		}
	}
	return string(key)
}

func (it *uniqueIterator) state(a *archive) {
	a.elements(&it.all)
	if a.loading {
		for _, e := range it.all {
			if len(e) == 1 {
				//sizedmake:ok an element each, which is larger
				it.seen[contents(&e[0])] = true
			}
		}
	}
	it.source.state(a)
}
