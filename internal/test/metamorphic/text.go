package metamorphic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// String prints the program in the form that Parse reads.
func (p *Program) String() string {
	var b strings.Builder
	for _, v := range p.Vars {
		fmt.Fprintf(&b, "var %s%s %s%s\n", v.Name, map[bool]string{true: " ref", false: " resource"}[v.Ref], formatTensor(&v.Init), on(v.Device))
	}
	for _, f := range p.Feeds {
		fmt.Fprintf(&b, "feed %s", f.Name)
		for i := range f.Values {
			b.WriteString(" " + formatTensor(&f.Values[i]))
		}
		b.WriteByte('\n')
	}
	p.Body.writeTo(&b, "")
	return b.String()
}

func on(device int) string {
	if device == 0 {
		return ""
	}
	return " on " + strconv.Itoa(device)
}

func words(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), " ")
}

func (b *Block) writeTo(w *strings.Builder, indent string) {
	for i := range b.Stmts {
		b.Stmts[i].writeTo(w, indent)
	}
	fmt.Fprintf(w, "%s%s\n", indent, words("yield", words(b.Yield...)))
}

func (s *Stmt) writeTo(w *strings.Builder, indent string) {
	line := words(s.Kind, s.Var, words(s.In...))
	if len(s.Out) > 0 {
		line = words(s.Out...) + " = " + line
	}
	if s.Kind == kindConst {
		line += " " + formatTensor(&s.Value)
	}
	if len(s.Params) > 0 {
		line += " as " + words(s.Params...)
	}
	if s.Parallel > 0 {
		line += " parallel " + strconv.Itoa(s.Parallel)
	}
	line += on(s.Device)
	if len(s.After) > 0 {
		line += " after " + words(s.After...)
	}
	if s.Functional {
		line += " functional"
	}
	fmt.Fprintf(w, "%s%s\n", indent, line)
	for i := range s.Blocks {
		if i > 0 {
			w.WriteString(indent + "else\n")
		}
		s.Blocks[i].writeTo(w, indent+"  ")
	}
	if len(s.Blocks) > 0 {
		w.WriteString(indent + "end\n")
	}
}

// Parse reads a program and checks it. Lines that start with "#" are comments.
func Parse(text string) (*Program, error) {
	r := &reader{}
	for i, line := range strings.Split(text, "\n") {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0][0] != '#' {
			r.lines = append(r.lines, fields)
			r.numbers = append(r.numbers, i+1)
		}
	}
	p := &Program{}
	err := r.program(p)
	if err == nil {
		_, err = Check(p)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

type reader struct {
	lines   [][]string // fields of the remaining lines
	numbers []int
}

func (r *reader) next() []string {
	if len(r.lines) == 0 {
		return nil
	}
	line := r.lines[0]
	r.lines, r.numbers = r.lines[1:], r.numbers[1:]
	return line
}

func (r *reader) program(p *Program) error {
	for len(r.lines) > 0 && (r.lines[0][0] == "var" || r.lines[0][0] == "feed") {
		number := r.numbers[0]
		if err := declare(p, r.next()); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	end, err := r.block(&p.Body)
	if err == nil && (end != nil || len(r.lines) > 0) {
		return fmt.Errorf("there is text after the last line of the program")
	}
	return err
}

func declare(p *Program, line []string) error {
	if line[0] == "feed" && len(line) > 1 {
		f := Feed{Name: line[1]}
		for _, w := range line[2:] {
			v, err := parseTensor(w)
			if err != nil {
				return err
			}
			f.Values = append(f.Values, v)
		}
		p.Feeds = append(p.Feeds, f)
		return nil
	}
	if len(line) != 4 && len(line) != 6 || line[0] != "var" || line[2] != "ref" && line[2] != "resource" {
		return fmt.Errorf("%v declares nothing", line)
	}
	v := Var{Name: line[1], Ref: line[2] == "ref"}
	var err error
	if v.Init, err = parseTensor(line[3]); err == nil && len(line) == 6 {
		v.Device, err = strconv.Atoi(line[5])
	}
	p.Vars = append(p.Vars, v)
	return err
}

// block reads up to the line with yield, and returns the line after it if it is else or end.
func (r *reader) block(b *Block) ([]string, error) {
	for len(r.lines) > 0 {
		number := r.numbers[0]
		line := r.next()
		if line[0] == "yield" {
			b.Yield = line[1:]
			if len(r.lines) > 0 && (r.lines[0][0] == "else" || r.lines[0][0] == "end") {
				return r.next(), nil
			}
			return nil, nil
		}
		s, err := parseStmt(line)
		if err == nil && (s.Kind == kindIf || s.Kind == kindRepeat || s.Kind == kindCall) {
			err = r.blocks(s)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		b.Stmts = append(b.Stmts, *s)
	}
	return nil, fmt.Errorf("a block without yield")
}

func (r *reader) blocks(s *Stmt) error {
	for {
		s.Blocks = append(s.Blocks, Block{})
		end, err := r.block(&s.Blocks[len(s.Blocks)-1])
		switch {
		case err != nil:
			return err
		case end == nil:
			return fmt.Errorf("%s has no end", s.Kind)
		case end[0] == "end":
			return nil
		}
	}
}

func parseStmt(line []string) (*Stmt, error) {
	s := &Stmt{}
	if at := slices.Index(line, "="); at >= 0 {
		s.Out, line = line[:at], line[at+1:]
	}
	if len(line) == 0 {
		return nil, fmt.Errorf("an empty statement")
	}
	s.Kind, line = line[0], line[1:]
	if s.Kind == kindConst && len(line) > 0 {
		var err error
		if s.Value, err = parseTensor(line[0]); err != nil {
			return nil, err
		}
		line = line[1:]
	}
	if (s.Kind == kindRead || s.hasEffect()) && len(line) > 0 {
		s.Var, line = line[0], line[1:]
	}
	return s, s.clauses(line)
}

// clauses reads the arguments and the clauses after them.
func (s *Stmt) clauses(line []string) error {
	list := &s.In
	for i := 0; i < len(line); i++ {
		number := func() (n int, err error) {
			if i++; i >= len(line) {
				return 0, fmt.Errorf("a number is missing")
			}
			return strconv.Atoi(line[i])
		}
		var err error
		switch line[i] {
		case "as":
			list = &s.Params
		case "after":
			list = &s.After
		case "functional":
			s.Functional = true
		case "on":
			s.Device, err = number()
		case "parallel":
			s.Parallel, err = number()
		default:
			*list = append(*list, line[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Equal reports whether two values have the same type and equal elements. All NaNs are equal.
func Equal(x, y *tensor.Tensor) bool { return formatAny(x) == formatAny(y) }

func formatAny(t *tensor.Tensor) string {
	if !t.Initialized() || shapes[t.Shape().String()] == nil {
		return t.String()
	}
	return strings.ReplaceAll(formatTensor(t), "-0,", "0,")
}
