package graphtext

import (
	"fmt"
	"strings"

	"github.com/weft-ml/weft/opdef"
)

// Ops is a set of operations read from text. It implements opdef.Lookup.
type Ops map[string]*opdef.Op

// LookupOp returns the operation with the given name.
func (o Ops) LookupOp(name string) (*opdef.Op, bool) {
	op, ok := o[name]
	return op, ok
}

// ParseOps reads operations, one per line:
//
//	MatMul(a: T, b: T) -> (product: T) [T: type; transpose_a: bool = false]
//	VariableV2() -> (ref: Ref(dtype)) [dtype: type; shape: shape] stateful
//
// Arguments and attributes are written as in package opdef. The words at the end are its flags in
// lower case. The operations have no shape functions.
func ParseOps(text string) (Ops, error) {
	ops := Ops{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		def, err := parseSignature(line)
		if err != nil {
			return nil, err
		}
		op, err := def.Parse()
		if err != nil {
			return nil, err
		}
		ops[op.Name] = op
	}
	return ops, nil
}

// parseSignature reads "Name(args) -> (args) [attrs] flags". Only the name and the first
// parentheses are required.
func parseSignature(text string) (opdef.Def, error) {
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return opdef.Def{}, fmt.Errorf("%q: want Name(inputs) -> (outputs) [attrs] flags", text)
	}
	def := opdef.Def{Name: strings.TrimSpace(name)}
	def.In, rest = splitArgs(rest)
	if out, ok := strings.CutPrefix(strings.TrimSpace(rest), "->"); ok {
		def.Out, rest = splitArgs(strings.TrimPrefix(strings.TrimSpace(out), "("))
	}
	rest = strings.TrimSpace(rest)
	if attrs, ok := strings.CutPrefix(rest, "["); ok {
		end := strings.LastIndexByte(attrs, ']')
		if end < 0 {
			return def, fmt.Errorf("%q: want \"]\" after the attributes", text)
		}
		def.Attrs, rest = splitList(attrs[:end], ";"), attrs[end+1:]
	}
	for flag := range strings.FieldsSeq(rest) {
		if err := setFlag(&def, flag); err != nil {
			return def, err
		}
	}
	return def, nil
}

// splitArgs returns the text before the closing parenthesis, split into arguments, and the text
// after it.
func splitArgs(text string) (args []string, rest string) {
	depth := 1
	end := strings.IndexFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0
	})
	if end < 0 {
		return splitList(text, ","), ""
	}
	return splitList(text[:end], ","), text[end+1:]
}

func splitList(text, sep string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, sep)
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func setFlag(def *opdef.Def, name string) error {
	flags := []struct {
		name string
		flag *bool
	}{
		{"stateful", &def.Stateful}, {"commutative", &def.Commutative}, {"aggregate", &def.Aggregate},
		{"allowsuninitialized", &def.AllowsUninitialized}, {"distributed", &def.Distributed},
	}
	for _, f := range flags {
		if f.name == name {
			*f.flag = true
			return nil
		}
	}
	return fmt.Errorf("op %s: unknown flag %q", def.Name, name)
}
