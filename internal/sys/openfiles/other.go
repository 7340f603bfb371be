//go:build !unix

package openfiles

// Limit returns 0: the number is not known.
func Limit() int { return 0 }

// Full returns false: the number is not known.
func Full(int) bool { return false }
