// Package moduleroot finds the root of the module that a generator runs in.
package moduleroot

import (
	"fmt"
	"os"
	"path/filepath"
)

// Find returns the nearest folder that contains go.mod, from the working directory upwards.
func Find() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
	}
	return "", err
}
