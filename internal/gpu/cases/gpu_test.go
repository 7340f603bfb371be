//go:build gpu

package cases

import (
	"os"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/gpu/driver"
	_ "github.com/weft-ml/weft/internal/gpu/drivers"
	"github.com/weft-ml/weft/internal/gpu/source"
)

// TestKernels compares every case on the first device with its twin. WEFT_TEST_KERNELS selects
// families and WEFT_TEST_TYPES the first element type, by names with commas between.
func TestKernels(t *testing.T) {
	found, err := driver.Open("")
	if err != nil {
		t.Skip(err)
	}
	d := found.Devices[0]
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	selected := func(list, name string) bool {
		only := os.Getenv(list)
		return only == "" || strings.Contains(","+only+",", ","+name+",")
	}
	twins := host(t)
	worst := map[string]float64{}
	for _, p := range source.Programs() {
		if !selected("WEFT_TEST_KERNELS", p.Family) || len(p.Types) > 0 && !selected("WEFT_TEST_TYPES", p.Types[0]) {
			continue
		}
		m, err := load(d, p)
		if err != nil {
			t.Errorf("%s: %v", p.Kernels[0], err)
			continue
		}
		for _, c := range Of(p) {
			want, err := twins.run(&c)
			if err != nil {
				t.Fatal(err)
			}
			k, err := m.Kernel(c.Kernel)
			if err != nil {
				t.Error(err)
				continue
			}
			got, err := Run(d, s, k, &c)
			if err != nil {
				t.Fatal(err)
			}
			ulp, err := Compare(&c, got, want)
			if err != nil {
				t.Error(err)
			}
			worst[p.Name] = max(worst[p.Name], ulp)
		}
	}
	for name, ulp := range worst {
		if ulp > 1 {
			t.Logf("%s: %.1f ulp", name, ulp)
		}
	}
}

func load(d driver.Device, p *source.Program) (driver.Module, error) {
	if d.Info().Language == driver.PTX {
		return d.Load(p.PTX())
	}
	return d.Load(p.Text())
}
