package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Comments that enclose the body of a macro among the nodes of a function.
const (
	macroBegin = "macro "
	macroEnd   = "end of macro"
)

// macro emits the instructions that body emits as a preprocessor macro. Distinct bodies with the
// same name become macros with numbered names. Macros may be nested. A body with labels
// remains as it is.
func (t *target) macro(name string, body func()) {
	t.Comment(macroBegin + strings.ToUpper(name))
	body()
	t.Comment(macroEnd)
}

// vectorMacro is like macro, for a body whose memory operands with index R8 have the displacement
// disp. The displacement is a parameter of the macro.
func (t *target) vectorMacro(name string, disp int, body func()) {
	t.macro(fmt.Sprintf("%s(%d)", name, disp), body)
}

// rowsMacro emits what row emits for rows 0 to n-1, as a macro that uses the one for n-1 rows.
func (t *target) rowsMacro(name string, n int, row func(i int)) {
	if n == 0 {
		return
	}
	t.macro(fmt.Sprintf("%s_%d", name, n), func() {
		t.rowsMacro(name, n-1, row)
		row(n - 1)
	})
}

// macro is a named sequence of instructions. An instruction whose opcode is the name of a macro,
// with an argument if the macro has a parameter, is a use of that macro.
type macro struct {
	name       string
	parameters string // "(d)", or empty
	disp       int    // argument of the first use
	body       []ir.Node
	uses       int
	keep       bool // it makes the file shorter; otherwise its uses are expanded
}

// macros holds the macros of a file.
type macros struct {
	order  []*macro          // each macro follows the ones that it uses
	byBody map[string]*macro // by base name and text of the body
	byName map[string]*macro
	count  map[string]int        // number of macros by base name
	bodies map[ir.Node][]ir.Node // the instructions that a use replaces
}

// extractMacros replaces the macro bodies in a file by uses of macros and returns the definitions
// of the macros. It expands macros that do not make the file shorter.
func extractMacros(file *ir.File) string {
	m := &macros{byBody: map[string]*macro{}, byName: map[string]*macro{}, count: map[string]int{}, bodies: map[ir.Node][]ir.Node{}}
	for _, f := range file.Functions() {
		f.Nodes = m.fold(f.Nodes)
	}
	for _, x := range m.order {
		m.countUses(x.body)
	}
	for _, f := range file.Functions() {
		m.countUses(f.Nodes)
	}
	var b strings.Builder
	for _, x := range m.order {
		x.body = m.expand(x.body)
		// A use takes one line, and a definition two more than its body.
		if x.keep = x.uses+len(x.body)+2 < x.uses*len(x.body); x.keep {
			fmt.Fprintf(&b, "\n#define %s%s \\\n\t%s\n", x.name, x.parameters, strings.Join(x.lines(), "; \\\n\t"))
		}
	}
	for _, f := range file.Functions() {
		f.Nodes = m.expand(f.Nodes)
	}
	return b.String()
}

// fold returns nodes with the marked bodies replaced by uses of macros.
func (m *macros) fold(nodes []ir.Node) []ir.Node {
	var names []string
	open := [][]ir.Node{nil} // the function, followed by the bodies that have begun
	for _, n := range nodes {
		last := len(open) - 1
		c, ok := n.(*ir.Comment)
		switch {
		case ok && strings.HasPrefix(c.Lines[0], macroBegin):
			names = append(names, strings.TrimPrefix(c.Lines[0], macroBegin))
			open = append(open, nil)
		case ok && c.Lines[0] == macroEnd:
			body := open[last]
			if !slices.ContainsFunc(body, isLabel) {
				body = []ir.Node{m.use(names[last-1], body)}
			}
			names, open = names[:last-1], open[:last]
			open[last-1] = append(open[last-1], body...)
		default:
			open[last] = append(open[last], n)
		}
	}
	return open[0]
}

func isLabel(n ir.Node) bool {
	_, ok := n.(ir.Label)
	return ok
}

// use returns a use of the macro with a base name, perhaps followed by an argument, and a body.
func (m *macros) use(name string, body []ir.Node) *ir.Instruction {
	name, argument, ok := strings.Cut(name, "(")
	x := &macro{body: body}
	if ok {
		x.parameters, argument = "(d)", "("+argument
		if _, err := fmt.Sscanf(argument, "(%d)", &x.disp); err != nil {
			panic(err)
		}
	}
	key := name + "\n" + strings.Join(x.lines(), "\n")
	if known := m.byBody[key]; known != nil {
		x = known
	} else {
		if m.count[name]++; m.count[name] > 1 {
			name = fmt.Sprintf("%s_%d", name, m.count[name])
		}
		x.name = name
		m.order, m.byBody[key], m.byName[name] = append(m.order, x), x, x
	}
	i := &ir.Instruction{Opcode: x.name + argument}
	m.bodies[i] = body
	return i
}

func (m *macros) countUses(nodes []ir.Node) {
	for _, n := range nodes {
		if x := m.used(n); x != nil {
			x.uses++
		}
	}
}

// used returns the macro that a node uses, or nil.
func (m *macros) used(n ir.Node) *macro {
	if i, ok := n.(*ir.Instruction); ok {
		name, _, _ := strings.Cut(i.Opcode, "(")
		return m.byName[name]
	}
	return nil
}

// expand returns nodes with the macros that are not kept expanded.
func (m *macros) expand(nodes []ir.Node) []ir.Node {
	var out []ir.Node
	for _, n := range nodes {
		if x := m.used(n); x != nil && !x.keep {
			out = append(out, m.expand(m.bodies[n])...)
		} else {
			out = append(out, n)
		}
	}
	return out
}

// lines returns the text of the body.
func (x *macro) lines() []string {
	var out []string
	for _, n := range x.body {
		i, ok := n.(*ir.Instruction)
		if !ok {
			panic("a macro holds instructions only")
		}
		var operands []string
		for _, o := range i.Operands {
			if m, ok := o.(operand.Mem); ok && x.parameters != "" && m.Index == reg.R8 {
				if m.Disp != x.disp {
					panic("a vector macro has one displacement")
				}
				m.Disp = 0
				operands = append(operands, "d"+m.Asm())
				continue
			}
			operands = append(operands, o.Asm())
		}
		out = append(out, strings.TrimSpace(i.OpcodeWithSuffixes()+" "+strings.Join(operands, ", ")))
	}
	return out
}
