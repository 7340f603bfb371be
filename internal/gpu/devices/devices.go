// Package devices opens the GPUs of a process for its tasks, as the options of their sessions say.
//
// A GPU is opened once. All tasks of the process share its memory and streams, and the options of
// the first one that uses it apply, as in TensorFlow.
package devices

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/status"
)

// Options are the GPU options of a session.
type Options struct {
	// Task is the name of the task, for errors.
	Task string
	// Count is the largest number of GPUs to use; negative for all.
	Count int
	// Visible lists the numbers of the GPUs in the order of the devices, separated by commas; empty
	// for all.
	Visible string
	// Fraction is the part of a GPU's memory that its devices may use; 0 for nearly all that is
	// free.
	Fraction float64
	// Growth takes memory from the driver as it is needed.
	Growth bool
	// Virtual has the memory limits of the devices of each used GPU, in MiB; nil for one device for
	// each.
	Virtual [][]float32
	// NoRetry fails an allocation at once instead of waiting for memory that others free.
	NoRetry bool
}

// Set is the GPUs of a driver. It is safe for concurrent use.
type Set struct {
	driver driver.Driver

	mu   sync.Mutex
	open map[key]*device.Device // guarded by mu
}

// key is a device: one part of a GPU.
type key struct{ gpu, part int }

// New returns the set of a driver's GPUs. Close closes the devices.
func New(d driver.Driver) *Set { return &Set{driver: d, open: map[key]*device.Device{}} }

// found holds the sets that Find has opened.
var found struct {
	mu   sync.Mutex
	sets map[string]*Set // by the requested name; guarded by mu
}

// Find returns the GPUs of this process: those of the first registered driver that has some, or of
// the driver with the given name. The error says in one line why there are none. They stay open
// until the process ends.
func Find(name string) (*Set, error) {
	found.mu.Lock()
	defer found.mu.Unlock()
	if s := found.sets[name]; s != nil {
		return s, nil
	}
	d, err := driver.Open(name)
	if err != nil {
		return nil, err
	}
	if found.sets == nil {
		found.sets = map[string]*Set{}
	}
	s := found.sets[d.Name]
	if s == nil {
		s = New(d)
	}
	found.sets[name], found.sets[d.Name] = s, s
	return s, nil
}

// Driver returns the name of the driver, and the number of its GPUs.
func (s *Set) Driver() (name string, gpus int) { return s.driver.Name, len(s.driver.Devices) }

// Close closes all devices. No task may use them.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, d := range s.open {
		d.Close()
		delete(s.open, k)
	}
}

