//go:build !linux

package fileio

func openTree(dir string) (tree, error) { return openLibraryTree(dir) }
