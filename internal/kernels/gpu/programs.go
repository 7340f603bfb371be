package gpu

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/source"
)

func init() { device.RegisterFinder(findProgram) }

// findProgram returns the program of package source with a kernel, or nil.
func findProgram(kernel string) *device.Program {
	p := source.Find(kernel)
	if p == nil {
		return nil
	}
	return &device.Program{Name: p.Kernels[0], Kernels: p.Kernels, Text: func(l driver.Language) (string, []string) {
		if l == driver.PTX {
			return p.PTX(), nil
		}
		return p.Text(), nil
	}}
}
