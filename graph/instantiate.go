package graph

import (
	"maps"
	"strconv"
	"strings"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Body is an instantiated function body. Its nodes Args[i] of operation _Arg return argument i, and
// its nodes Rets[i] of operation _Retval take result i. The graph shares the library, so called
// functions, including recursive calls, are instantiated when needed.
type Body struct {
	Graph *Graph
	Args  []*Node // by position of the argument tensor
	Rets  []*Node // by position of the result tensor
	// nodes that a call executes even if no result depends on them, in the order of the control
	// outputs
	Controls []*Node
}

// InstantiateBody returns the body of a function. It replaces placeholders by the attributes of fn.
// Names of operations are looked up in the library, then in ops. It fails with NotFound if there is
// no such function or if fn lacks an attribute, and with InvalidArgument if the body is invalid.
func (l *Library) InstantiateBody(fn opdef.Func, ops opdef.Lookup) (*Body, error) {
	f, ok := l.Lookup(fn.Name)
	if !ok {
		return nil, status.NotFoundf("Function %s is not defined.", fn.Name)
	}
	attrs, err := bindAttrs(&f.Def.Signature, fn.Attrs)
	if err != nil {
		return nil, err
	}
	g := New(ops)
	g.Library, g.options = l, ImportOptions{Internal: true}
	b := &bodyBuilder{
		f: &f.Def, attrs: attrs, g: g, args: map[string][]bodyValue{}, nodes: make(map[string]*bodyNode, len(f.Def.Nodes)),
		names: make(map[string]bool, len(f.Def.Nodes)), last: map[string]int{},
	}
	for _, step := range []func() error{b.indexNodes, b.addArgs, b.addNodes, b.addRets} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := g.Extend(&Def{Nodes: b.out}); err != nil {
		return nil, status.Errorf(status.CodeOf(err), "function '%s': %w", fn.Name, err)
	}
	return b.body()
}

// bindAttrs returns the attributes of a call with the defaults of the signature added.
func bindAttrs(sig *opdef.Op, attrs opdef.Attrs) (opdef.Attrs, error) {
	out := attrs.Clone()
	if out == nil {
		out = opdef.Attrs{}
	}
	for i := range sig.Attrs {
		a := &sig.Attrs[i]
		v, given := out[a.Name]
		if !given {
			if a.Default == nil {
				return nil, status.NotFoundf("Attr %s is not found from %v", a.Name, sig)
			}
			out[a.Name] = a.Default
			continue
		}
		if _, any := v.(opdef.AnyList); any {
			out[a.Name] = opdef.EmptyList(a.Kind)
		} else if err := a.Check(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bodyBuilder builds the definition of a body.
type bodyBuilder struct {
	f     *FunctionDef
	attrs opdef.Attrs // attributes of the call, complete
	g     *Graph      // empty graph, for looking up operations

	args  map[string][]bodyValue // values by name of the argument
	nodes map[string]*bodyNode   // nodes by name
	names map[string]bool        // names of all nodes, for choosing unused ones
	last  map[string]int         // last number that newName has appended, by name
	out   []NodeDef
	wide  wideOutputs
	texts membudget.Meter // of the names that the builder makes

	argNames, retNames []string // names of the _Arg and _Retval nodes
}

// bodyValue is a tensor in the body, as an input string of a graph.
type bodyValue struct {
	input string
	dtype tensor.DType // element type, never a reference type
}

// bodyNode is a node of the body with its placeholders replaced.
type bodyNode struct {
	op    *opdef.Op
	attrs opdef.Attrs
	// outputs by name of the output argument; nil until an input refers to one
	outputs map[string]outputRange
}

// outputRange is the range of the outputs of an output argument.
type outputRange struct {
	first int
	types []tensor.DType
}

func (b *bodyBuilder) indexNodes() error {
	for i := range b.f.Nodes {
		d := &b.f.Nodes[i]
		op, ok := b.g.LookupOp(d.Op)
		if !ok {
			return notRegistered(d.Op, d.Name)
		}
		if err := takeAttrs(d.Name, len(d.Attrs)); err != nil {
			return err
		}
		attrs, err := b.substitute(d.Attrs)
		if err != nil {
			return err
		}
		if err := b.checkNested(d.Name, attrs); err != nil {
			return err
		}
		if attrs, err = op.CheckAttrs(d.Name, attrs); err != nil {
			return err
		}
		if b.nodes[d.Name] != nil {
			return notUnique(d.Name)
		}
		b.nodes[d.Name] = &bodyNode{op: op, attrs: attrs}
		b.names[d.Name] = true
	}
	return nil
}

// substitute returns attributes with placeholders replaced by the attributes of the call.
func (b *bodyBuilder) substitute(attrs opdef.Attrs) (opdef.Attrs, error) {
	out := make(opdef.Attrs, len(attrs))
	for name, v := range attrs {
		var err error
		if out[name], err = b.substituteIn(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (b *bodyBuilder) substituteIn(v any) (any, error) {
	switch v := v.(type) {
	case opdef.Placeholder:
		bound, ok := b.attrs[string(v)]
		if !ok {
			return nil, status.InvalidArgumentf("Failed to bind all placeholders in %s", opdef.FormatAttr(v))
		}
		return bound, nil
	case opdef.Func:
		attrs, err := b.substitute(v.Attrs)
		return opdef.Func{Name: v.Name, Attrs: attrs}, err
	case []opdef.Func:
		out := make([]opdef.Func, len(v))
		for i, f := range v {
			attrs, err := b.substitute(f.Attrs)
			if err != nil {
				return nil, err
			}
			out[i] = opdef.Func{Name: f.Name, Attrs: attrs}
		}
		return out, nil
	default:
		return v, nil
	}
}

// Limits of the attributes of the functions in an attribute. A body may name one of its attributes
// several times in them. If the function that it calls does the same, and so on, the values grow
// with a power of the number of calls, although each value is stored once. What formats or encodes
// them takes as much time and memory as they would.
const (
	maxNested      = 10_000
	maxNestedBytes = 64 << 20
)

// checkNested returns an error if the attributes of a node exceed maxNested or maxNestedBytes.
func (b *bodyBuilder) checkNested(node string, attrs opdef.Attrs) error {
	var n nested
	for _, v := range attrs {
		n.addFuncs(v)
	}
	if n.full() {
		return status.ResourceExhaustedf("The attributes of node '%s' in function '%s' have more than %d values or %d bytes "+
			"in the attributes of functions.", node, b.f.Signature.Name, maxNested, maxNestedBytes)
	}
	return nil
}

// nested counts the attributes of functions in attributes.
type nested struct{ values, bytes int }

func (n *nested) full() bool { return n.values > maxNested || n.bytes > maxNestedBytes }

// addFuncs adds the attributes of the functions in a value. It stops at the limits.
func (n *nested) addFuncs(v any) {
	switch v := v.(type) {
	case opdef.Func:
		n.addAttrs(v.Attrs)
	case []opdef.Func:
		for i := range v {
			n.values++
			n.addAttrs(v[i].Attrs)
		}
	}
}

func (n *nested) addAttrs(attrs opdef.Attrs) {
	for name, v := range attrs {
		if n.full() {
			return
		}
		n.values++
		n.bytes += len(name)
		switch v := v.(type) {
		case string:
			n.bytes += len(v)
		case []string:
			for _, s := range v {
				n.bytes += len(s) + int(unsafe.Sizeof(s))
			}
		case []int64:
			n.bytes += 8 * len(v)
		case []float32:
			n.bytes += 4 * len(v)
		case []bool:
			n.bytes += len(v)
		case []tensor.DType:
			n.bytes += int(unsafe.Sizeof(tensor.DType(0))) * len(v)
		case []tensor.Tensor:
			for i := range v {
				n.bytes += int(v[i].ByteSize())
			}
		case []tensor.PartialShape:
			n.bytes += int(unsafe.Sizeof(tensor.PartialShape{})) * len(v)
		case tensor.Tensor:
			n.bytes += int(v.ByteSize())
		default:
			n.addFuncs(v)
		}
	}
}

// newName returns name, with a number appended if a node has the name already.
func (b *bodyBuilder) newName(name string) (string, error) {
	unique := name
	for b.names[unique] {
		b.last[name]++
		unique = name + "__" + strconv.Itoa(b.last[name])
	}
	b.names[unique] = true
	return unique, b.takeText(unique)
}

// takeText asks for the memory of a name that the builder has made. One node or argument stands for
// many tensors, each with a name of its own, and the names may be long.
func (b *bodyBuilder) takeText(s string) error {
	if !b.texts.Take(nameMemory + 2*len(s)) {
		return status.ResourceExhaustedf("There is not enough memory for the names of the nodes of the function (--memory-limit).")
	}
	return nil
}

// nameMemory is about the memory of an input or a node that a name is for, in bytes.
const nameMemory = 128

// numbered returns the name of the node for tensor i of an argument of n tensors.
func numbered(name string, i, n int) string {
	if n == 1 {
		return name
	}
	return name + "_" + strconv.Itoa(i)
}

func (b *bodyBuilder) addArgs() error {
	for i := range b.f.Signature.Inputs {
		arg := &b.f.Signature.Inputs[i]
		types, err := arg.Types(b.attrs)
		if err != nil {
			return inArg(err, arg)
		}
		if _, twice := b.args[arg.Name]; twice {
			return inArg(status.InvalidArgumentf("Duplicated arg name: %s", arg.Name), arg)
		}
		if err := b.wide.add(arg.Name, len(types)); err != nil {
			return err
		}
		values := make([]bodyValue, len(types))
		for j, dtype := range types {
			name, err := b.newName(numbered(arg.Name, j, len(types)))
			if err != nil {
				return err
			}
			if err := takeAttrs(name, len(b.f.ArgAttrs[i])); err != nil {
				return err
			}
			attrs := opdef.Attrs{}
			maps.Copy(attrs, b.f.ArgAttrs[i])
			attrs["T"], attrs["index"] = dtype, int64(len(b.argNames))
			values[j] = bodyValue{name, dtype.Base()}
			b.argNames = append(b.argNames, name)
			b.out = append(b.out, NodeDef{Name: name, Op: "_Arg", Attrs: attrs})
		}
		b.args[arg.Name] = values
	}
	return nil
}

func inArg(err error, arg *opdef.Arg) error {
	return status.Errorf(status.CodeOf(err), "%w\n\tIn %s", err, arg)
}

func (b *bodyBuilder) addNodes() error {
	for i := range b.f.Nodes {
		d := &b.f.Nodes[i]
		inputs, err := b.inputs(d)
		if err != nil {
			return status.Errorf(status.CodeOf(err), "%w\n\tIn {{node %s}}", err, d.Name)
		}
		b.out = append(b.out, NodeDef{Name: d.Name, Op: d.Op, Inputs: inputs, Device: d.Device, Attrs: b.nodes[d.Name].attrs})
	}
	return nil
}

// inputs returns the inputs of a node as input strings of a graph. One input in a function body may
// denote all tensors of an argument or output.
func (b *bodyBuilder) inputs(d *NodeDef) ([]string, error) {
	n := b.nodes[d.Name]
	out := make([]string, 0, len(d.Inputs))
	at := 0
	for i := range n.op.Inputs {
		arg := &n.op.Inputs[i]
		types, err := arg.Types(n.attrs)
		if err != nil {
			return nil, err
		}
		for j := 0; j < len(types); at++ {
			if at >= len(d.Inputs) {
				return nil, status.InvalidArgumentf("Attempt to access beyond input size: %d >= %d", at, len(d.Inputs))
			}
			values, ok, err := b.values(d.Inputs[at])
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, status.InvalidArgumentf("input %s is not found: {{node %s}}", d.Inputs[at], d.Name)
			}
			if len(values) > len(types)-j {
				return nil, status.InvalidArgumentf("Input %s too long for %s", d.Inputs[at], arg.Name)
			}
			if err := b.wide.add(d.Name, len(values)); err != nil {
				return nil, err
			}
			for k, v := range values {
				if v.dtype != types[j].Base() {
					return nil, status.InvalidArgumentf("input %s[%d] expected type %v != %v, the type of %s[%d]",
						arg.Name, j, types[j], v.dtype, d.Inputs[at], k)
				}
				out = append(out, v.input)
				j++
			}
		}
	}
	for i, input := range d.Inputs[at:] {
		name, err := b.control(at+i, input)
		if err != nil {
			return nil, err
		}
		out = append(out, "^"+name)
	}
	return out, nil
}

func (b *bodyBuilder) control(i int, input string) (string, error) {
	name, ok := strings.CutPrefix(input, "^")
	if !ok {
		return "", status.InvalidArgumentf("Expected input[%d] == '%s' to be a control input.", i, input)
	}
	if b.nodes[name] != nil {
		return name, nil
	}
	if values := b.args[name]; len(values) > 0 {
		return values[0].input, nil
	}
	return "", status.InvalidArgumentf("input[%d] == '%s', is not found.", i, input)
}

// values returns the tensors that an input string of a function body denotes. It has the form
// "arg", "arg:i", "node:out" or "node:out:i".
func (b *bodyBuilder) values(input string) ([]bodyValue, bool, error) {
	name, rest, hasRest := strings.Cut(input, ":")
	if values, ok := b.args[name]; ok {
		if !hasRest {
			return values, true, nil
		}
		if i, ok := index(rest, len(values)); ok {
			return values[i : i+1], true, nil
		}
	}
	n := b.nodes[name]
	if n == nil || !hasRest {
		return nil, false, nil
	}
	if n.outputs == nil {
		if err := b.setOutputs(name, n); err != nil {
			return nil, false, err
		}
	}
	output, number, hasNumber := strings.Cut(rest, ":")
	o, ok := n.outputs[output]
	if !ok {
		return nil, false, nil
	}
	from, to := 0, len(o.types)
	if hasNumber {
		if from, ok = index(number, len(o.types)); !ok {
			return nil, false, nil
		}
		to = from + 1
	}
	values := make([]bodyValue, 0, to-from)
	for i := from; i < to; i++ {
		v := bodyValue{name + ":" + strconv.Itoa(o.first+i), o.types[i].Base()}
		if err := b.takeText(v.input); err != nil {
			return nil, false, err
		}
		values = append(values, v)
	}
	return values, true, nil
}

// setOutputs sets the outputs of a node, up to one whose number of tensors is invalid.
func (b *bodyBuilder) setOutputs(name string, n *bodyNode) error {
	n.outputs = make(map[string]outputRange, len(n.op.Outputs))
	first := 0
	for i := range n.op.Outputs {
		arg := &n.op.Outputs[i]
		types, err := arg.Types(n.attrs)
		if err != nil {
			return nil
		}
		if _, twice := n.outputs[arg.Name]; !twice {
			n.outputs[arg.Name] = outputRange{first, types}
		}
		first += len(types)
	}
	return b.wide.add(name, first)
}

// index returns the number in an input string, which is below n.
func index(s string, n int) (int, bool) {
	i, err := strconv.ParseUint(s, 10, 31)
	return int(i), err == nil && i < uint64(n)
}

func (b *bodyBuilder) addRets() error {
	for i := range b.f.Signature.Outputs {
		arg := &b.f.Signature.Outputs[i]
		if err := b.addRet(arg); err != nil {
			return status.Errorf(status.CodeOf(err), "%w\n\tIn function output %s", err, arg)
		}
	}
	return nil
}

func (b *bodyBuilder) addRet(arg *opdef.Arg) error {
	source, ok := b.f.Ret[arg.Name]
	if !ok {
		return status.InvalidArgumentf("Return %s missing.", arg.Name)
	}
	types, err := arg.Types(b.attrs)
	if err != nil {
		return err
	}
	values, ok, err := b.values(source)
	if err != nil {
		return err
	}
	if !ok {
		return status.InvalidArgumentf("Return %s -> %s is not found.", arg.Name, source)
	}
	have := make([]tensor.DType, len(values))
	same := len(values) == len(types)
	for i, v := range values {
		have[i] = v.dtype
		same = same && v.dtype == types[i].Base()
	}
	if !same {
		return status.InvalidArgumentf("Invalid ret types %s : %s vs. %s", arg.Name, opdef.JoinTypes(types), opdef.JoinTypes(have))
	}
	for i, v := range values {
		name, err := b.newName(numbered(arg.Name+"_RetVal", i, len(values)))
		if err != nil {
			return err
		}
		attrs := opdef.Attrs{"T": types[i], "index": int64(len(b.retNames))}
		b.retNames = append(b.retNames, name)
		b.out = append(b.out, NodeDef{Name: name, Op: "_Retval", Inputs: []string{v.input}, Attrs: attrs})
	}
	return nil
}

// body returns the Body, with the nodes of arguments and results.
func (b *bodyBuilder) body() (*Body, error) {
	body := &Body{Graph: b.g}
	for _, name := range b.argNames {
		body.Args = append(body.Args, b.g.Node(name))
	}
	for _, name := range b.retNames {
		body.Rets = append(body.Rets, b.g.Node(name))
	}
	for _, output := range b.f.Signature.ControlOutputs {
		n := b.g.Node(b.f.ControlRet[output])
		if n == nil {
			return nil, status.InvalidArgumentf("Control output %s of function '%s' is not found.", output, b.f.Signature.Name)
		}
		body.Controls = append(body.Controls, n)
	}
	return body, nil
}
