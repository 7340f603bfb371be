//go:build gpu

package cuda

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/weft-ml/weft/internal/gpu/dl"
	"github.com/weft-ml/weft/internal/gpu/driver"
)

// Options of the compiler of PTX.
const (
	jitErrorLog     = 5
	jitErrorLogSize = 6
)

// compilation is the room for the options of the compiler of PTX, and for what it says.
type compilation struct {
	options [2]uint32
	values  [2]uintptr
	log     [8 << 10]byte
}

type module struct {
	device *device
	handle uintptr
}

// Load takes PTX. The library's compiler has no macros, so there are no defines.
func (d *device) Load(text string, defines ...string) (driver.Module, error) {
	if len(defines) > 0 {
		return nil, fmt.Errorf("CUDA: PTX has no defines: %v", defines)
	}
	if !strings.Contains(text, ".version") {
		return nil, fmt.Errorf("CUDA: text of %d bytes is not PTX", len(text))
	}
	d.enter()
	defer leave()
	m := &module{device: d}
	image, c := dl.CString(text), &compilation{options: [2]uint32{jitErrorLog, jitErrorLogSize}}
	c.values = [2]uintptr{
		uintptr(unsafe.Pointer(&c.log[0])), // on the heap: a part of c, which is passed to call
		uintptr(len(c.log)),
	}
	err := call("cuModuleLoadData", cu.ModuleLoadDataEx, uintptr(unsafe.Pointer(&m.handle)), uintptr(unsafe.Pointer(&image[0])),
		uintptr(len(c.options)), uintptr(unsafe.Pointer(&c.options[0])), uintptr(unsafe.Pointer(&c.values[0])))
	if said := dl.Cut(c.log[:]); err != nil && said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

type kernel struct {
	device *device
	name   string
	handle uintptr
}

func (m *module) Kernel(name string) (driver.Kernel, error) {
	m.device.enter()
	defer leave()
	cname := dl.CString(name)
	k := &kernel{device: m.device, name: name}
	if err := call("cuModuleGetFunction "+name, cu.ModuleGetFunction, uintptr(unsafe.Pointer(&k.handle)), m.handle,
		uintptr(unsafe.Pointer(&cname[0]))); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *kernel) Name() string { return k.name }
