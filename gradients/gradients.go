package gradients

import "github.com/weft-ml/weft/op"

// Option changes how [Compute] works.
type Option func(*options)

type options struct {
	initial  []Grad
	stop     map[op.Output]bool
	colocate bool
	gate     bool
	pairwise bool
	zeros    bool
	nest     *nesting
}

// Initial sets the gradients that accumulation starts from, one for each of ys. The default is
// ones.
func Initial(grads ...Grad) Option {
	return func(o *options) { o.initial = append([]Grad{}, grads...) }
}

// Stop names outputs that gradients do not pass through: they count as constants.
func Stop(outs ...op.Output) Option {
	return func(o *options) {
		for _, out := range outs {
			o.stop[out] = true
		}
	}
}

// Colocate places the nodes that differentiate an operation on its device.
func Colocate() Option { return func(o *options) { o.colocate = true } }

// Gate makes all gradients of the inputs of an operation depend on each other. It is for variables
// that are updated in place as soon as their gradient is known, while the gradient of another input
// may still read them. TensorFlow's servers need it with reference variables.
func Gate() Option { return func(o *options) { o.gate = true } }

// Pairwise adds the contributions to a gradient one after another as they arrive, instead of all at
// once after the last one. Each can be freed early, which takes less memory and more time. It is
// TensorFlow's EXPERIMENTAL_TREE.
func Pairwise() Option { return func(o *options) { o.pairwise = true } }

// Zeros returns zeros instead of none for an x that no y depends on.
func Zeros() Option { return func(o *options) { o.zeros = true } }

// Compute adds nodes that compute the derivative of the sum of ys with respect to each of xs, and
// returns one gradient for each x: none for an x that no y depends on, unless [Zeros] is given. An
// x may be a reference to a variable or the handle of a resource variable. A mistake, such as an
// operation between x and y that has no rule, is recorded in the scope; no x has a gradient then.
func Compute(s *op.Scope, ys, xs []op.Output, opts ...Option) []Grad {
	o := options{stop: map[op.Output]bool{}}
	for _, opt := range opts {
		opt(&o)
	}
	if o.nest == nil {
		o.nest = newNesting()
	}
	grads, err := accumulate(s, ys, xs, &o)
	if err != nil {
		s.Fail(err)
	}
	if err != nil || s.Err() != nil {
		return make([]Grad, len(xs))
	}
	return grads
}
