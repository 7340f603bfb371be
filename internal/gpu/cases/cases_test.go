package cases

import (
	"testing"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/internal/gpu/source"
	_ "github.com/weft-ml/weft/internal/gpu/twins"
	_ "github.com/weft-ml/weft/kernels"
)

// bench is a device with a stream.
type bench struct {
	d driver.Device
	s driver.Stream
	m driver.Module
}

func host(t testing.TB) *bench {
	t.Helper()
	d := hostgpu.Open(hostgpu.Options{Devices: 1})[0]
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return &bench{d, s, m}
}

func (b *bench) run(c *Case) ([][]byte, error) {
	k, err := b.m.Kernel(c.Kernel)
	if err != nil {
		return nil, err
	}
	return Run(b.d, b.s, k, c)
}

// TestTwins runs every case on the twins.
func TestTwins(t *testing.T) {
	b, kernels := host(t), 0
	for _, p := range source.Programs() {
		kernels += len(p.Kernels)
		for _, c := range Of(p) {
			if _, err := b.run(&c); err != nil {
				t.Errorf("%v: %v", &c, err)
				b = host(t)
			}
		}
	}
	if kernels < 1000 {
		t.Errorf("%d kernels", kernels)
	}
}
