// Package device holds the names of devices: parsing, partial specifications, merging and matching.
//
// A full name is "/job:JOB/replica:R/task:T/device:TYPE:ID". A specification may leave parts out or give "*" for them;
// parts come in any order, and "/cpu:0" and "/gpu:0" are an older form of the last.
package device

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/status"
)

// Unset stands for a numeric part that a specification does not give.
const Unset = -1

// Spec is a full or partial device name. Empty strings and Unset numbers match anything.
type Spec struct {
	Job     string
	Replica int
	Task    int
	Type    string // upper case for the types known to TensorFlow: "CPU", "GPU"
	ID      int
}

// Any is the specification that matches every device.
var Any = Spec{Replica: Unset, Task: Unset, ID: Unset}

var partForm = regexp.MustCompile(`^(?i:(job|replica|task|device|cpu|gpu)):(.*)$`)

var (
	jobForm  = regexp.MustCompile(`^[a-zA-Z][_a-zA-Z0-9]*$`)
	typeForm = regexp.MustCompile(`^[a-zA-Z_][_a-zA-Z0-9]*$`)
)

// Parse reads a full or partial device name; the empty string is [Any].
func Parse(name string) (Spec, error) {
	s := Any
	if name == "" || name == "/" {
		return s, nil
	}
	rest, ok := strings.CutPrefix(name, "/")
	if !ok {
		return s, malformed(name)
	}
	for part := range strings.SplitSeq(rest, "/") {
		if err := s.parsePart(part); err != nil {
			return Any, malformed(name)
		}
	}
	return s, nil
}

func malformed(name string) error {
	return status.InvalidArgumentf("Malformed device specification '%s'", name)
}

func (s *Spec) parsePart(part string) error {
	m := partForm.FindStringSubmatch(part)
	if m == nil {
		return malformed(part)
	}
	key, val := strings.ToLower(m[1]), m[2]
	switch key {
	case "job":
		if val == "*" {
			return nil
		}
		if !jobForm.MatchString(val) {
			return malformed(part)
		}
		s.Job = val
		return nil
	case "replica":
		return parseNumber(val, &s.Replica)
	case "task":
		return parseNumber(val, &s.Task)
	case "cpu", "gpu":
		s.Type = strings.ToUpper(key)
		return parseNumber(val, &s.ID)
	}
	typ, id, hasID := strings.Cut(val, ":")
	if typ != "*" {
		if !typeForm.MatchString(typ) {
			return malformed(part)
		}
		if up := strings.ToUpper(typ); up == "CPU" || up == "GPU" {
			typ = up
		}
		s.Type = typ
	}
	if !hasID {
		return nil
	}
	return parseNumber(id, &s.ID)
}

func parseNumber(val string, out *int) error {
	if val == "*" {
		return nil
	}
	n, err := strconv.ParseInt(val, 10, 32)
	if err != nil || n < 0 {
		return malformed(val)
	}
	*out = int(n)
	return nil
}

// IsFull reports whether every part is given.
func (s Spec) IsFull() bool {
	return s.Job != "" && s.Replica != Unset && s.Task != Unset && s.Type != "" && s.ID != Unset
}

// String prints the specification in canonical form, without the parts that it does not give; a type without a number is
// printed with "*".
func (s Spec) String() string {
	var b strings.Builder
	if s.Job != "" {
		b.WriteString("/job:" + s.Job)
	}
	if s.Replica != Unset {
		b.WriteString("/replica:" + strconv.Itoa(s.Replica))
	}
	if s.Task != Unset {
		b.WriteString("/task:" + strconv.Itoa(s.Task))
	}
	if s.Type != "" || s.ID != Unset {
		typ, id := s.Type, "*"
		if typ == "" {
			typ = "*"
		}
		if s.ID != Unset {
			id = strconv.Itoa(s.ID)
		}
		b.WriteString("/device:" + typ + ":" + id)
	}
	return b.String()
}

// Matches reports whether the device d, whose name is full, satisfies the specification.
func (s Spec) Matches(d Spec) bool {
	return (s.Job == "" || s.Job == d.Job) && match(s.Replica, d.Replica) && match(s.Task, d.Task) &&
		(s.Type == "" || s.Type == d.Type) && match(s.ID, d.ID)
}

func match(want, have int) bool { return want == Unset || want == have }

// Intersects reports whether some device satisfies both specifications.
func (s Spec) Intersects(t Spec) bool {
	str := func(a, b string) bool { return a == "" || b == "" || a == b }
	num := func(a, b int) bool { return a == Unset || b == Unset || a == b }
	return str(s.Job, t.Job) && num(s.Replica, t.Replica) && num(s.Task, t.Task) && str(s.Type, t.Type) && num(s.ID, t.ID)
}

// TaskName returns the name of the task that the device is on, "/job:J/replica:R/task:T".
func (s Spec) TaskName() string {
	s.Type, s.ID = "", Unset
	return s.String()
}