// Devices returns the devices that the options describe, in the order of their numbers.
func (s *Set) Devices(o *Options) ([]*device.Device, error) {
	gpus, err := s.used(o)
	if err != nil {
		return nil, err
	}
	if o.Fraction < 0 || o.Fraction > 1 {
		return nil, status.InvalidArgumentf("per_process_gpu_memory_fraction is %g: a device has no unified memory, so it must be between 0 and 1",
			o.Fraction)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*device.Device
	for i, gpu := range gpus {
		parts := []float32{0}
		if len(o.Virtual) > 0 && len(o.Virtual[i]) > 0 {
			parts = o.Virtual[i]
		}
		for part, limit := range parts {
			d, err := s.openLocked(key{gpu, part}, len(out), limit, o)
			if err != nil {
				return nil, err
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// retry is how long an allocation waits for memory that others free; it is TensorFlow's time.
const retry = 10 * time.Second

// openLocked returns a device, which it opens if it is not open.
func (s *Set) openLocked(k key, number int, limit float32, o *Options) (*device.Device, error) {
	for other, d := range s.open {
		if d.Number() == number && other != k {
			return nil, status.AlreadyExistsf("TensorFlow device (GPU:%d) is being mapped to multiple devices (%d now, and %d previously), "+
				"which is not supported. This may be the result of providing different GPU configurations (ConfigProto.gpu_options, for example "+
				"different visible_device_list) when creating multiple Sessions in the same process. This is not currently supported, see "+
				"https://github.com/tensorflow/tensorflow/issues/19083", number, k.gpu, other.gpu)
		}
	}
	if d := s.open[k]; d != nil {
		return d, nil
	}
	gpu := s.driver.Devices[k.gpu]
	memory := int64(limit) << 20
	if limit == 0 {
		var err error
		if memory, err = memoryOf(gpu, o.Fraction); err != nil {
			return nil, err
		}
	}
	wait := retry
	if o.NoRetry {
		wait = 0
	}
	d, err := device.Open(gpu, device.Options{
		Name: fmt.Sprintf("%s/device:GPU:%d", o.Task, number), Number: number, GPU: k.gpu, Memory: memory, Growth: o.Growth, Retry: wait,
	})
	if err == nil {
		s.open[k] = d
	}
	return d, err
}

// visible returns the numbers of the GPUs in a list.
func (s *Set) visible(list string) ([]int, error) {
	n := len(s.driver.Devices)
	if list == "" {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	var out []int
	for text := range strings.SplitSeq(list, ",") {
		i, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil {
			return nil, status.InvalidArgumentf("Could not parse entry in 'visible_device_list': '%s'. visible_device_list = %s", text, list)
		}
		if i < 0 || int(i) >= n {
			return nil, status.InvalidArgumentf("'visible_device_list' listed an invalid Device id '%d' but visible device count is %d", i, n)
		}
		if slices.Contains(out, int(i)) {
			return nil, status.InvalidArgumentf("visible_device_list contained a duplicate entry: %s", list)
		}
		out = append(out, int(i))
	}
	return out, nil
}

// used returns the numbers of the GPUs of the devices.
func (s *Set) used(o *Options) ([]int, error) {
	var visible []int
	if o.Count != 0 {
		var err error
		if visible, err = s.visible(o.Visible); err != nil {
			return nil, err
		}
	}
	gpus := visible
	if o.Count >= 0 {
		gpus = gpus[:min(o.Count, len(gpus))]
	}
	return gpus, o.checkVirtual(len(gpus), len(visible))
}

// checkVirtual checks the options of virtual devices on some of the visible GPUs. The errors are
// TensorFlow's.
func (o *Options) checkVirtual(used, visible int) error {
	n := len(o.Virtual)
	switch {
	case n == 0:
		return nil
	case o.Fraction > 0:
		return status.InvalidArgumentf("It's invalid to set per_process_gpu_memory_fraction when virtual_devices is set.")
	case used < n:
		return status.Errorf(status.Unknown, "Not enough GPUs to create virtual devices. num_gpus_to_use: %d #virtual_devices: %d", used, n)
	case o.Visible != "" && visible != n:
		return status.InvalidArgumentf("The number of GPUs in visible_device_list doesn't match the number of elements in the virtual_devices "+
			"list. #GPUs in visible_device_list: %d virtual_devices.size(): %d", visible, n)
	case visible != n:
		return status.Errorf(status.Unknown, "The number of valid GPUs doesn't match the number of elements in the virtual_devices list. "+
			"#valid GPUs: %d virtual_devices.size(): %d", visible, n)
	}
	for _, parts := range o.Virtual {
		for _, limit := range parts {
			if limit <= 0 {
				return status.InvalidArgumentf("virtual_devices has a memory limit of %g MiB", limit)
			}
		}
	}
	return nil
}

// memoryOf returns the memory that the devices of a GPU may use, in bytes: a part of all, or what
// is free less what the driver needs for itself. The sizes are TensorFlow's.
func memoryOf(d driver.Device, fraction float64) (int64, error) {
	info := d.Info()
	if fraction > 0 {
		return int64(float64(info.Memory) * fraction), nil
	}
	free, err := d.FreeMemory()
	if err != nil {
		return 0, status.Internalf("cannot ask %s for its free memory: %v", info.Name, err)
	}
	reserve := int64(225)
	if free >= 2<<30 {
		switch major := info.Capability[0]; {
		case major <= 6:
			reserve = 500
		case major == 7:
			reserve = 1050
		case major == 8:
			reserve = 1536
		default:
			reserve = 1800
		}
	}
	if info.Unified {
		reserve = 0
	}
	if reserve<<20 < free {
		free -= reserve << 20
	}
	return free, nil
}
