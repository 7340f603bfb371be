package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// ErrOutOfMemory is wrapped by the errors of [Device.Alloc] and [Device.Pinned] for which the
// device or the host has no memory left.
var ErrOutOfMemory = errors.New("out of device memory")

// ErrUnsupported is wrapped by errors of a library that has no implementation for the arguments.
// The caller computes with kernels of its own instead.
var ErrUnsupported = errors.New("not supported by the library")

// A Driver is a library that was found, and its devices.
type Driver struct {
	Name    string // "cuda" or "opencl"
	Devices []Device
}

// opener is a driver that may find devices.
type opener struct {
	name string
	open func() ([]Device, error)
}

var (
	mu      sync.Mutex
	openers []opener // guarded by mu; in the order in which they are tried
)

// Register adds a driver. The init functions of packages of drivers call it.
func Register(name string, open func() ([]Device, error)) {
	mu.Lock()
	defer mu.Unlock()
	openers = append(openers, opener{name, open})
}

// Replace makes a driver the only one. Packages of tests call it.
func Replace(name string, open func() ([]Device, error)) {
	mu.Lock()
	defer mu.Unlock()
	openers = []opener{{name, open}}
}

// Open returns the first registered driver that has devices, or that of the name only unless it is
// empty. The error says in one line why each of them has none.
func Open(only string) (Driver, error) {
	mu.Lock()
	all := openers
	mu.Unlock()
	var why []string
	if len(all) == 0 {
		why = append(why, "this program was built without them (-tags gpu)")
	}
	for _, o := range all {
		if only != "" && o.name != only {
			continue
		}
		devices, err := o.open()
		if err == nil && len(devices) == 0 {
			err = errors.New("the library has no devices")
		}
		if err == nil {
			return Driver{o.name, devices}, nil
		}
		why = append(why, o.name+": "+err.Error())
	}
	if len(why) == 0 {
		why = append(why, fmt.Sprintf("there is no driver %q", only))
	}
	return Driver{}, fmt.Errorf("no GPU devices: %s", strings.Join(why, "; "))
}

// Mem is a piece of memory on a device. Base is an address or a handle of a region; Off and Size
// are in bytes.
type Mem struct {
	Base uintptr
	Off  int
	Size int
}

// Slice returns the piece of m that begins at off and has size bytes.
func (m Mem) Slice(off, size int) Mem { return Mem{m.Base, m.Off + off, size} }

// StructOf returns the argument for a value of a structure that has the fields of the C structure,
// all of fixed size and without gaps.
func StructOf(v any) Struct {
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err) // a type without a fixed size
	}
	return b
}

// Struct is an argument of a kernel that is passed by value, as a C structure of these bytes. Its
// length is a multiple of 8, and the fields are aligned as in C.
type Struct []byte

// Language is what [Device.Load] takes.
type Language int

const (
	// Source is OpenCL C.
	Source Language = iota
	// PTX is NVIDIA's assembly language.
	PTX
	// Go stands for kernels that are Go functions. Load ignores its text.
	Go
)

// Info describes a device.
type Info struct {
	Name            string
	Vendor          string
	BusID           string // address on the PCI bus, as 0000:65:00.0; empty if unknown
	Capability      [2]int // CUDA's compute capability; zero for other drivers
	Driver          string // version of the driver or of the library
	Memory          int64  // bytes in all
	LargestAlloc    int64  // bytes of the largest region
	Multiprocessors int    // multiprocessors (CUDA) or compute units (OpenCL)
	MaxGroup        int    // most work items of a group
	SharedMemory    int    // bytes that the work items of a group may share
	SubgroupSize    int    // work items that run in lockstep; 0 if unknown
	Language        Language
	Double          bool // kernels may use float64
	Unified         bool // the memory is the host's
}

// Device is one GPU.
type Device interface {
	Info() Info
	// FreeMemory returns the bytes that no process has allocated. Drivers that cannot know it
	// return all memory of the device less what this process has.
	FreeMemory() (int64, error)
	// Alloc returns new memory, whose contents are undefined. It is aligned to 256 bytes.
	Alloc(size int) (Mem, error)
	// Free releases memory that Alloc returned. The caller waits first for the work that uses it.
	Free(m Mem) error
	// Pinned returns page-locked memory of the host, from and to which copies are fast and truly
	// asynchronous. The garbage collector does not manage it.
	Pinned(size int) ([]byte, error)
	// Unpin releases memory that Pinned returned.
	Unpin(b []byte) error
	// Load compiles kernels for the device. The error contains what the compiler said.
	Load(text string, defines ...string) (Module, error)
	NewStream() (Stream, error)
	// CanCopy reports whether [Stream.CopyFrom] copies from memory of the other device.
	CanCopy(from Device) bool
	// BLAS returns the library of matrix products, or nil and the reason why there is none.
	BLAS() (BLAS, error)
	// DNN returns the library of convolutions, or nil and the reason why there is none.
	DNN() (DNN, error)
}

// Module is a set of compiled kernels.
type Module interface {
	Kernel(name string) (Kernel, error)
}

// Kernel is a function that runs on the device.
type Kernel interface {
	Name() string
}

// Stream is a queue of work that runs in order.
type Stream interface {
	// Launch runs a kernel with grid groups of block work items each. An argument is a [Mem], which
	// the kernel sees as a pointer to a region and an offset of type int64 in bytes, or an int32,
	// uint32, int64, uint64, float32, float64 or [Struct].
	Launch(k Kernel, grid, block [3]int, args ...any) error
	// ToDevice copies len(src) bytes to dst.
	ToDevice(dst Mem, src []byte) error
	// ToHost copies len(dst) bytes from src.
	ToHost(dst []byte, src Mem) error
	// Copy copies src.Size bytes within the device. The pieces do not overlap.
	Copy(dst, src Mem) error
	// CopyFrom copies src.Size bytes from another device. It waits for no stream of that device.
	CopyFrom(dst Mem, from Device, src Mem) error
	// Fill sets all bytes of dst to value.
	Fill(dst Mem, value byte) error
	// Record returns an event that is done when all work queued before it is done. Times of timed
	// events can be compared; other events cost less.
	Record(timed bool) (Event, error)
	// Wait makes work that is queued later wait for an event of any stream of the same device.
	Wait(e Event) error
	// Sync waits until all work queued before it is done.
	Sync() error
	// Close waits for the work of the stream and releases it.
	Close() error
}

// Event is a point in a stream.
type Event interface {
	// Done reports whether the stream has reached the event.
	Done() (bool, error)
	// Sync waits until the stream has reached the event.
	Sync() error
	// Since returns the time on the device between an earlier event and this one. Both are timed
	// and done.
	Since(earlier Event) (time.Duration, error)
	// Close releases the event. Streams that wait for it go on waiting.
	Close()
}
