package device

import (
	"math"
	"strings"

	"github.com/weft-ml/weft/status"
)

// Parse parses a full or partial device name; the empty string is [Any]. It does not allocate,
// because every transfer parses the keys of tensors.
func Parse(name string) (Spec, error) {
	s, ok := parse(name)
	if !ok {
		return Any, status.InvalidArgumentf("Malformed device specification '%s'", name)
	}
	return s, nil
}

func parse(name string) (s Spec, ok bool) {
	s = Any
	if name == "/" {
		return s, true
	}
	for name != "" {
		key, rest, found := strings.Cut(name, ":")
		if !found {
			return Any, false
		}
		switch key {
		case "/job":
			s.Job, name, ok = takeNameOrStar(rest, "/")
		case "/replica":
			s.Replica, name, ok = takeNumberOrStar(rest)
		case "/task":
			s.Task, name, ok = takeNumberOrStar(rest)
		case "/device":
			name, ok = s.takeDevice(rest)
		case "/cpu", "/CPU":
			s.Type = "CPU"
			s.ID, name, ok = takeNumberOrStar(rest)
		case "/gpu", "/GPU":
			s.Type = "GPU"
			s.ID, name, ok = takeNumberOrStar(rest)
		default:
			return Any, false
		}
		if !ok {
			return Any, false
		}
	}
	return s, true
}

// takeDevice parses "TYPE", "TYPE:ID", or either part as "*".
func (s *Spec) takeDevice(text string) (rest string, ok bool) {
	s.ID = Unset
	if s.Type, rest, ok = takeNameOrStar(text, "/:"); !ok {
		return "", false
	}
	if id, more := strings.CutPrefix(rest, ":"); more {
		s.ID, rest, ok = takeNumberOrStar(id)
	}
	return rest, ok
}

func takeNameOrStar(text, stop string) (name, rest string, ok bool) {
	if rest, star := strings.CutPrefix(text, "*"); star {
		return "", rest, true
	}
	return takeName(text, stop)
}

// takeName parses a letter followed by letters, digits and underscores, up to one of the bytes in
// stop.
func takeName(text, stop string) (name, rest string, ok bool) {
	if text == "" || !isLetter(text[0]) {
		return "", "", false
	}
	for i := range len(text) {
		c := text[i]
		if strings.IndexByte(stop, c) >= 0 {
			return text[:i], text[i:], true
		}
		if !isLetter(c) && !isDigit(c) && c != '_' {
			return "", "", false
		}
	}
	return text, "", true
}

func takeNumberOrStar(text string) (n int, rest string, ok bool) {
	if rest, star := strings.CutPrefix(text, "*"); star {
		return Unset, rest, true
	}
	return takeNumber(text)
}

func takeNumber(text string) (n int, rest string, ok bool) {
	i := 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		n = 10*n + int(text[i]-'0')
		if n > math.MaxInt32 {
			return 0, "", false
		}
	}
	return n, text[i:], i > 0
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
