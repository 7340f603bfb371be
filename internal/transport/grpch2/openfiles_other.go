//go:build !unix

package grpch2

func openFileLimit() int { return 0 }
