package trust

import (
	"fmt"
	"strings"

	"github.com/weft-ml/weft/cluster"
)

// A File maps the names in certificates to principals, and tenants to weights. A nil File maps
// none.
//
// Most lines have a kind of names (uri, dns or email), a pattern, and a principal:
//
//	uri    spiffe://corp/ns/train/sa/worker-*  task worker/*
//	dns    ps-?.train.svc.cluster.local        task ps/*
//	uri    spiffe://corp/ns/research/*         client research
//	email  *@corp.example                      observer
//
// Other lines say how much memory a tenant may use, relative to the limit of tenants:
//
//	tenant research                            weight 2.5
//
// In a pattern, "*" stands for any text and "?" for one character; neither stands for "/" or ".".
// In a principal, "*" stands for what the wildcards of the pattern have matched. The first line
// that matches a name counts. A line that starts with "#" is a comment.
type File struct {
	rules   []rule
	weights []weight
}

type rule struct {
	line    int
	kind    string
	pattern string
	role    Role
	subject string // of the principal; may contain "*"
}

// ParseFile parses a trust file.
func ParseFile(text string) (*File, error) {
	f := &File{}
	line := 0
	for l := range strings.Lines(text) {
		line++
		fields := strings.Fields(l)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if fields[0] == "tenant" {
			w, err := parseWeight(fields)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			f.weights = append(f.weights, w)
			continue
		}
		r, err := parseRule(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		r.line = line
		f.rules = append(f.rules, r)
	}
	return f, nil
}

func parseRule(fields []string) (rule, error) {
	if len(fields) < 3 || len(fields) > 4 {
		return rule{}, fmt.Errorf("want a kind of names, a pattern and a principal")
	}
	r := rule{kind: fields[0], pattern: fields[1]}
	if r.kind != "uri" && r.kind != "dns" && r.kind != "email" {
		return rule{}, fmt.Errorf("%q is no kind of names (uri, dns or email), and not tenant", r.kind)
	}
	if r.kind == "dns" {
		r.pattern = strings.ToLower(r.pattern)
	}
	var ok bool
	if r.role, ok = ParseRole(fields[2]); !ok || r.role == Anonymous {
		return rule{}, fmt.Errorf("%q is no role: client, task, operator or observer", fields[2])
	}
	if len(fields) == 4 {
		r.subject = fields[3]
	}
	wild := strings.ContainsAny(r.pattern, "*?")
	switch {
	case strings.Contains(r.subject, "*") && !wild:
		return rule{}, fmt.Errorf("the principal has a wildcard and the pattern %q has none", r.pattern)
	case r.role == Task && (r.subject == "" || wild && !strings.Contains(r.subject, "*")):
		return rule{}, fmt.Errorf("a task needs JOB/INDEX, or JOB/* for the number that the pattern matches")
	}
	_, err := r.principal(san{r.kind, "name"}, "0") // any match of a wildcard
	return r, err
}

// match returns the principal of a name, by the first rule that matches.
func (f *File) match(s san) (p Principal, ok bool, err error) {
	if f == nil {
		return p, false, nil
	}
	for i := range f.rules {
		r := &f.rules[i]
		if r.kind != s.kind {
			continue
		}
		if matched, ok := glob(r.pattern, s.value); ok {
			p, err := r.principal(s, string(matched))
			if err != nil {
				return p, false, fmt.Errorf("line %d of the trust file: %w", r.line, err)
			}
			return p, true, nil
		}
	}
	return p, false, nil
}

// principal returns the principal of a name whose wildcards have matched the given text.
func (r *rule) principal(s san, matched string) (Principal, error) {
	subject := strings.ReplaceAll(r.subject, "*", matched)
	p := Principal{Role: r.role}
	switch first, second, two := strings.Cut(subject, "/"); r.role {
	case Task:
		index, ok := parseIndex(second)
		if !ok || !isName(first) {
			return p, fmt.Errorf("%q is no task: JOB/INDEX", subject)
		}
		p.Task = cluster.Task{Job: first, Index: index}
	case Client:
		p.Tenant, p.Name = first, second
		if subject == "" { // the tenant of a certificate without one is its whole name
			p.Tenant = s.value
		}
		if !two {
			p.Name = s.value
		}
		if p.Tenant == "" || p.Name == "" || strings.Contains(second, "/") {
			return p, fmt.Errorf("%q is no client: TENANT or TENANT/NAME", subject)
		}
	case Operator, Observer:
		if p.Name = subject; subject == "" {
			p.Name = s.value
		}
	case Anonymous, NumRoles:
	}
	return p, nil
}

// glob matches a text with a pattern, and returns what the wildcards stand for.
//
// To try all lengths of all wildcards takes time with a power of the length of the text. Only the
// last '*' that was reached has to grow. A longer match of an earlier one would move the plain text
// after it within the same label, since no wildcard matches a '.' or '/'. The last '*' can match
// the bytes in between instead.
func glob(pattern, text string) (matched []byte, ok bool) {
	// of the last '*': the pattern after it, the text that it takes next, and the length of matched
	// up to its end; from is empty before the first one
	after, from, kept := "", "", 0
	for pattern != "" || text != "" {
		switch {
		case pattern != "" && pattern[0] == '*':
			pattern = pattern[1:]
			after, from, kept = pattern, text, len(matched)
		case pattern != "" && text != "" && pattern[0] == '?' && !isSeparator(text[0]):
			matched = append(matched, text[0])
			pattern, text = pattern[1:], text[1:]
		case pattern != "" && text != "" && pattern[0] == text[0] && pattern[0] != '?':
			pattern, text = pattern[1:], text[1:]
		case from != "" && !isSeparator(from[0]):
			matched = append(matched[:kept], from[0])
			pattern, text = after, from[1:]
			from, kept = text, kept+1
		default:
			return nil, false
		}
	}
	return matched, true
}

// isSeparator reports whether a byte ends a label of a name. Wildcards do not match it.
func isSeparator(c byte) bool { return c == '.' || c == '/' }
