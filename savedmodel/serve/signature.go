package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Signature is a computation of a loaded model with named inputs and outputs. It may be run
// concurrently.
//
// A sparse tensor is three inputs or outputs, "x/indices", "x/values" and "x/shape". The components
// of a composite one, such as a ragged tensor, are "x/0", "x/1" and so on.
type Signature struct {
	Inputs, Outputs []Argument // sorted by name
	Method          string     // such as [savedmodel.MethodPredict]

	session  *weft.Session
	defaults map[string]tensor.Tensor // of inputs that may be left out
	// fed with the paths of assets, for nodes that read them in every step
	files []Argument
	paths []tensor.Tensor // of files, in the same order

	call atomic.Pointer[weft.Callable] // nil before the first run; stored with prepareLock held
	// prepared steps that return some of the outputs, by the key of outputsKey; guarded by
	// prepareLock
	some map[string]*weft.Callable
	// a lock whose acquisition a context can interrupt: held by the call whose value is in the
	// channel
	prepareLock chan struct{}
}

// Argument is an input or output of a signature.
type Argument struct {
	Name  string
	DType tensor.DType
	Shape tensor.PartialShape // as declared by the model

	output graph.Output
}

// newSignature returns a signature of the model. assets are the paths of the model's assets.
func (m *Model) newSignature(def savedmodel.Signature, assets weft.Feeds) (*Signature, error) {
	g := m.Graph
	sig := &Signature{Method: def.Method, session: m.Session, defaults: def.Defaults, prepareLock: make(chan struct{}, 1)}
	var err error
	if sig.Inputs, err = arguments(g, def.Inputs); err != nil {
		return nil, err
	}
	for o, path := range assets {
		if !slices.ContainsFunc(sig.Inputs, func(a Argument) bool { return a.output == o }) {
			sig.files, sig.paths = append(sig.files, Argument{output: o}), append(sig.paths, path)
		}
	}
	sig.Outputs, err = arguments(g, def.Outputs)
	return sig, err
}

