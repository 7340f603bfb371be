//go:build !linux

package codepages

// Drop does nothing: other systems do not map pages ahead.
func Drop() (int64, error) { return 0, nil }
