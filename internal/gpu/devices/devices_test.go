package devices

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/internal/gpu/shadow"
	"github.com/weft-ml/weft/status"
)

func newSet(t *testing.T, n int) *Set {
	t.Helper()
	s := New(driver.Driver{Name: "host", Devices: hostgpu.Open(hostgpu.Options{Devices: n, Memory: 64 << 20})})
	t.Cleanup(s.Close)
	return s
}

func TestOptions(t *testing.T) {
	requireShadow(t)
	for name, c := range map[string]struct {
		o     Options
		gpus  []string // hardware of the devices
		limit int64    // of the first device, MiB
	}{
		"all":              {Options{Count: -1, Fraction: 1}, []string{"0", "1", "2"}, 64},
		"count":            {Options{Count: 2, Fraction: 1}, []string{"0", "1"}, 64},
		"none":             {Options{Count: 0, Visible: "x"}, nil, 0},
		"visible":          {Options{Count: -1, Visible: "2, 0", Fraction: 0.5}, []string{"2", "0"}, 32},
		"first of visible": {Options{Count: 1, Visible: "2,0", Fraction: 0.5}, []string{"2"}, 32},
		"virtual":          {Options{Count: -1, Visible: "1", Virtual: [][]float32{{10, 20}}}, []string{"1", "1"}, 10},
		"some virtual":     {Options{Count: -1, Visible: "2,1", Virtual: [][]float32{{}, {5, 6}}}, []string{"2", "1", "1"}, 64},
		"all virtual":      {Options{Count: -1, Virtual: [][]float32{{7}, {5, 6}, {1}}}, []string{"0", "1", "1", "2"}, 7},
		"what is free":     {Options{Count: 1}, []string{"0"}, 64},
	} {
		got, err := newSet(t, 3).Devices(&c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got) != len(c.gpus) {
			t.Errorf("%s: %d devices", name, len(got))
			continue
		}
		for i, d := range got {
			if want := "device: " + c.gpus[i] + ", name: software device"; !strings.HasPrefix(d.Description(), want) {
				t.Errorf("%s: device %d is %q", name, i, d.Description())
			}
			if d.Number() != i {
				t.Errorf("%s: device %d has the number %d", name, i, d.Number())
			}
		}
		if len(got) > 0 && got[0].Limit()>>20 != c.limit {
			t.Errorf("%s: the limit is %d MiB", name, got[0].Limit()>>20)
		}
	}
}

// requireShadow skips a test on systems without GPU devices.
func requireShadow(t *testing.T) {
	t.Helper()
	r, err := shadow.New(1 << 16)
	if err != nil {
		t.Skip(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWrongOptions(t *testing.T) {
	for want, c := range map[string]struct {
		o    Options
		code status.Code
	}{
		"Could not parse entry in 'visible_device_list': 'x'. visible_device_list = 0,x":                                                                                        {Options{Count: -1, Visible: "0,x"}, status.InvalidArgument},
		"'visible_device_list' listed an invalid Device id '3' but visible device count is 3":                                                                                   {Options{Count: -1, Visible: "3"}, status.InvalidArgument},
		"visible_device_list contained a duplicate entry: 1,1":                                                                                                                  {Options{Count: -1, Visible: "1,1"}, status.InvalidArgument},
		"It's invalid to set per_process_gpu_memory_fraction when virtual_devices is set.":                                                                                      {Options{Count: -1, Visible: "0", Fraction: 0.1, Virtual: [][]float32{{}}}, status.InvalidArgument},
		"Not enough GPUs to create virtual devices. num_gpus_to_use: 0 #virtual_devices: 1":                                                                                     {Options{Visible: "0", Virtual: [][]float32{{}}}, status.Unknown},
		"Not enough GPUs to create virtual devices. num_gpus_to_use: 1 #virtual_devices: 2":                                                                                     {Options{Count: 8, Visible: "0", Virtual: [][]float32{{}, {}}}, status.Unknown},
		"The number of GPUs in visible_device_list doesn't match the number of elements in the virtual_devices list. #GPUs in visible_device_list: 2 virtual_devices.size(): 1": {Options{Count: 8, Visible: "0,1", Virtual: [][]float32{{}}}, status.InvalidArgument},
		"The number of valid GPUs doesn't match the number of elements in the virtual_devices list. #valid GPUs: 3 virtual_devices.size(): 1":                                   {Options{Count: -1, Virtual: [][]float32{{1, 2}}}, status.Unknown},
		"per_process_gpu_memory_fraction is 1.5: a device has no unified memory":                                                                                                {Options{Count: -1, Fraction: 1.5}, status.InvalidArgument},
		"virtual_devices has a memory limit of -1 MiB":                                                                                                                          {Options{Count: -1, Visible: "0", Virtual: [][]float32{{-1}}}, status.InvalidArgument},
	} {
		_, err := newSet(t, 3).Devices(&c.o)
		if status.CodeOf(err) != c.code || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v (%v), want %v: %s", err, status.CodeOf(err), c.code, want)
		}
	}
}

// TestShared checks that tasks share devices, and that a device cannot be two GPUs.
func TestShared(t *testing.T) {
	requireShadow(t)
	s := newSet(t, 2)
	a, err := s.Devices(&Options{Count: 1, Fraction: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Devices(&Options{Count: -1})
	if err != nil || b[0] != a[0] || len(b) != 2 {
		t.Errorf("%d devices, shared %t, error %v", len(b), b[0] == a[0], err)
	}
	_, err = s.Devices(&Options{Count: -1, Visible: "1,0"})
	if status.CodeOf(err) != status.AlreadyExists || !strings.HasPrefix(err.Error(), "TensorFlow device (GPU:0) is being mapped to multiple devices (1 now, and 0 previously)") {
		t.Errorf("got %v", err)
	}
}
