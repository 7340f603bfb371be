package op

import (
	"fmt"
	"strings"
)

// reserve marks a name, and the name scopes that it is in, as used.
func (b *builder) reserve(name string) {
	key := strings.ToLower(name)
	for i, c := range key {
		if c == '/' {
			b.used[key[:i]] = max(b.used[key[:i]], 1)
		}
	}
	b.used[key] = max(b.used[key], 1)
}

// unique returns name, or name with the first free number appended, and marks it as used. As in
// TensorFlow, names that differ only in case count as equal, because some file systems do not
// distinguish them.
func (b *builder) unique(name string) string {
	key := strings.ToLower(name)
	i := b.used[key]
	if i == 0 {
		b.used[key] = 1
		return name
	}
	for ; ; i++ {
		numbered := fmt.Sprintf("%s_%d", name, i)
		if key := strings.ToLower(numbered); b.used[key] == 0 {
			b.used[key] = 1
			name = numbered
			break
		}
	}
	b.used[key] = i + 1
	return name
}
