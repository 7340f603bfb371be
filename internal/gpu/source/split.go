package source

import (
	"errors"
	"strings"
)

// splitPTX cuts a program in PTX into its kernels, by name, and the rest: directives, constants and
// functions, which come first in every program that is made of it.
func splitPTX(text string) (head string, kernels map[string]string, err error) {
	const entry = ".visible .entry "
	var rest strings.Builder
	kernels = map[string]string{}
	for len(text) > 0 {
		at := strings.Index(text, entry)
		if at < 0 {
			rest.WriteString(text)
			break
		}
		rest.WriteString(text[:at])
		text = text[at:]
		name, _, _ := strings.Cut(text[len(entry):], "(")
		end := strings.Index(text, "\n}\n")
		if end < 0 {
			return "", nil, errors.New("a kernel without end: " + name)
		}
		kernels[name] = text[:end+3]
		text = text[end+3:]
	}
	return rest.String(), kernels, nil
}
