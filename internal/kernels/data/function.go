package data

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// captured is a function with its captured inputs, which are its last arguments.
type captured struct {
	kernel.Function
	last element
	op   string // name of the calling operation, for errors; may be empty
}

// function returns the function of an attribute with the captured inputs in an argument.
func (n *node) function(ctx *kernel.Context, attr, arg string) (*captured, error) {
	last, err := n.inputs(ctx, arg)
	if err != nil {
		return nil, err
	}
	f := n.functions[attr]
	if slices.ContainsFunc(last, func(t tensor.Tensor) bool { return isElsewhere(&t, ctx.Device.Name) }) {
		if f, err = n.Functions.InstantiateAcross(n.Attrs.Func(attr)); err != nil {
			last.release()
			return nil, err
		}
	}
	return &captured{f, last, n.Op.Name}, nil
}

// isElsewhere reports whether a tensor is a resource on another device. The nodes of a function
// that use it run there.
func isElsewhere(t *tensor.Tensor, device string) bool {
	if t.DType() != tensor.Resource || t.NumElements() == 0 {
		return false
	}
	h := tensor.Values[*tensor.Handle](t)[0]
	return h != nil && h.Device != "" && h.Device != device
}

// call calls the function with its first arguments, which it takes over, and waits for the results.
func (f *captured) call(r *run, first element) (element, error) {
	type result struct {
		rets element
		err  error
	}
	if err := r.cancelled(); err != nil {
		first.release()
		return nil, err
	}
	ended := make(chan result, 1)
	f.Call(r.ctx, slices.Concat(first, f.used(len(first)).retain()), func(rets []tensor.Tensor, err error) {
		//sizedmake:ok results of a function, as many as an attribute lists
		ended <- result{slices.Clone(rets), err}
	})
	got := <-ended
	return got.rets, f.wrapError(got.err)
}

// used returns the captured inputs that are arguments of the function, which has others before
// them. Programs capture more than the arguments to keep a resource alive: the iterator of several
// devices behind the datasets that distribute its elements.
func (f *captured) used(before int) element {
	args := f.Op().Inputs
	left := len(args) - before
	lists := slices.ContainsFunc(args, func(a opdef.Arg) bool { return a.NumberAttr+a.TypeListAttr != "" })
	if lists || left < 0 || left >= len(f.last) {
		return f.last
	}
	return f.last[:left]
}

// wrapError adds to an error the stage in which the function failed, in TensorFlow's wording.
func (f *captured) wrapError(err error) error {
	if err == nil || f.op == "" || status.CodeOf(err) == status.Cancelled {
		return err
	}
	return status.Errorf(status.CodeOf(err), "Error in user-defined function passed to %s transformation with iterator: Iterator::Root::%s: %w",
		f.op, strings.TrimSuffix(f.op, "Dataset"), err)
}

// evalPredicate calls a predicate and returns its result.
func (f *captured) evalPredicate(r *run, e element) (bool, error) {
	got, err := f.call(r, e.retain())
	if err != nil {
		return false, err
	}
	defer got.release()
	if len(got) != 1 || got[0].DType() != tensor.Bool || got[0].NumElements() != 1 {
		return false, status.InvalidArgumentf("Filter predicate `f` must return a scalar bool.")
	}
	return tensor.Values[bool](&got[0])[0], nil
}

// iterate calls a function that returns a dataset and returns an iterator over it.
func (f *captured) iterate(r *run, e element) (iterator, error) {
	d, err := f.dataset(r, e)
	if err != nil {
		return nil, err
	}
	return open(r, d)
}

func (f *captured) dataset(r *run, e element) (dataset, error) {
	made, err := f.variant(r, e)
	if err != nil {
		return nil, err
	}
	defer made.Release()
	return datasetOf(&made)
}

// variant calls a function that returns a dataset, and returns its variant.
func (f *captured) variant(r *run, e element) (tensor.Tensor, error) {
	got, err := f.call(r, e)
	if err != nil {
		return tensor.Tensor{}, err
	}
	if len(got) != 1 || got[0].DType() != tensor.Variant || got[0].Rank() != 0 {
		got.release()
		return tensor.Tensor{}, status.InvalidArgumentf("Function must return a single scalar of dtype DT_VARIANT.")
	}
	return got[0], nil
}
