package main

import (
	"fmt"
	"strings"

	_ "github.com/weft-ml/weft/gpu" // devices of programs built with the tag gpu
	"github.com/weft-ml/weft/server"
)

// gpuUsage is the help of --gpu.
const gpuUsage = "GPU devices of the task: auto for those that a driver finds, off, require to fail without one, or the name of a driver: cuda or opencl; " +
	"host[:N] for N devices in software (programs built with the tag gpu only)"

// gpuOption returns the option of the server for --gpu.
func gpuOption(mode string) (server.Option, error) {
	switch name, count, _ := strings.Cut(mode, ":"); name {
	case "auto", "off", "require", "cuda", "opencl":
		if count != "" {
			break
		}
		return server.WithGPU(mode), nil
	case "host":
		if err := registerHostGPU(count); err != nil {
			return nil, fmt.Errorf("--gpu=%s: %w", mode, err)
		}
		return server.WithGPU("host"), nil
	}
	return nil, fmt.Errorf("--gpu=%s: the modes are auto, off, require, cuda, opencl and host[:N]", mode)
}

// gpuText describes the GPU devices of a task for the line that says that it is ready.
func gpuText(s *server.Server) string {
	names := s.GPUs()
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d GPU device(s): %s", len(names), strings.Join(names, ", "))
}
