// Package slurm starts processes on the machines of a job of Slurm.
package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

// maxHosts is the largest number of hosts of a list: that of a range in Slurm. A short text can
// otherwise name more hosts than fit into memory.
const maxHosts = 64 << 10

// Expand returns the hosts of a list as Slurm writes it, such as "gpu[01-03,7],login". Brackets may
// occur several times in a name; the last one varies fastest.
func Expand(list string) ([]string, error) {
	var hosts []string
	for rest, more := list, true; more; {
		var name string
		var err error
		if name, rest, more, err = cutName(rest); err != nil {
			return nil, badList(list, err)
		}
		expanded, err := expandName(name)
		if err == nil && len(hosts)+len(expanded) > maxHosts {
			err = errTooMany
		}
		if err != nil {
			return nil, badList(list, err)
		}
		hosts = append(hosts, expanded...)
	}
	return hosts, nil
}

var errTooMany = fmt.Errorf("more than %d hosts", maxHosts)

func badList(list string, err error) error {
	return fmt.Errorf("cannot read the host list %q: %w", shorten(list), err)
}

// shorten keeps messages readable.
func shorten(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}

// cutName returns the text up to the first comma outside of brackets, and the text after it.
func cutName(text string) (name, rest string, more bool, err error) {
	inside := false
	for i, c := range text {
		switch {
		case c == '[' && inside, c == ']' && !inside:
			return "", "", false, fmt.Errorf("unexpected %q", c)
		case c == '[' || c == ']':
			inside = !inside
		case c == ',' && !inside:
			return text[:i], text[i+1:], true, nil
		}
	}
	if inside {
		return "", "", false, fmt.Errorf("a ']' is missing")
	}
	return text, "", false, nil
}

// expandName returns the hosts of one name with brackets.
func expandName(name string) ([]string, error) {
	hosts := []string{""}
	for name != "" {
		prefix, ranges, found := strings.Cut(name, "[")
		values := []string{""}
		if ranges, name, _ = strings.Cut(ranges, "]"); found {
			var err error
			if values, err = expandRanges(ranges); err != nil {
				return nil, err
			}
		}
		if len(hosts)*len(values) > maxHosts {
			return nil, errTooMany
		}
		next := make([]string, 0, len(hosts)*len(values))
		for _, host := range hosts {
			for _, value := range values {
				next = append(next, host+prefix+value)
			}
		}
		hosts = next
	}
	for _, host := range hosts {
		if host == "" || strings.ContainsAny(host, " \t\n|;/") {
			return nil, fmt.Errorf("%q is not a host", shorten(host))
		}
	}
	return hosts, nil
}

// expandRanges returns the numbers of "1-3,07", with the zeros that the text has.
func expandRanges(text string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		low, err := number(first)
		if err != nil {
			return nil, err
		}
		high, err := number(last)
		if err != nil {
			return nil, err
		}
		if high < low {
			return nil, fmt.Errorf("the range %q is empty", shorten(part))
		}
		if high-low >= maxHosts || len(out)+int(high-low) >= maxHosts {
			return nil, errTooMany
		}
		for n := low; n <= high; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(first), n))
		}
	}
	return out, nil
}

// number reads digits. Slurm has no numbers of more than 18 digits in the names of hosts.
func number(digits string) (int64, error) {
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || len(digits) > 18 {
		return 0, fmt.Errorf("%q is not a number", shorten(digits))
	}
	return int64(n), nil
}
