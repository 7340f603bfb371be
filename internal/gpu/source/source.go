// Package source holds the kernels of GPU devices, written once in the common subset of OpenCL C
// and CUDA C. Each family of kernels is a file NAME.cl: macros and functions, and after a line
// "// kernels" one line for each kernel and set of element types:
//
//	UNARY(exp, FLOATS, exp(v))
//
// The line stands for the kernels exp_f16, exp_bf16, exp_f32 and exp_f64. A line with two sets,
// "REAL > FLOATS", stands for all pairs of two different types. $T in a line is the element type. A
// line with the types "-" is one kernel without a type.
//
// A program contains one line for one type, so a device compiles only the kernels that it uses.
package source

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed dialect.h *.cl
var files embed.FS

// sets are the sets of element types that lines name.
var sets = map[string][]string{
	"FLOATS":   {"f16", "bf16", "f32", "f64"},
	"SIGNED":   {"i8", "i16", "i32", "i64"},
	"UNSIGNED": {"u8", "u16", "u32", "u64"},
	"INTS":     {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"},
	"REAL":     {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"},
	"ALL":      {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "b8", "c64", "c128"},
	"SIZES":    {"u8", "u16", "u32", "u64", "c128"},
}

// A Program is the text of a few kernels that are compiled together.
type Program struct {
	Family  string   // name of the file, without its ending
	Macro   string   // macro of the line
	Name    string   // name of the kernels without types
	Types   []string // element types, at most two
	Kernels []string // names of the kernels
	line    string   // what follows the head of the family
	head    string   // text of the family
}

// Text returns the whole program.
func (p *Program) Text() string { return dialect() + p.head + p.line + "\n" }

// ptx returns a program for NVIDIA GPUs. It is set in programs with drivers for them.
var ptx func(p *Program) string

// PTX returns the program in NVIDIA's assembly language, or an empty text if this program was built
// without it.
func (p *Program) PTX() string {
	if ptx == nil {
		return ""
	}
	return ptx(p)
}

var dialect = sync.OnceValue(func() string { return read("dialect.h") })

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(b)
}

// library is all programs.
type library struct {
	programs []*Program
	byKernel map[string]*Program
}

var all = sync.OnceValue(func() *library {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is embedded
	}
	l := &library{byKernel: map[string]*Program{}}
	for _, e := range entries {
		if family, ok := strings.CutSuffix(e.Name(), ".cl"); ok {
			if err := l.parse(family, read(e.Name())); err != nil {
				panic(fmt.Sprintf("source: %s: %v", e.Name(), err)) // tests parse every file
			}
		}
	}
	return l
})

// Find returns the program with the named kernel, or nil.
func Find(kernel string) *Program { return all().byKernel[kernel] }

// Programs returns all programs, in order of the families' names.
func Programs() []*Program { return all().programs }

// Families returns the text of each family with all its kernels, by name.
func Families() map[string]string {
	out := map[string]string{}
	for _, p := range Programs() {
		if out[p.Family] == "" {
			out[p.Family] = dialect() + p.head
		}
		out[p.Family] += p.line + "\n"
	}
	return out
}

var (
	kernelLine = regexp.MustCompile(`^(\w+)\((\w+), ([^,)]+)(?:, (.*))?\)$`)
	macro      = regexp.MustCompile(`^#define (\w+)\(name\b`)
	defined    = regexp.MustCompile(`KERNEL name(?:##(\w+))?\(`)
	delegates  = regexp.MustCompile(`\b([A-Z]\w+)\(name\b`)
)

// suffixes returns what each macro of a family appends to the name for its kernels.
func suffixes(head string) map[string][]string {
	out := map[string][]string{}
	joined := strings.ReplaceAll(head, "\\\n", " ")
	for line := range strings.SplitSeq(joined, "\n") {
		m := macro.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, d := range defined.FindAllStringSubmatch(line, -1) {
			out[m[1]] = append(out[m[1]], d[1])
		}
		for _, d := range delegates.FindAllStringSubmatch(line[len(m[0]):], -1) {
			out[m[1]] = append(out[m[1]], out[d[1]]...)
		}
	}
	return out
}

func (l *library) parse(family, text string) error {
	head, lines, ok := strings.Cut(text, "\n// kernels\n")
	if !ok {
		return fmt.Errorf("there is no line %q", "// kernels")
	}
	macros := suffixes(head)
	for line := range strings.SplitSeq(lines, "\n") {
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		m := kernelLine.FindStringSubmatch(line)
		if m == nil || macros[m[1]] == nil {
			return fmt.Errorf("cannot read the line %q", line)
		}
		for _, types := range expand(m[3]) {
			if err := l.add(&Program{
				Family: family, Macro: m[1], Name: m[2], Types: types, head: head + "\n",
			}, m, types, macros[m[1]]); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the program of one line for one or two types.
func (l *library) add(p *Program, line, types, suffixes []string) error {
	name := strings.Join(append([]string{line[2]}, types...), "_")
	args := append([]string{name}, types...)
	if line[4] != "" {
		rest := line[4]
		if len(types) > 0 {
			rest = strings.ReplaceAll(rest, "$T", types[0])
		}
		args = append(args, rest)
	}
	p.line = line[1] + "(" + strings.Join(args, ", ") + ")"
	for _, s := range suffixes {
		k := name + s
		if l.byKernel[k] != nil {
			return fmt.Errorf("kernel %s is defined twice", k)
		}
		p.Kernels = append(p.Kernels, k)
		l.byKernel[k] = p
	}
	l.programs = append(l.programs, p)
	return nil
}

// expand returns the types, or pairs of types, that a line is for.
func expand(spec string) [][]string {
	if spec == "-" {
		return [][]string{nil}
	}
	from, to, pairs := strings.Cut(spec, " > ")
	var out [][]string
	for _, a := range typesOf(from) {
		if !pairs {
			out = append(out, []string{a})
			continue
		}
		for _, b := range typesOf(to) {
			if a != b {
				out = append(out, []string{a, b})
			}
		}
	}
	return out
}

func typesOf(spec string) []string {
	var out []string
	for word := range strings.FieldsSeq(spec) {
		if set, ok := sets[word]; ok {
			out = append(out, set...)
		} else {
			out = append(out, word)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
