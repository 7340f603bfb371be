package stringops

import (
	"strings"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "RegexReplace", Doc: "Replaces the matches of a regular expression. \\1 in the replacement is the first group.",
		In:    []string{"input: string", "pattern: string", "rewrite: string"},
		Out:   []string{"output: string"},
		Attrs: []string{"replace_global: bool = true"},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = c.In[0]
			return shapefn.CheckRanks(c, 1, 0, 0)
		},
	}, newReplace)
	kernel.RegisterNew(opdef.Def{
		Name: "StaticRegexReplace", Doc: "Replaces the matches of the regular expression in an attribute.",
		In:    []string{"input: string"},
		Out:   []string{"output: string"},
		Attrs: []string{"pattern: string", "rewrite: string", "replace_global: bool = true"},
		Shape: opdef.SameShape,
	}, newStaticReplace)
}

// partialMatch compiles a pattern that may match any part of a string.
func partialMatch(text string) (*pattern, error) { return compile("", text, "") }

func newReplace(c *kernel.Construction) (kernel.Kernel, error) {
	global := c.Attrs.Bool("replace_global")
	patterns := &patternCache{compile: partialMatch}
	return kernel.Func(func(ctx *kernel.Context) error {
		re, err := patterns.input(ctx, 1)
		if err != nil {
			return err
		}
		if s := ctx.Input(2).Shape(); len(s) != 0 {
			return status.InvalidArgumentf("Rewrite must be scalar, but received %v", s)
		}
		return replaceEach(ctx, re, tensor.Value[string](ctx.Input(2)), global)
	}), nil
}

func newStaticReplace(c *kernel.Construction) (kernel.Kernel, error) {
	re, err := partialMatch(c.Attrs.String("pattern"))
	if err != nil {
		return nil, err
	}
	rewrite, global := c.Attrs.String("rewrite"), c.Attrs.Bool("replace_global")
	return kernel.Func(func(ctx *kernel.Context) error { return replaceEach(ctx, re, rewrite, global) }), nil
}

func replaceEach(ctx *kernel.Context, re *pattern, rewrite string, global bool) error {
	template, group, whole := goTemplate(rewrite)
	if group > re.NumSubexp() || !whole && !global {
		return ctx.PassInput(0, 0)
	}
	references := strings.Count(template, "${")
	return eachString(ctx, func(s string) (string, error) {
		if global {
			size, err := replacedSize(ctx, re, s, len(template), references)
			if err != nil {
				return "", err
			}
			defer holdReplaced(size)()
			return re.ReplaceAllString(s, template), nil
		}
		at, err := re.find(ctx.Context(), s)
		if at == nil || err != nil {
			return s, err
		}
		defer holdReplaced(int64(len(s) + len(template) + references*(at[1]-at[0])))()
		return s[:at[0]] + string(re.ExpandString(nil, template, s, at)) + s[at[1]:], nil
	})
}

// largeReplaced is the length of a result from which it is counted before it is made. eachString
// counts it afterwards.
const largeReplaced = 64 << 10

// holdReplaced asks for the memory of a result of n bytes until release is called. It panics with a
// *membudget.Exceeded if there is none. The result is made in memory that grows, and copied.
func holdReplaced(n int64) (release func()) {
	if n < largeReplaced {
		return func() {}
	}
	release = membudget.Hold(3 * n)
	if release == nil {
		panic(&membudget.Exceeded{Bytes: 3 * n})
	}
	return release
}

// replacedSize returns the size of s after its matches are replaced, or 0 if it is small. The
// replacement is a template of n bytes with references to groups. If finding the matches may take
// long, replacedSize returns an error when the step ends.
func replacedSize(ctx *kernel.Context, re *pattern, s string, n, references int) (int64, error) {
	if (len(s)+1)*n+len(s)*(1+references) < largeReplaced && !re.isSlow(s) {
		return 0, ctx.Context().Err()
	}
	defer holdReplaced(int64(len(s)))() // the walk copies what does not match
	matches, matched := 0, 0
	err := re.walk(ctx.Context(), s, func(match string) {
		matches++
		matched += len(match)
	})
	if matches == 0 {
		return 0, err // s is the result
	}
	return int64(len(s)) + int64(matches)*int64(n) + int64(matched)*int64(references), err
}

// goTemplate converts an RE2 replacement, which refers to groups by backslash and number, to the
// syntax of package regexp. It also returns the largest group number, and whether the whole
// replacement is valid: as in RE2, it ends before an invalid escape.
func goTemplate(rewrite string) (template string, group int, whole bool) {
	var b strings.Builder
	for i := 0; i < len(rewrite); i++ {
		c := rewrite[i]
		if c != '\\' {
			if b.WriteByte(c); c == '$' {
				b.WriteByte(c)
			}
			continue
		}
		if i++; i == len(rewrite) {
			return b.String(), group, false
		}
		switch c = rewrite[i]; {
		case c == '\\':
			b.WriteByte(c)
		case c >= '0' && c <= '9':
			group = max(group, int(c-'0'))
			b.WriteString("${" + string(c) + "}")
		default:
			return b.String(), group, false
		}
	}
	return b.String(), group, true
}