func arguments(g *graph.Graph, infos map[string]savedmodel.TensorInfo) ([]Argument, error) {
	var args []Argument
	var add func(name string, info savedmodel.TensorInfo) error
	add = func(name string, info savedmodel.TensorInfo) error {
		for _, part := range components(name, info) {
			if part.info.Composite != nil || part.info.Sparse != nil {
				if err := add(part.name, part.info); err != nil {
					return err
				}
				continue
			}
			o, err := savedmodel.FindOutput(g, part.info.Name)
			if err != nil {
				return err
			}
			args = append(args, Argument{part.name, o.DType().Base(), part.info.Shape, o})
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		if err := add(name, infos[name]); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// component is one tensor of a sparse or composite value.
type component struct {
	name string
	info savedmodel.TensorInfo
}

func components(name string, info savedmodel.TensorInfo) []component {
	switch {
	case info.Sparse != nil:
		return []component{
			{name + "/indices", savedmodel.TensorInfo{Name: info.Sparse.Indices}},
			{name + "/shape", savedmodel.TensorInfo{Name: info.Sparse.Shape}},
			{name + "/values", savedmodel.TensorInfo{Name: info.Sparse.Values}},
		}
	case info.Composite != nil:
		var parts []component
		for i, c := range info.Composite.Components {
			parts = append(parts, component{name + "/" + strconv.Itoa(i), c})
		}
		return parts
	}
	return []component{{name, info}}
}

// Run runs the signature with Go values: numbers, strings and nested slices of them. Inputs are
// converted by [tensor.New] and results by [tensor.Tensor.Go]. An int32 input is widened if the
// signature has int64. Inputs that have a default may be left out.
//
// A missing or unknown input, or one of a wrong type or shape, is an InvalidArgument error.
func (s *Signature) Run(ctx context.Context, inputs map[string]any) (map[string]any, error) {
	tensors := make(map[string]tensor.Tensor, len(inputs))
	for name, v := range inputs {
		t, err := tensor.New(v)
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "input %q: %w", name, err)
		}
		tensors[name] = s.widened(name, t)
	}
	out, err := s.RunTensors(ctx, tensors)
	if err != nil {
		return nil, err
	}
	values := make(map[string]any, len(out))
	for name, t := range out {
		values[name] = t.Go()
		t.Release()
	}
	return values, nil
}

// widened returns t converted to int64 if it is int32 and the input has type int64: [tensor.New]
// converts Go's int to int32.
func (s *Signature) widened(name string, t tensor.Tensor) tensor.Tensor {
	i := slices.IndexFunc(s.Inputs, func(a Argument) bool { return a.Name == name })
	if i < 0 || s.Inputs[i].DType != tensor.Int64 || t.DType() != tensor.Int32 {
		return t
	}
	wide := make([]int64, t.NumElements())
	for k, v := range tensor.Values[int32](&t) {
		wide[k] = int64(v)
	}
	out, err := tensor.FromSlice(t.Shape(), wide)
	if err != nil {
		return t
	}
	return out
}

// RunTensors is [Signature.Run] with tensors. The caller owns those that it returns, as for
// [weft.Session.Run].
func (s *Signature) RunTensors(ctx context.Context, inputs map[string]tensor.Tensor) (map[string]tensor.Tensor, error) {
	return s.RunOutputs(ctx, inputs)
}

// RunOutputs is [Signature.RunTensors] for some of the outputs: nothing is computed that only the
// others need. Without names it returns all outputs. It may return more than the named ones.
func (s *Signature) RunOutputs(ctx context.Context, inputs map[string]tensor.Tensor, names ...string) (map[string]tensor.Tensor, error) {
	for i := range s.Inputs {
		if t, given := inputs[s.Inputs[i].Name]; given && !s.Inputs[i].Shape.CompatibleWith(t.Shape()) {
			return nil, status.InvalidArgumentf("input %q has shape %v, want %v", s.Inputs[i].Name, t.Shape(), s.Inputs[i].Shape)
		}
	}
	return s.RunAnyShape(ctx, inputs, names...)
}

// RunAnyShape is [Signature.RunOutputs] without a comparison of shapes with those that the
// signature declares, like TensorFlow Serving: the operations of the model decide what they accept.
func (s *Signature) RunAnyShape(ctx context.Context, inputs map[string]tensor.Tensor, names ...string) (map[string]tensor.Tensor, error) {
	feeds := make([]tensor.Tensor, len(s.Inputs), len(s.Inputs)+len(s.paths))
	used := 0
	for i, a := range s.Inputs {
		t, given := inputs[a.Name]
		if given {
			used++
		} else if t, given = s.defaults[a.Name]; !given {
			return nil, status.InvalidArgumentf("input %q is missing: the signature takes %s", a.Name, list(s.Inputs))
		}
		if t.DType() != a.DType {
			return nil, status.InvalidArgumentf("input %q is of type %s, want %s", a.Name, t.DType().Name(), a.DType.Name())
		}
		feeds[i] = t
	}
	if used < len(inputs) {
		return nil, status.InvalidArgumentf("an input is unknown: the signature takes %s", list(s.Inputs))
	}
	call, outs, err := s.callableOf(ctx, names)
	if err != nil {
		return nil, err
	}
	out, err := call.Run(ctx, append(feeds, s.paths...)...)
	if err != nil {
		return nil, err
	}
	values := make(map[string]tensor.Tensor, len(out))
	for i, t := range out {
		values[outs[i].Name] = t
	}
	return values, nil
}

// maxSome bounds the prepared steps for subsets of the outputs, which callers choose. Further
// subsets are steps that return all outputs.
const maxSome = 64

// callableOf returns the prepared step for the named outputs, or for all if there are no names, and
// the outputs that it returns.
func (s *Signature) callableOf(ctx context.Context, names []string) (*weft.Callable, []Argument, error) {
	if len(names) == 0 {
		c, err := s.callable(ctx)
		return c, s.Outputs, err
	}
	outs := make([]Argument, len(names))
	for i, name := range names {
		at := slices.IndexFunc(s.Outputs, func(a Argument) bool { return a.Name == name })
		if at < 0 {
			return nil, nil, status.InvalidArgumentf("output %q is unknown: the signature returns %s", name, list(s.Outputs))
		}
		outs[i] = s.Outputs[at]
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	key := outputsKey(names)
	if c := s.some[key]; c != nil {
		unlock()
		return c, outs, nil
	}
	if len(s.some) >= maxSome {
		unlock()
		c, err := s.callable(ctx)
		return c, s.Outputs, err
	}
	defer unlock()
	c, err := s.prepare(ctx, outs)
	if err != nil {
		return nil, nil, err
	}
	if s.some == nil {
		s.some = map[string]*weft.Callable{}
	}
	s.some[key] = c
	return c, outs, nil
}

// outputsKey returns a text that is different for different lists of names.
func outputsKey(names []string) string { return fmt.Sprintf("%q", names) }

// callable returns the prepared step of the signature. The first run prepares it.
func (s *Signature) callable(ctx context.Context) (*weft.Callable, error) {
	if c := s.call.Load(); c != nil {
		return c, nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c := s.call.Load(); c != nil {
		return c, nil
	}
	c, err := s.prepare(ctx, s.Outputs)
	if err == nil {
		s.call.Store(c)
	}
	return c, err
}

// lock acquires prepareLock.
func (s *Signature) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case s.prepareLock <- struct{}{}:
		return func() { <-s.prepareLock }, nil
	case <-ctx.Done():
		return nil, status.FromContext(ctx, "waiting for another call to prepare the signature")
	}
}

func (s *Signature) prepare(ctx context.Context, outs []Argument) (*weft.Callable, error) {
	return s.session.Prepare(ctx, weft.Step{
		Feeds: outputs(slices.Concat(s.Inputs, s.files)), Fetches: outputs(outs), AnyShape: true,
	})
}

func outputs(args []Argument) []graph.Output {
	out := make([]graph.Output, len(args))
	for i, a := range args {
		out[i] = a.output
	}
	return out
}

func list(args []Argument) string {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.Name + " " + a.DType.Name() + a.Shape.String()
	}
	return strings.Join(names, ", ")
}
