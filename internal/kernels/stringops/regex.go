package stringops

import (
	"errors"
	"regexp/syntax"
	"sync/atomic"
	"unicode/utf8"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "RegexFullMatch", Doc: "Returns whether a regular expression matches each whole string.",
		In:  []string{"input: string", "pattern: string"},
		Out: []string{"output: bool"},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = c.In[0]
			return shapefn.CheckRanks(c, 1, 0)
		},
	}, newFullMatch)
	kernel.RegisterNew(opdef.Def{
		Name: "StaticRegexFullMatch", Doc: "Returns whether the regular expression in an attribute matches each whole string.",
		In:    []string{"input: string"},
		Out:   []string{"output: bool"},
		Attrs: []string{"pattern: string"},
		Shape: opdef.SameShape,
	}, newStaticFullMatch)
}

// reErrors maps error codes to RE2's error texts.
var reErrors = map[syntax.ErrorCode]string{
	syntax.ErrInvalidCharClass: "invalid character class", syntax.ErrInvalidCharRange: "invalid character class range",
	syntax.ErrInvalidEscape: "invalid escape sequence", syntax.ErrInvalidNamedCapture: "invalid named capture group",
	syntax.ErrInvalidPerlOp: "invalid perl operator", syntax.ErrInvalidRepeatOp: "bad repetition operator",
	syntax.ErrInvalidRepeatSize: "invalid repetition size", syntax.ErrInvalidUTF8: "invalid UTF-8",
	syntax.ErrMissingBracket: "missing ]", syntax.ErrMissingParen: "missing )",
	syntax.ErrMissingRepeatArgument: "no argument for repetition operator", syntax.ErrTrailingBackslash: "trailing \\",
	syntax.ErrUnexpectedParen: "unexpected )", syntax.ErrLarge: "pattern too large - compile failed",
}

func errorText(err error) string {
	e, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return err.Error()
	}
	text, ok := reErrors[e.Code]
	if !ok {
		return e.Error()
	}
	if e.Expr == "" || e.Code == syntax.ErrTrailingBackslash {
		return text
	}
	return text + ": " + e.Expr
}

// fullMatch compiles a pattern that must match the whole string.
func fullMatch(text string) (*pattern, error) { return compile(`\A(?:`, text, `)\z`) }

// patternCache caches the last compiled pattern, because the pattern input rarely changes between
// steps.
type patternCache struct {
	compile func(string) (*pattern, error)
	last    atomic.Pointer[compiled]
}

type compiled struct {
	text string
	re   *pattern
}

// input compiles the pattern that is input i.
func (r *patternCache) input(ctx *kernel.Context, i int) (*pattern, error) {
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return nil, status.InvalidArgumentf("Pattern must be scalar, but received %v", t.Shape())
	}
	text := tensor.Value[string](t)
	if c := r.last.Load(); c != nil && c.text == text {
		return c.re, nil
	}
	re, err := r.compile(text)
	if err == nil {
		r.last.Store(&compiled{text, re})
	}
	return re, err
}

func newFullMatch(*kernel.Construction) (kernel.Kernel, error) {
	patterns := &patternCache{compile: fullMatch}
	return kernel.Func(func(ctx *kernel.Context) error {
		re, err := patterns.input(ctx, 1)
		if err != nil {
			return err
		}
		return matchEach(ctx, re)
	}), nil
}

func newStaticFullMatch(c *kernel.Construction) (kernel.Kernel, error) {
	re, err := fullMatch(c.Attrs.String("pattern"))
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error { return matchEach(ctx, re) }), nil
}

func matchEach(ctx *kernel.Context, re *pattern) error {
	return eachString(ctx, func(s string) (bool, error) {
		// no expression matches invalid UTF-8
		if !utf8.ValidString(s) {
			return false, nil
		}
		return re.match(ctx.Context(), s)
	})
}
