package kerneltest

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Script is a recorded sequence of operations that share resources. A file of scripts is text:
//
//	script fifo
//	step q FIFOQueueV2 component_types=[float]
//	out _
//	step e QueueEnqueueV2 Tcomponents=[float]
//	in @q
//	in float [] 3
//	step d QueueDequeueV2 component_types=[float]
//	in @q
//	out float [] 3
//
// A step is a named node, which runs once. Its inputs are tensors or outputs of earlier steps: "@q"
// is the first output of q, "@q:1" the second. An output "_" may have any value. Everything else is
// as in a Case.
type Script struct {
	Name  string
	Line  int
	Steps []Step
}

// Step is one node of a script.
type Step struct {
	Case
	Name string
	Args []string // outputs used as inputs; "" for an input that is a tensor
	Any  []bool   // outputs that are not compared
}

// RunScripts runs every script of the given files as a subtest.
func RunScripts(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		scripts, err := ReadScripts(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scripts {
			t.Run(fmt.Sprintf("%s:%d/%s", strings.TrimSuffix(file[strings.LastIndex(file, "/")+1:], ".txt"), s.Line, s.Name), s.run)
		}
	}
}

// ReadScripts reads a file of scripts.
func ReadScripts(file string) ([]*Script, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var scripts []*Script
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<26)
	for n := 1; scan.Scan(); n++ {
		line := strings.TrimSpace(scan.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "script" {
			scripts = append(scripts, &Script{Name: rest, Line: n})
			continue
		}
		if len(scripts) == 0 {
			return nil, fmt.Errorf("%s:%d: %q precedes the first script", file, n, line)
		}
		if err := scripts[len(scripts)-1].parseLine(word, rest, n); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return scripts, scan.Err()
}

func (s *Script) parseLine(word, rest string, line int) error {
	if word == "step" {
		name, head, _ := strings.Cut(rest, " ")
		step := Step{Name: name, Case: Case{Line: line, Kind: "case"}}
		err := step.parseHead(head)
		s.Steps = append(s.Steps, step)
		return err
	}
	if len(s.Steps) == 0 {
		return fmt.Errorf("%q precedes the first step", word)
	}
	step := &s.Steps[len(s.Steps)-1]
	arg, isArg := strings.CutPrefix(rest, "@")
	switch {
	case word == "in" && isArg:
		step.Args, step.In = append(step.Args, arg), append(step.In, tensor.Tensor{})
		return nil
	case word == "in":
		step.Args = append(step.Args, "")
	case word == "out" && rest == "_":
		step.Any, step.Out = append(step.Any, true), append(step.Out, tensor.Tensor{})
		return nil
	case word == "out":
		step.Any = append(step.Any, false)
	}
	return step.Case.parseLine(word, rest)
}

func (s *Script) run(t *testing.T) {
	env := NewEnv()
	outputs := map[string][]kernel.Value{}
	for i := range s.Steps {
		step := &s.Steps[i]
		out, err := step.run(env, outputs)
		step.check(t, out, err)
		outputs[step.Name] = out
	}
}

func (s *Step) run(env *Env, outputs map[string][]kernel.Value) ([]kernel.Value, error) {
	node, err := env.MakeNode(s.Name, s.Op, s.Attrs)
	if err != nil {
		return nil, err
	}
	values := make([]kernel.Value, len(s.In))
	for i, in := range s.In {
		if s.Args[i] == "" {
			values[i].Tensor = in.Retain()
			continue
		}
		name, number, _ := strings.Cut(s.Args[i], ":")
		n, _ := strconv.Atoi(number)
		if n >= len(outputs[name]) {
			return nil, status.Internalf("the script has no output %s", s.Args[i])
		}
		values[i] = kernel.Value{Tensor: outputs[name][n].Tensor.Retain(), Ref: outputs[name][n].Ref}
	}
	return node.RunValues(values...)
}

// counter matches the number in the name of a resource that belongs to one node or one step.
var counter = regexp.MustCompile(`_\d+`)

func (s *Step) check(t *testing.T, out []kernel.Value, err error) {
	t.Helper()
	switch {
	case s.Code != "" && err == nil:
		t.Errorf("%d: %s: no error, want %s: %s", s.Line, s.Name, s.Code, s.Error)
	case err != nil:
		have, want := counter.ReplaceAllString(err.Error(), "_0"), counter.ReplaceAllString(s.Error, "_0")
		if status.CodeOf(err).String() != s.Code || have != want {
			t.Errorf("%d: %s: error %v: %q\n want %s: %q", s.Line, s.Name, status.CodeOf(err), have, s.Code, want)
		}
	case len(out) != len(s.Out):
		t.Fatalf("%d: %s: %d outputs, want %d", s.Line, s.Name, len(out), len(s.Out))
	}
	if err != nil || s.Code != "" {
		return
	}
	for i := range out {
		if s.Any[i] {
			continue
		}
		if diff := Diff(&out[i].Tensor, &s.Out[i], s.Tol); diff != "" {
			t.Errorf("%d: %s: output %d: %s", s.Line, s.Name, i, diff)
		}
	}
}
