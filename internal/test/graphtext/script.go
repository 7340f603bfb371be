package graphtext

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "replace the expected output in test scripts by the actual one")

// Case is one case of a script:
//
//	# description, which names the subtest
//	command key=value flag
//	input
//	----
//	expected output
//
// The output ends at the first empty line. Output with empty lines is enclosed in two lines "----"
// on either side.
type Case struct {
	Command string
	Input   string
	args    []string
}

// Arg returns the value of an argument "key=value", or "".
func (c *Case) Arg(key string) string {
	for _, a := range c.args {
		if v, ok := strings.CutPrefix(a, key+"="); ok {
			return v
		}
	}
	return ""
}

// Args returns the values of an argument "key=v1,v2". It returns none if the argument is absent or
// empty.
func (c *Case) Args(key string) []string {
	if v := c.Arg(key); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// Has reports whether the argument "flag" is set.
func (c *Case) Has(flag string) bool {
	for _, a := range c.args {
		if a == flag || strings.HasPrefix(a, flag+"=") {
			return true
		}
	}
	return false
}

// RunScripts runs every case of the scripts that match pattern and compares the result of run with
// the expected output. With the flag -rewrite it writes the actual output to the scripts instead.
func RunScripts(t *testing.T, pattern string, run func(t *testing.T, c *Case) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts match %s (%v)", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) { runScript(t, file, run) })
	}
}

func runScript(t *testing.T, file string, run func(t *testing.T, c *Case) string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := splitScript(string(text))
	if err != nil {
		t.Fatalf("%s:%v", file, err)
	}
	var out strings.Builder
	for i := range cases {
		c := &cases[i]
		actual := c.want
		if c.Command != "" {
			t.Run(c.name, func(t *testing.T) {
				if actual = withNewline(run(t, &c.Case)); actual != c.want && !*rewrite {
					t.Errorf("%s:%d: got\n%s\nwant\n%s", file, c.line, actual, c.want)
				}
			})
		}
		c.write(&out, actual)
	}
	if *rewrite && out.String() != string(text) {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func withNewline(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// scriptCase is a case with the text around it. The text after the last case has no command.
type scriptCase struct {
	Case
	name   string
	line   int
	before string // comments and empty lines
	header string // the command line as written
	want   string
}

const fence = "----"

// splitScript splits the text of a script into its cases.
func splitScript(text string) ([]scriptCase, error) {
	lines := strings.SplitAfter(text, "\n")
	var cases []scriptCase
	for at := 0; at < len(lines); {
		c := scriptCase{}
		for ; at < len(lines) && (strings.TrimSpace(lines[at]) == "" || lines[at][0] == '#'); at++ {
			c.before += lines[at]
			if comment, ok := strings.CutPrefix(strings.TrimSpace(lines[at]), "# "); !ok {
				c.name = "" // a comment followed by an empty line is not a name
			} else if c.name == "" {
				c.name = comment
			}
		}
		if at < len(lines) {
			var err error
			if at, err = c.read(lines, at); err != nil {
				return nil, err
			}
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// read takes the case that begins at lines[at] and returns where the next one does.
func (c *scriptCase) read(lines []string, at int) (int, error) {
	c.line, c.header = at+1, lines[at]
	words := strings.Fields(lines[at])
	c.Command, c.args = words[0], words[1:]
	if c.name == "" {
		c.name = fmt.Sprintf("line %d", c.line)
	}
	isFence := func(i int) bool { return i < len(lines) && strings.TrimSpace(lines[i]) == fence }
	for at++; !isFence(at); at++ {
		if at >= len(lines) {
			return 0, fmt.Errorf("%d: no line %q ends the input", c.line, fence)
		}
		c.Input += lines[at]
	}
	at++
	double := isFence(at)
	if double {
		at++
	}
	for ; at < len(lines); at++ {
		if double && isFence(at) && isFence(at+1) {
			return at + 2, nil
		}
		if !double && strings.TrimSpace(lines[at]) == "" {
			return at, nil
		}
		c.want += lines[at]
	}
	if double {
		return 0, fmt.Errorf("%d: no two lines %q end the output", c.line, fence)
	}
	return at, nil
}

// write puts the case with the given output back into a script.
func (c *scriptCase) write(b *strings.Builder, output string) {
	b.WriteString(c.before)
	if c.Command == "" {
		return
	}
	b.WriteString(c.header + c.Input + fence + "\n")
	if output == "" || !strings.Contains("\n"+output, "\n\n") {
		b.WriteString(output)
		return
	}
	b.WriteString(fence + "\n" + output + fence + "\n" + fence + "\n")
}
