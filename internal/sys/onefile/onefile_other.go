//go:build !gpu || !linux || !amd64

package onefile

import "os"

// Alone reports whether the program runs as a static one although it was built to open libraries.
func Alone() bool { return false }

// Reload does nothing in programs of this kind.
func Reload() error { return nil }

// Executable returns the path of the program.
func Executable() (string, error) { return os.Executable() }
