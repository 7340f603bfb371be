package executor

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// runBuiltin executes a live node that has no kernel.
func (r *run) runBuiltin(n *node, it *iteration) {
	if n.refs {
		if err := n.resolve(it); err != nil {
			r.fail(n.attach(err))
			r.finish(n, it, false, nil)
			return
		}
	}
	switch n.kind {
	case forward, enter, exit, next:
		r.finish(n, it, false, it.inputs(n))
		return
	case noop, trigger:
		r.finish(n, it, false, nil)
		return
	default:
	}
	outs := r.inline.outputs(n)
	if err := r.fill(n, it.inputs(n), outs); err != nil {
		r.fail(n.attach(err))
	}
	r.finish(n, it, false, outs)
}

// fill moves values from the inputs of a node, from its attributes or from the run's arguments to
// its outputs.
func (r *run) fill(n *node, ins, outs []kernel.Value) error {
	switch n.kind {
	case constant:
		outs[0].Tensor = n.value.Retain()
	case switchOp:
		pred := &ins[1].Tensor
		if len(pred.Shape()) > 0 {
			return status.InvalidArgumentf("The second input must be a scalar, but it has shape %v", pred.Shape())
		}
		port := 0
		if tensor.Value[bool](pred) {
			port = 1
		}
		move(&outs[port], &ins[0])
	case switchN:
		index := &ins[1].Tensor
		if len(index.Shape()) > 0 {
			return status.InvalidArgumentf("The second input must be a scalar, but it has shape %v", index.Shape())
		}
		port := int(tensor.Value[int32](index))
		if port < 0 || port >= len(outs) {
			port = len(outs) - 1
		}
		move(&outs[port], &ins[0])
	case merge:
		for i := range ins {
			if present(&ins[i]) {
				move(&outs[0], &ins[i])
				if i < len(n.indexes) {
					outs[1].Tensor = n.indexes[i].Retain()
				} else if !n.unused[1] {
					outs[1].Tensor = tensor.Scalar(int32(i))
				}
				break
			}
		}
	case arg:
		return r.takeArg(n, &outs[0])
	case retval:
		return r.putRet(n, &ins[0])
	default:
	}
	return nil
}

func move(dst, src *kernel.Value) { *dst, *src = *src, kernel.Value{} }

func (r *run) takeArg(n *node, out *kernel.Value) error {
	if n.index >= len(r.opts.Args) {
		return status.InvalidArgumentf("Argument %d of the call is missing", n.index)
	}
	t := &r.opts.Args[n.index]
	if have, want := t.DType(), n.outTypes[0].Base(); have != want {
		return status.InvalidArgumentf("Type mismatch: actual %v vs. expect %v", have, want)
	}
	out.Tensor, *t = *t, tensor.Tensor{}
	return placeArg(n, out, r.p.e.device.GPU)
}

func (r *run) putRet(n *node, in *kernel.Value) error {
	if n.index >= len(r.opts.Rets) {
		return status.InvalidArgumentf("Result %d is not requested", n.index)
	}
	if have, want := in.Tensor.DType(), n.inTypes[0].Base(); have != want {
		return status.InvalidArgumentf("Type mismatch: actual %v vs. expect %v", have, want)
	}
	ret := &r.opts.Rets[n.index]
	ret.Release()
	*ret, in.Tensor = in.Tensor, tensor.Tensor{}
	return nil
}

// resolve replaces each reference among the inputs of a node by the value of its variable, if the
// node takes a value there.
func (n *node) resolve(it *iteration) error {
	ins := it.inputs(n)
	for i := range ins {
		in, want := &ins[i], n.inTypes[i]
		switch {
		case in.Ref == nil:
			if want.IsRef() && in.Tensor.Initialized() {
				return status.InvalidArgumentf("%d-th input expects a ref type", i)
			}
		case want.IsRef() || n.takesRef && i == 0:
			if !n.allowsUninit && !in.Ref.Initialized() {
				return n.uninitialized(i)
			}
		default:
			t := in.Ref.Load()
			if !t.Initialized() {
				return n.uninitialized(i)
			}
			in.Tensor, in.Ref = t, nil
			if have := t.DType(); have != want {
				return status.InvalidArgumentf("%d-th input expects type %v but automatically dereferenced input tensor has type %v",
					i, want, have)
			}
		}
	}
	return nil
}

func (n *node) uninitialized(i int) error {
	return status.FailedPreconditionf("Attempting to use uninitialized value %s", n.sources[i])
}
