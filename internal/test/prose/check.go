package prose

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Columns is the greatest width of a line of a comment or a page. A tab counts as four columns.
const Columns = 100

// A construct is a way of writing that the style sheet rules out.
type construct struct {
	pattern *regexp.Regexp
	instead string // what to write
}

// constructs are looked for in comments, strings with spaces, and pages. A pattern that also has
// honest uses does not belong here.
var constructs = []construct{
	{re(`(?i)\b(nobody|somebody|whoever)\b`), "name the actor: the caller, the reader goroutine, the peer"},
	{re(`(?i)\bwho (reads|waits|asks|looks|has|is|gets|serves|comes|makes|writes|holds|calls|takes)\b`), "name the actor"},
	{re(`(?i)\bfor ever\b`), "forever"},
	{re(`(?i)\bof late\b`), "recently"},
	{re(`(?i)\bin the place of\b`), "instead of"},
	{re(`(?i)\bother than in\b`), "unlike"},
	{re(`(?i)\ball the same\b`), "anyway, still, even so"},
	{re(`(?i)\bseldom\b`), "rarely"},
	{re(`(?i)\b(dear|dearer|dearest)\b`), "expensive"},
	{re(`(?i)\b(mend|mends|mended|mending)\b`), "fix"},
	{re(`(?i)\bof which\b`), "start a new sentence"},
	{re(`(?i)\b(is|are|was|were|be|been) told\b`), "is notified, receives, is called with"},
	{re(`(?i)\bhas \w+ told\b`), "notifies"},
	{re(`(?i)\b(patience|mortal|mortals)\b`), "timeout, interval, step context"},
	{re(`(?i)\bgoes? by what\b`), "follows, uses"},
	{re(`(?i)\bso many\b`), "that many, n"},
	{re(`(?i)\bfor want of\b`), "without"},
	{re(`(?i)\bup to now\b|\buntil now\b`), "so far"},
	{re(`(?i)\bthereof\b|\bwhereof\b|\bwherein\b|\bthereby\b|\bherein\b`), "plain words"},
	{re(`(?i)\bhitherto\b|\bhence\b|\bwhence\b|\bthither\b|\blest\b`), "plain words"},
	{re(`(?i)\bas it were\b|\bso to speak\b`), "nothing, or the exact word"},
	{re(`(?i)\bbears? with\b`), "tolerates"},
	{re(`(?i)\btakes? (no )?notice of\b`), "observes, ignores"},
	{re(`(?i)\bis (to be )?had\b`), "is available"},
	{re(`(?i)\bletting? (it|them|him) be\b|\blets? (it|them) be\b`), "keeps, leaves"},
}

// anyConstruct matches any of the constructs. It is checked first, because most text has none.
var anyConstruct = func() *regexp.Regexp {
	var all []string
	for _, c := range constructs {
		all = append(all, "(?:"+c.pattern.String()+")")
	}
	return re(strings.Join(all, "|"))
}()

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// A Fault is a line that breaks a rule.
type Fault struct {
	File string
	Line int // from 1
	Text string
}

func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

var generated = re(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// width returns the columns of a line.
func width(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// words returns the faults of running text, which begins at a line of a file. A construct is found
// across the end of a line, too. Each line of prose must have lost its comment marker.
func words(file string, line int, prose []string) []Fault {
	text := strings.Join(prose, " ")
	if !anyConstruct.MatchString(text) {
		return nil
	}
	var faults []Fault
	for _, c := range constructs {
		for _, at := range c.pattern.FindAllStringIndex(text, -1) {
			n := 0
			for end := len(prose[0]); n+1 < len(prose) && at[0] > end; end += 1 + len(prose[n]) {
				n++
			}
			found := text[at[0]:at[1]]
			faults = append(faults, Fault{file, line + n, fmt.Sprintf("%q: write %s", found, c.instead)})
		}
	}
	return faults
}

// wide matches lines of a page that may be wide: rows of tables, headings and links.
var wide = re(`^(\||#)|\]\(`)

// quoted matches code and quotations within a line of a page, which are not checked.
var quoted = re("`[^`]*`|\"[^\"]*\"")

// checkPage returns the faults of a page of Markdown. Tables, code, links and headings may be wide.
func checkPage(file string, src []byte) []Fault {
	var faults []Fault
	var prose []string // the lines so far, those of code empty
	code := false
	for i, line := range strings.Split(string(src), "\n") {
		trimmed := strings.TrimSpace(line)
		fence := strings.HasPrefix(trimmed, "```")
		code = code != fence
		if code || fence {
			prose = append(prose, "")
			continue
		}
		prose = append(prose, quoted.ReplaceAllString(trimmed, "…"))
		if width(line) > Columns && !wide.MatchString(trimmed) {
			faults = append(faults, Fault{file, i + 1, fmt.Sprintf("%d columns", width(line))})
		}
	}
	return append(faults, words(file, 1, prose)...)
}

// checkGo returns the faults of the comments and of the strings of a Go file; none if it is
// generated. Strings are checked for constructs only. Names in code are not prose.
func checkGo(file string, src []byte) ([]Fault, error) {
	if generated.Match(src[:min(len(src), 2000)]) {
		return nil, nil
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(src, []byte("\n"))
	var faults []Fault
	for _, group := range parsed.Comments {
		faults = append(faults, checkComment(file, fset.Position(group.Pos()).Line, group, lines)...)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err == nil && strings.Contains(text, " ") {
			faults = append(faults, words(file, fset.Position(lit.Pos()).Line, strings.Split(text, "\n"))...)
		}
		return true
	})
	return faults, nil
}

// directive matches comments that tools read and lines of code within comments.
var directive = re(`^//(go:|nolint|line |\t)`)

func checkComment(file string, line int, group *ast.CommentGroup, lines [][]byte) []Fault {
	var faults []Fault
	var prose []string
	for _, c := range group.List {
		for part := range strings.SplitSeq(c.Text, "\n") {
			at := line + len(prose)
			whole := string(lines[at-1])
			if directive.MatchString(part) {
				prose = append(prose, "")
				continue
			}
			if width(whole) > Columns && !strings.Contains(whole, "//nolint") {
				faults = append(faults, Fault{file, at, fmt.Sprintf("%d columns", width(whole))})
			}
			prose = append(prose, strings.TrimSpace(strings.TrimPrefix(part, "//")))
		}
	}
	return append(faults, words(file, line, prose)...)
}
