package stringops

import (
	"context"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

const (
	// maxProgram is the number of instructions of a pattern, about as many as RE2 accepts.
	maxProgram = 1 << 17
	// parsedMemory is the memory for each byte of a pattern while it is parsed: \pL becomes a list
	// of 5 KB.
	parsedMemory = 2 << 10
	// programMemory is the memory of an instruction: in the program, in its simpler forms, and in
	// the queues of a search.
	programMemory = 256
	// maxSearch bounds the product of a string's length and the instructions of a pattern that
	// replaces all of its matches. Nothing can end such a search.
	maxSearch = 1 << 34
	// shortSearch is that product for strings that are searched at once.
	shortSearch = 1 << 24
)

// pattern is a compiled regular expression.
type pattern struct {
	*regexp.Regexp
	size int // instructions of the program, about
}

// compile compiles a pattern embedded between before and after. It asks for the memory first, as a
// pattern of a few bytes can be a program of many instructions: x{1000}.
func compile(before, text, after string) (*pattern, error) {
	membudget.MustTake(int64(parsedMemory * len(text)))
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, status.InvalidArgumentf("Invalid pattern: %s, error: %s", text, errorText(err))
	}
	size := programSize(tree)
	if size > maxProgram {
		return nil, status.InvalidArgumentf("Invalid pattern: %s, error: %s", text, reErrors[syntax.ErrLarge])
	}
	membudget.MustTake(int64(programMemory * size))
	re, err := regexp.Compile(before + text + after)
	if err != nil {
		return nil, status.InvalidArgumentf("Invalid pattern: %s, error: %w", text, err)
	}
	return &pattern{re, size + len(before) + len(after)}, nil
}

// programSize returns about the number of instructions of a pattern. It stops above maxProgram.
func programSize(re *syntax.Regexp) int {
	var size int
	switch re.Op {
	case syntax.OpLiteral:
		size = max(1, len(re.Rune))
	case syntax.OpCapture:
		size = 2
	case syntax.OpAlternate:
		size = len(re.Sub)
	default:
		size = 1
	}
	for _, sub := range re.Sub {
		if size += programSize(sub); size > maxProgram {
			return size
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min, re.Max)
	}
	return size
}

// runes are the characters of a string. They end when a step ends.
type runes struct {
	ctx  context.Context
	text string
	at   int
}

// ReadRune implements io.RuneReader.
func (r *runes) ReadRune() (c rune, size int, err error) {
	const checkEvery = 1 << 10
	if r.at >= len(r.text) || r.at%checkEvery < utf8.UTFMax && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRuneInString(r.text[r.at:])
	r.at += size
	return c, size, nil
}

// match reports whether the pattern matches s.
func (p *pattern) match(ctx context.Context, s string) (bool, error) {
	if len(s) <= shortSearch/p.size {
		return p.MatchString(s), ctx.Err()
	}
	return p.MatchReader(&runes{ctx: ctx, text: s}), ctx.Err()
}

// find returns the positions of the first match and of its groups.
func (p *pattern) find(ctx context.Context, s string) ([]int, error) {
	if len(s) <= shortSearch/p.size {
		return p.FindStringSubmatchIndex(s), ctx.Err()
	}
	return p.FindReaderSubmatchIndex(&runes{ctx: ctx, text: s}), ctx.Err()
}

// isSlow reports whether it may take seconds to find all matches in s. Each search may read all of
// the rest.
func (p *pattern) isSlow(s string) bool { return len(s) > 1<<28/p.size/max(1, len(s)) }

// walk calls f for all matches in s. Finding them again takes as long. It copies the parts of s
// that do not match.
func (p *pattern) walk(ctx context.Context, s string, f func(match string)) (err error) {
	if len(s) > maxSearch/p.size {
		return status.ResourceExhaustedf("a string of %d bytes is too long for a pattern with %d instructions", len(s), p.size)
	}
	defer func() {
		if e := recover(); e != nil {
			if e != ended {
				panic(e)
			}
			err = ctx.Err()
		}
	}()
	p.ReplaceAllStringFunc(s, func(match string) string {
		if ctx.Err() != nil {
			panic(ended)
		}
		f(match)
		return ""
	})
	return nil
}

// ended is what a walk panics with at the end of its step: package regexp has no other way to end.
var ended = new(int)
