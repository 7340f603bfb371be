// Package op builds graphs: one documented function per operation, and the scopes that they add nodes to.
//
//	s := op.NewScope()
//	x := op.Placeholder(s.Named("x"), tensor.Float32)
//	w := op.Const(s, [][]float32{{1}, {2}})
//	y := op.MatMul(s, x, w)
//	g, err := s.Finalize()
//
// A [Scope] carries what nodes made through it have in common: a prefix of their names, a device, nodes that run first.
// It is never changed: its methods return another scope of the same graph. Names are made unique as TensorFlow's Python
// API does it ("x", "x_1", …).
//
// Mistakes never panic. A call that cannot add its node records why and returns the zero [Output]; calls that are given
// such an output add nothing. [Scope.Finalize] reports all mistakes together, each with the place that made it.
//
// The functions in wrappers_gen.go are generated from the registry of kernels (go generate ./op) and link none of them.
package op

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

//go:generate go run ../internal/opgen

// Output is one output of a node. The zero Output stands for a node that could not be added.
type Output = graph.Output

// DeviceFunc chooses the device of a node that is being added. It is given the node with the device that inner scopes
// chose, and returns a full or partial name; "" leaves the node as it is.
type DeviceFunc func(n *graph.Node) string

// Scope is a place in a graph to add nodes at. Make the first with [NewScope].
type Scope struct {
	b        *builder
	prefix   string // of names, ends in "/" unless empty
	name     string // of the next node, for Named
	devices  []DeviceFunc
	controls []*graph.Node
	colocate string
	attrs    opdef.Attrs // added to every node
}

// builder is what the scopes of a graph share.
type builder struct {
	g           *graph.Graph
	used        map[string]int // lower-case name → number to try next
	errs        []error
	collections map[string][]any
	seed        *int64 // graph-level seed of random operations
}

// NewScope returns the outermost scope of a new graph.
func NewScope() *Scope { return ScopeOf(graph.New(Defs)) }

// ScopeOf returns the outermost scope of an existing graph, to add nodes to it.
func ScopeOf(g *graph.Graph) *Scope {
	b := &builder{g: g, used: map[string]int{}, collections: map[string][]any{}}
	for n := range g.Nodes() {
		b.reserve(n.Name)
	}
	return &Scope{b: b}
}

// Graph returns the graph that the scope adds to, without a check for mistakes.
func (s *Scope) Graph() *graph.Graph { return s.b.g }

// Finalize returns the graph, or all mistakes that were made in building it.
func (s *Scope) Finalize() (*graph.Graph, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	return s.b.g, nil
}

// Err returns the mistakes made so far.
func (s *Scope) Err() error { return errors.Join(s.b.errs...) }

// Fail records a mistake, for functions that are built on this package. The place of the mistake is taken to be the first
// caller outside of the packages of the library.
func (s *Scope) Fail(err error) {
	s.b.errs = append(s.b.errs, fmt.Errorf("%s%w", callSite(), err))
}

// callSite returns "file:line: " of the innermost caller that is not part of the library's building blocks.
func callSite() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "/weft/op.") && !strings.Contains(f.Function, "/weft/gradients.") &&
			!strings.Contains(f.Function, "/weft/train.") {
			return fmt.Sprintf("%s:%d: ", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		if !more {
			return ""
		}
	}
}

func (s *Scope) with(change func(*Scope)) *Scope {
	c := *s
	c.name = ""
	change(&c)
	return &c
}

// SubScope returns a scope whose nodes have names below the given one, made unique.
func (s *Scope) SubScope(name string) *Scope {
	unique := s.b.unique(s.prefix + name)
	return s.with(func(c *Scope) { c.prefix = unique + "/" })
}

// InScope returns a scope whose nodes have names below the given one, which may be in use: to add to an earlier scope.
func (s *Scope) InScope(name string) *Scope {
	return s.with(func(c *Scope) { c.prefix = s.prefix + name + "/" })
}

// Named returns a scope that gives its first node the name, made unique within the scope.
func (s *Scope) Named(name string) *Scope {
	return s.with(func(c *Scope) { c.name = name })
}

