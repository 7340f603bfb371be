package graphtext

import (
	"fmt"
	"strconv"
	"strings"
)

// scanner reads one line from left to right. After an error its methods do nothing.
type scanner struct {
	rest string
	err  error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format+" at %q", append(args, s.rest)...)
	}
	s.rest = ""
}

func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t") }

// accept skips text if it is next.
func (s *scanner) accept(text string) bool {
	rest, ok := strings.CutPrefix(s.rest, text)
	if ok && s.err == nil {
		s.rest = rest
	}
	return ok && s.err == nil
}

func (s *scanner) expect(text string) {
	if !s.accept(text) {
		s.fail("want %q", text)
	}
}

// until returns the text before the first of the bytes in stop, or the rest of the line.
func (s *scanner) until(stop string) string {
	i := strings.IndexAny(s.rest, stop)
	if i < 0 {
		i = len(s.rest)
	}
	out := s.rest[:i]
	s.rest = s.rest[i:]
	return out
}

// quoted reads a string in double quotes with the escapes of Go.
func (s *scanner) quoted() string {
	prefix, err := strconv.QuotedPrefix(s.rest)
	if err != nil {
		s.fail("want a string in quotes")
		return ""
	}
	s.rest = s.rest[len(prefix):]
	out, err := strconv.Unquote(prefix)
	if err != nil {
		s.fail("%v", err)
	}
	return out
}

// word reads a quoted string, or the text up to the next space.
func (s *scanner) word() string {
	if strings.HasPrefix(s.rest, `"`) {
		return s.quoted()
	}
	return s.until(" \t")
}

// list calls elem for each of the comma-separated elements before the closing text.
func (s *scanner) list(closing string, elem func()) {
	s.space()
	for !s.accept(closing) && s.err == nil {
		elem()
		s.space()
		if !s.accept(",") && !strings.HasPrefix(s.rest, closing) {
			s.fail("want %q or \",\"", closing)
		}
		s.space()
	}
}
