//go:build !gpu

package main

import "errors"

// registerHostGPU fails: the program has no kernels of GPUs.
func registerHostGPU(string) error {
	return errors.New("this program was built without GPU devices (-tags gpu)")
}
