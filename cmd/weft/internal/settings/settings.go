// Package settings sets the flags of a command that the command line does not set from the
// environment and from a file: flag over environment over file over default.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Flag is the name of the flag for the file.
const Flag = "config"

// prefix begins the names of the variables of the environment.
const prefix = "WEFT_"

// origin is the key of the annotation of a flag that says where its value comes from.
const origin = "weft.origin"

// alone are flags without a twin: they act on one command line only.
var alone = []string{"help", "version"}

// instead lists flags that describe the same. If the command line has one of them, those of the
// environment and the file do not count.
var instead = [][]string{{"cluster-spec", "server-def"}}

// nested are flags whose value may be a mapping in the file. It becomes JSON.
var nested = []string{"cluster-spec"}

// Variable returns the name of a flag in the environment.
func Variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// EnvError is an error in the value of a variable.
type EnvError struct{ error }

// Add adds the flag for the file.
func Add(flags *pflag.FlagSet) {
	flags.String(Flag, "", "file with flags in YAML, one 'name: value' a line; variables of the environment, such as "+Variable(Flag)+", go before the file, and flags before both")
}

// Apply sets the flags that the command line has not set.
func Apply(flags *pflag.FlagSet) error {
	s := setter{flags: flags, set: map[any]bool{}}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			s.mark(f, "the command line")
		}
	})
	if err := s.environment(); err != nil {
		return err
	}
	path := flags.Lookup(Flag)
	if path == nil || path.Value.String() == "" {
		return nil
	}
	return s.file(path.Value.String())
}

// Origin returns where the value of a flag comes from, "" for the default.
func Origin(f *pflag.Flag) string {
	return strings.Join(f.Annotations[origin], "")
}

// setter sets flags. A value counts as set for all names of its flag.
type setter struct {
	flags *pflag.FlagSet
	set   map[any]bool // by valueOf
}

// valueOf returns what flags that are names of one value share, or else the flag.
func valueOf(f *pflag.Flag) any {
	if reflect.TypeOf(f.Value).Comparable() {
		return f.Value
	}
	return f
}

func (s *setter) mark(f *pflag.Flag, from string) {
	s.set[valueOf(f)] = true
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[origin] = []string{from}
}

// free reports whether a flag has a twin and is not set yet.
func (s *setter) free(f *pflag.Flag) bool {
	if slices.Contains(alone, f.Name) || s.set[valueOf(f)] {
		return false
	}
	for _, names := range instead {
		if !slices.Contains(names, f.Name) {
			continue
		}
		for _, name := range names {
			if other := s.flags.Lookup(name); other != nil && s.set[valueOf(other)] {
				return false
			}
		}
	}
	return true
}

// environment sets the flags for which the environment has a variable that is not empty.
func (s *setter) environment() error {
	var found []*pflag.Flag
	s.flags.VisitAll(func(f *pflag.Flag) {
		if os.Getenv(Variable(f.Name)) != "" && s.free(f) {
			found = append(found, f)
		}
	})
	for _, f := range found {
		name := Variable(f.Name)
		if err := s.flags.Set(f.Name, os.Getenv(name)); err != nil {
			return EnvError{fmt.Errorf("%s: %w", name, reason(err))}
		}
		s.mark(f, name)
	}
	return nil
}

// reason returns the error of a value without the name of its flag.
func reason(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// file sets the flags of a file.
func (s *setter) file(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--%s: %w", Flag, err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return nil // an empty file
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: want lines of 'name: value'", path, top.Line)
	}
	lines := map[string]int{} // by name of the flag
	var keys []*yaml.Node
	for i := 0; i < len(top.Content); i += 2 {
		key := top.Content[i]
		f := s.flags.Lookup(key.Value)
		switch {
		case f == nil || slices.Contains(alone, f.Name) || f.Name == Flag:
			return fmt.Errorf("%s:%d: unknown key %q%s", path, key.Line, key.Value, s.suggestion(key.Value))
		case lines[f.Name] > 0:
			return fmt.Errorf("%s:%d: %s is in line %d, too", path, key.Line, f.Name, lines[f.Name])
		}
		lines[f.Name] = key.Line
		keys = append(keys, key, top.Content[i+1])
	}
	// the flags of one file do not exclude each other: it is decided before they are set
	free := map[string]bool{}
	for i := 0; i < len(keys); i += 2 {
		f := s.flags.Lookup(keys[i].Value)
		free[f.Name] = s.free(f)
	}
	for i := 0; i < len(keys); i += 2 {
		f, line := s.flags.Lookup(keys[i].Value), keys[i].Line
		values, err := values(f, keys[i+1])
		for _, v := range values {
			if err == nil && free[f.Name] {
				err = reason(s.flags.Set(f.Name, v))
			}
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", path, line, f.Name, err)
		}
		if free[f.Name] && len(values) > 0 {
			s.mark(f, fmt.Sprintf("%s:%d", path, line))
		}
	}
	return nil
}

// values returns the values of a key: one, or several for a list.
func values(f *pflag.Flag, n *yaml.Node) ([]string, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return values(f, n.Alias)
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return nil, errors.New("the value is missing")
		}
		return []string{n.Value}, nil
	case yaml.SequenceNode:
		if _, several := f.Value.(pflag.SliceValue); !several {
			return nil, errors.New("want one value, not a list")
		}
		var out []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, errors.New("want a list of values")
			}
			out = append(out, item.Value)
		}
		return out, nil
	case yaml.MappingNode:
		if !slices.Contains(nested, f.Name) {
			break
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, err
		}
		text, err := json.Marshal(v)
		return []string{string(text)}, err
	case yaml.DocumentNode:
	}
	return nil, errors.New("want a value")
}

// suggestion returns a hint at the flag whose name is nearest.
func (s *setter) suggestion(name string) string {
	best, least := "", 1+len(name)/2
	s.flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || slices.Contains(alone, f.Name) {
			return
		}
		if d := distance(strings.ReplaceAll(name, "_", "-"), f.Name); d < least {
			best, least = f.Name, d
		}
	})
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; the nearest is %q", best)
}

// distance returns the edit distance of two names: the number of bytes to insert, remove or
// replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				next = min(next, diagonal)
			} else {
				next = min(next, diagonal+1)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
