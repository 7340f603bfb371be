package kerneltest

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Case is one recorded run of an operation or of its shape function. A file of cases is text with
// one block per case:
//
//	case Add T=float
//	in float [2] 1 2
//	in float [] 0.5
//	out float [2] 1.5 2.5
//
//	shapes MatMul T=float transpose_a=true
//	in float [?,3]
//	in = float [2,2] 1 0 0 1
//	error INVALID_ARGUMENT "Dimensions must be equal, but are 1 and 2"
//
//	case ScatterAdd T=float Tindices=int32
//	var float [2] 1 2
//	in int32 [] 1
//	in float [] 5
//	after float [2] 1 7
//
//	gradient Gather Tparams=float Tindices=int32
//	in float [3] 1 2 3
//	in int32 [2] 2 2
//	dy float [2] 1 10
//	dx sparse float [3] 0 0 11
//	dx none
//
// In a gradient, "dy" lines are the gradients of the outputs, and "dx" lines the expected gradients
// of the inputs. "sparse" stands for indexed slices. The tests of package gradients run these
// cases. A "var" line is an input that is a variable with that value, by reference or by handle,
// depending on the operation. "after" is its expected value afterwards. Reference outputs are
// omitted.
//
// The first word of a block is the kind of the case. Attributes are written as in opdef. An input
// of a shape function is a type and a partial shape, or, after "=", a tensor with a known value.
// "tol x" sets the relative and absolute tolerance of floating-point outputs. A line that starts
// with "#" is a comment.
type Case struct {
	Line   int // of the first line in its file
	Kind   string
	Op     string
	Attrs  opdef.Attrs
	In     []tensor.Tensor       // values; not initialized if only the shape is known
	Vars   []int                 // inputs that are variables
	After  []tensor.Tensor       // their expected values afterwards
	Shapes []tensor.PartialShape // of the inputs of a shape function
	Out    []tensor.Tensor
	Outs   []tensor.PartialShape
	DY, DX []Gradient // of the outputs and of the inputs
	Tol    float64
	Code   string // of the expected error
	Error  string
}

// Gradient is a recorded gradient.
type Gradient struct {
	Value  tensor.Tensor // not initialized if there is none
	Sparse bool
}

// RunCases runs every case of the given files as a subtest. Each operation runs twice: with inputs
// that are shared, and with inputs that the kernel may modify in place.
func RunCases(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		cases, err := ReadCases(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cases {
			c := &cases[i]
			t.Run(fmt.Sprintf("%s:%d/%s", strings.TrimSuffix(file[strings.LastIndex(file, "/")+1:], ".txt"), c.Line, c.Op),
				func(t *testing.T) { c.run(t) })
		}
	}
}

// ReadCases reads a file of cases.
func ReadCases(file string) ([]Case, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var cases []Case
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<26)
	for n := 1; scan.Scan(); n++ {
		line := strings.TrimSpace(scan.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := addLine(&cases, line, n); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return cases, scan.Err()
}

func addLine(cases *[]Case, line string, n int) error {
	word, rest, _ := strings.Cut(line, " ")
	if word == "case" || word == "shapes" || word == "gradient" {
		c := Case{Line: n, Kind: word}
		err := c.parseHead(rest)
		*cases = append(*cases, c)
		return err
	}
	if len(*cases) == 0 {
		return fmt.Errorf("%q precedes the first case", line)
	}
	return (*cases)[len(*cases)-1].parseLine(word, rest)
}

func (c *Case) run(t *testing.T) {
	if c.Kind == "shapes" {
		c.runShapes(t)
		return
	}
	c.compare(t, "shared inputs", func(in tensor.Tensor) tensor.Tensor { return in.Retain() })
	c.compare(t, "own inputs", func(in tensor.Tensor) tensor.Tensor {
		if !in.Initialized() {
			return in
		}
		out, err := in.Clone()
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
}

func (c *Case) runShapes(t *testing.T) {
	t.Helper()
	values := map[int]tensor.Tensor{}
	for i, v := range c.In {
		if v.Initialized() {
			values[i] = v
		}
	}
	outs, err := Shapes(c.Op, c.Attrs, c.Shapes, values)
	if c.checkError(t, err) {
		return
	}
	for i, want := range c.Outs {
		if i >= len(outs) || !outs[i].Equal(want) {
			t.Errorf("output %d has shape %v, want %v", i, outs[i], want)
		}
	}
}

// compare runs the operation once; input returns its inputs, shared or exclusive.
func (c *Case) compare(t *testing.T, what string, input func(tensor.Tensor) tensor.Tensor) {
	t.Helper()
	env := NewEnv()
	node, err := env.Make(c.Op, c.Attrs)
	if err != nil {
		c.checkError(t, err)
		return
	}
	values, vars := make([]kernel.Value, len(c.In)), make([]*kernel.Variable, len(c.Vars))
	for i, in := range c.In {
		if at := slices.Index(c.Vars, i); at >= 0 {
			vars[at] = kernel.NewVariable()
			vars[at].Store(input(in))
			values[i] = env.variable(vars[at], node.c.Inputs[i].IsRef())
			continue
		}
		values[i].Tensor = input(in)
	}
	outs, err := node.RunValues(values...)
	if c.checkError(t, err) {
		return
	}
	outs = slices.DeleteFunc(outs, func(v kernel.Value) bool { return v.Ref != nil })
	if len(outs) != len(c.Out) {
		t.Fatalf("%s: %d outputs, want %d", what, len(outs), len(c.Out))
	}
	for i := range outs {
		if diff := Diff(&outs[i].Tensor, &c.Out[i], c.Tol); diff != "" {
			t.Errorf("%s: output %d: %s", what, i, diff)
		}
		outs[i].Release()
	}
	for i, v := range vars {
		value := v.Load()
		if diff := Diff(&value, &c.After[i], c.Tol); diff != "" {
			t.Errorf("%s: variable %d: %s", what, i, diff)
		}
		value.Release()
	}
}

// variable returns a variable as an input: a reference or a handle.
func (e *Env) variable(v *kernel.Variable, byRef bool) kernel.Value {
	if byRef {
		return kernel.Value{Ref: v}
	}
	return kernel.Value{Tensor: tensor.Scalar(&tensor.Handle{
		Device: e.Device.Name, Container: "localhost", Name: "v", TypeName: v.TypeName(), Resource: v,
	})}
}

// checkError compares an error with the expected one and reports whether the case is over.
func (c *Case) checkError(t *testing.T, err error) bool {
	t.Helper()
	switch {
	case err == nil && c.Code == "":
		return false
	case err == nil:
		t.Errorf("no error, want %s: %s", c.Code, c.Error)
	case c.Code == "":
		t.Errorf("error %v: %v", status.CodeOf(err), err)
	case status.CodeOf(err).String() != c.Code || err.Error() != c.Error:
		t.Errorf("error %v: %q\n want %s: %q", status.CodeOf(err), err.Error(), c.Code, c.Error)
	}
	return true
}