// WithDevice returns a scope whose nodes are on a device, given in full or in part. Parts that an inner scope gave stand.
func (s *Scope) WithDevice(name string) *Scope {
	spec, err := device.Parse(name)
	if err != nil {
		s.Fail(err)
		return s
	}
	full := spec.String()
	return s.WithDeviceFunc(func(n *graph.Node) string { return MergeDevice(n.Device, full) })
}

// MergeDevice returns the device inner with the parts that it does not give taken from outer, as scopes within scopes do.
// Where one of them is malformed it returns inner.
func MergeDevice(inner, outer string) string {
	in, err := device.Parse(inner)
	if err != nil {
		return inner
	}
	out, err := device.Parse(outer)
	if err != nil {
		return inner
	}
	return out.With(in).String()
}

// WithDeviceFunc returns a scope that asks f for the device of each node.
func (s *Scope) WithDeviceFunc(f DeviceFunc) *Scope {
	return s.with(func(c *Scope) { c.devices = append(s.devices[:len(s.devices):len(s.devices)], f) })
}

// WithControlDependencies returns a scope whose nodes run after the given ones.
func (s *Scope) WithControlDependencies(first ...*graph.Node) *Scope {
	return s.with(func(c *Scope) {
		c.controls = s.controls[:len(s.controls):len(s.controls)]
		for _, n := range first {
			if n != nil {
				c.controls = append(c.controls, n)
			}
		}
	})
}

// WithoutControlDependencies returns a scope whose nodes need not wait for any other.
func (s *Scope) WithoutControlDependencies() *Scope {
	return s.with(func(c *Scope) { c.controls = nil })
}

// ColocateWith returns a scope whose nodes are placed on the device of n, whatever that turns out to be.
func (s *Scope) ColocateWith(n *graph.Node) *Scope {
	if n == nil {
		return s
	}
	return s.with(func(c *Scope) {
		c.colocate, c.devices = n.Name, []DeviceFunc{func(*graph.Node) string { return n.Device }}
	})
}

// WithoutDevices returns a scope that leaves the choice of devices to placement.
func (s *Scope) WithoutDevices() *Scope {
	return s.with(func(c *Scope) { c.devices, c.colocate = nil, "" })
}

// Absolute returns a scope without a name prefix, with the same devices.
func (s *Scope) Absolute() *Scope { return s.with(func(c *Scope) { c.prefix = "" }) }

// Prefix returns the prefix of the names of the scope's nodes, which ends in "/" unless it is empty.
func (s *Scope) Prefix() string { return s.prefix }

// AddToCollection adds values to the named collection of the graph, as TensorFlow's graphs have them: variables under
// "variables", training operations under "train_op".
func (s *Scope) AddToCollection(name string, values ...any) {
	s.b.collections[name] = append(s.b.collections[name], values...)
}

// Collection returns the values of the named collection of the graph, which must not be modified.
func (s *Scope) Collection(name string) []any { return s.b.collections[name] }

// SetSeed sets the graph-level seed of random operations that are added later.
func (s *Scope) SetSeed(seed int64) { s.b.seed = &seed }

// Seeds returns the pair of seeds for a random operation with the given operation-level seed, or nil for none, by
// TensorFlow's rules: the graph-level seed goes first, and an operation without a seed takes the number of nodes.
func (s *Scope) Seeds(seed *int64) (int64, int64) {
	const defaultGraphSeed = 87654321
	switch {
	case s.b.seed != nil && seed != nil:
		return *s.b.seed, *seed
	case s.b.seed != nil:
		return *s.b.seed, int64(s.b.g.NumIDs())
	case seed != nil:
		return defaultGraphSeed, *seed
	}
	return 0, 0
}

// reserve marks a name as used.
func (b *builder) reserve(name string) {
	key := strings.ToLower(name)
	if b.used[key] == 0 {
		b.used[key] = 1
	}
}

// unique returns name, or name with the first free number after it, and marks it as used.
func (b *builder) unique(name string) string {
	key := strings.ToLower(name)
	i := b.used[key]
	if i > 0 {
		candidate := ""
		for {
			candidate = fmt.Sprintf("%s_%d", name, i)
			i++
			if b.used[strings.ToLower(candidate)] == 0 {
				break
			}
		}
		b.used[key] = i
		b.used[strings.ToLower(candidate)] = 1
		return candidate
	}
	b.used[key] = 1
	return name
}

// Arg is one input argument of a node: a single output, or a list where the operation takes one.
type Arg struct {
	one  Output
	list []Output
	many bool
}

