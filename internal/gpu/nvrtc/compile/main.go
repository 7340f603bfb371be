//go:build gpu

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft/internal/gpu/nvrtc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compile:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	optional := len(args) > 0 && args[0] == "-if-there"
	if optional {
		args = args[1:]
	}
	if len(args) == 0 || len(args)%2 != 0 {
		return fmt.Errorf("usage: compile [-if-there] SOURCE PTX ..., with WEFT_NVRTC=libnvrtc.so of CUDA 11.8")
	}
	major, minor, err := nvrtc.Version()
	if err != nil && optional {
		fmt.Fprintln(os.Stderr, "compile: PTX stays as it is:", err)
		return nil
	}
	if err != nil {
		return err
	}
	if major != 11 || minor != 8 {
		return fmt.Errorf("NVRTC is of CUDA %d.%d, and not 11.8", major, minor)
	}
	for i := 0; i < len(args); i += 2 {
		text, err := os.ReadFile(args[i])
		if err != nil {
			return err
		}
		ptx, err := nvrtc.Compile(filepath.Base(args[i]), string(text), "compute_52")
		if err != nil {
			return err
		}
		if err := os.WriteFile(args[i+1], []byte(ptx), 0o644); err != nil {
			return err
		}
	}
	return nil
}