// One is an argument of one tensor.
func One(o Output) Arg { return Arg{one: o} }

// Many is an argument of several tensors.
func Many(list []Output) Arg { return Arg{list: list, many: true} }

func (a Arg) outputs() []Output {
	if a.many {
		return a.list
	}
	return []Output{a.one}
}

// Add adds a node by the name of its operation: what every function of this package does, and the way to operations that
// it has no function for. Attributes that follow from the types and the number of inputs are derived. It returns nil if the
// node cannot be added.
func (s *Scope) Add(opName string, args []Arg, attrs opdef.Attrs) *graph.Node {
	for _, a := range args {
		for _, o := range a.outputs() {
			if o.Node == nil {
				if len(s.b.errs) == 0 {
					s.Fail(fmt.Errorf("%s: an input is the zero Output", opName))
				}
				return nil
			}
		}
	}
	n, err := s.add(opName, args, attrs)
	if err != nil {
		s.Fail(fmt.Errorf("%s: %w", opName, err))
		return nil
	}
	return n
}

func (s *Scope) add(opName string, args []Arg, attrs opdef.Attrs) (*graph.Node, error) {
	def, ok := s.b.g.LookupOp(opName)
	if !ok {
		return nil, fmt.Errorf("no such operation")
	}
	if len(args) != len(def.Inputs) {
		return nil, fmt.Errorf("takes %d arguments, got %d", len(def.Inputs), len(args))
	}
	all := attrs.Clone()
	if all == nil {
		all = opdef.Attrs{}
	}
	for k, v := range s.attrs {
		all[k] = v
	}
	for i := range def.Inputs {
		inferAttrs(&def.Inputs[i], args[i].outputs(), all)
	}
	if s.colocate != "" {
		all["_class"] = []string{"loc:@" + s.colocate}
	}
	name := s.name
	if name == "" {
		name = opName
	}
	s.name = ""
	n, err := s.b.g.Add(s.b.unique(s.prefix+name), opName, all)
	if err != nil {
		return nil, err
	}
	i := 0
	for _, a := range args {
		for _, o := range a.outputs() {
			if err := s.b.g.Connect(o, n, i); err != nil {
				s.b.g.Remove(n)
				return nil, err
			}
			i++
		}
	}
	for _, c := range s.controls {
		s.b.g.ConnectControl(c, n)
	}
	for k := len(s.devices) - 1; k >= 0; k-- {
		if d := s.devices[k](n); d != "" {
			n.Device = d
		}
	}
	return n, nil
}

// inferAttrs sets the attributes that the types and the number of the tensors of an argument determine.
func inferAttrs(a *opdef.Arg, outs []Output, attrs opdef.Attrs) {
	if a.TypeListAttr != "" {
		types := make([]tensor.DType, len(outs))
		for i, o := range outs {
			types[i] = o.DType().Base()
		}
		attrs[a.TypeListAttr] = types
		return
	}
	if a.NumberAttr != "" {
		attrs[a.NumberAttr] = int64(len(outs))
	}
	if _, given := attrs[a.TypeAttr]; a.TypeAttr != "" && !given && len(outs) > 0 {
		attrs[a.TypeAttr] = outs[0].DType().Base()
	}
}

// Outputs returns the outputs of a node that the output arguments lo to hi of its operation stand for; nil for a nil node.
func Outputs(n *graph.Node, lo, hi int) []Output {
	if n == nil {
		return nil
	}
	out := make([]Output, 0, hi-lo)
	for i := lo; i < hi; i++ {
		out = append(out, n.Out(i))
	}
	return out
}

// outArg returns the outputs of a node that the named output argument stands for.
func outArg(n *graph.Node, name string) []Output {
	if n == nil {
		return nil
	}
	lo, hi, err := opdef.ArgRange(n.Op.Outputs, n.Attrs, name)
	if err != nil {
		return nil
	}
	return Outputs(n, lo, hi)
}

// out returns output i of a node, or the zero Output for a nil node.
func out(n *graph.Node, i int) Output {
	if n == nil {
		return Output{}
	}
	return n.Out(i)
}

// firstOf returns the first of outputs, or the zero Output if there is none.
func firstOf(outs []Output) Output {
	if len(outs) == 0 {
		return Output{}
	}
	return outs[0]
}
