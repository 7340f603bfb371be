package kernel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Types of devices in registrations of kernels.
const (
	CPU = "CPU"
	GPU = "GPU"
	// DefaultDevice marks kernels that every device uses for which no other kernel matches.
	DefaultDevice = "DEFAULT"
	// Host marks kernels that compute in the memory of the host for nodes on a GPU, with element
	// types for which there is no CPU kernel. No node is placed on such a device.
	Host = "HOST"
)

// Op is a registered operation with its kernels. Operations that only the executor or the master
// runs have none.
type Op struct {
	Def     opdef.Def
	Kernels []Impl
}

// Impl is a kernel for one device type and some element types.
type Impl struct {
	Device   string       // type of device; CPU if empty
	Types    []Constraint // all of them must hold
	Priority int          // the matching kernel with the highest priority is used
	Label    string       // for nodes with this value of the attribute _kernel only
	// Host lists the arguments in the memory of the host, for a device with memory of its own.
	Host []string
	New  New
	rows *rows // kernels of ByType, expanded when the operation is first looked up
}

// rows holds the kernels of a table, selected by an attribute.
type rows struct {
	attr  string
	table Table
}

// Constraint lists the allowed values of an attribute of kind type, or of all elements of one of
// kind list(type).
type Constraint struct {
	Attr  string
	Types []tensor.DType
}

// OfType returns a constraint of an attribute to some types.
func OfType(attr string, types ...tensor.DType) Constraint { return Constraint{attr, types} }

// Table maps element types to constructors of kernels.
type Table map[tensor.DType]New

// ByType returns the kernels in a table, selected by the named attribute. The table must not be
// changed afterwards.
func ByType(attr string, table Table) []Impl { return []Impl{{rows: &rows{attr, table}}} }

// ForTypes returns one kernel for several element types of an attribute.
func ForTypes(attr string, n New, types ...tensor.DType) []Impl {
	return []Impl{{Types: []Constraint{{attr, types}}, New: n}}
}

// Any returns one kernel for all attributes.
func Any(n New) []Impl { return []Impl{{New: n}} }

// Matches reports whether the kernel supports the attributes.
func (i *Impl) Matches(attrs opdef.Attrs) bool {
	if label, _ := attrs["_kernel"].(string); label != i.Label {
		return false
	}
	for _, c := range i.Types {
		switch v := attrs[c.Attr].(type) {
		case tensor.DType:
			if !slices.Contains(c.Types, v) {
				return false
			}
		case []tensor.DType:
			for _, t := range v {
				if !slices.Contains(c.Types, t) {
					return false
				}
			}
		}
	}
	return true
}

// Registry holds operations by name. Operations can be registered until the first look-up.
type Registry struct {
	mu     sync.Mutex // guards frozen and the writing of ops and more
	frozen bool
	ops    map[string]*registered   // read-only once frozen
	more   []func(op string) []Impl // see Extend; read-only once frozen
}

// registered is an operation. Its definition is parsed, and its kernels are listed, when they are
// first needed. That keeps the start short: there are more than a thousand operations with
// thousands of kernels.
type registered struct {
	Op
	parse  sync.Once
	parsed *opdef.Op
	list   sync.Once
	listed []Impl
}

// kernels returns all kernels in order of registration. Those of a table are in order of their
// types. The kernels that more returns come last.
func (r *registered) kernels(more []func(op string) []Impl) []Impl {
	r.list.Do(func() {
		for i := range r.Op.Kernels {
			k := r.Op.Kernels[i]
			k.Device = cmp.Or(k.Device, CPU)
			if k.rows == nil {
				r.listed = append(r.listed, k)
				continue
			}
			from := *k.rows
			k.rows = nil
			for _, dtype := range slices.Sorted(maps.Keys(from.table)) {
				k.Types, k.New = []Constraint{OfType(from.attr, dtype)}, from.table[dtype]
				r.listed = append(r.listed, k)
			}
		}
		for _, f := range more {
			r.listed = append(r.listed, f(r.Def.Name)...)
		}
	})
	return r.listed
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{ops: make(map[string]*registered, 1<<11)} }

// Default is the registry that the init functions of kernel families fill.
var Default = NewRegistry()

// Register adds an operation to the default registry.
func Register(op Op) { Default.Register(op) }

// RegisterFunc adds an operation with one stateless kernel for all attributes to the default
// registry.
func RegisterFunc(def opdef.Def, f Func) { RegisterNew(def, Stateless(f)) }

// RegisterNew adds an operation whose kernel n constructs, whatever the attributes, to the default
// registry.
func RegisterNew(def opdef.Def, n New) { Register(Op{Def: def, Kernels: Any(n)}) }

// Register adds an operation. It panics on errors in source code: a duplicate name, missing
// documentation, a missing shape function, or a call after the first look-up.
func (r *Registry) Register(op Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := op.Def.Name
	switch {
	case r.frozen:
		panic("kernel: " + name + " is registered after the first look-up")
	case name == "" || op.Def.Doc == "":
		panic(fmt.Sprintf("kernel: operation %q has no name or no documentation", name))
	case op.Def.Shape == nil && len(op.Def.Out) > 0:
		panic("kernel: " + name + " has no shape function")
	case r.ops[name] != nil:
		panic("kernel: " + name + " is registered twice")
	}
	r.ops[name] = &registered{Op: op}
}

func (r *Registry) lookup(name string) *registered {
	r.mu.Lock()
	r.frozen = true
	r.mu.Unlock()
	return r.ops[name]
}

// LookupOp returns the operation of the given name. It implements opdef.Lookup.
func (r *Registry) LookupOp(name string) (*opdef.Op, bool) {
	reg := r.lookup(name)
	if reg == nil {
		return nil, false
	}
	reg.parse.Do(func() {
		op, err := reg.Def.Parse()
		if err != nil {
			panic("kernel: " + err.Error())
		}
		reg.parsed = op
	})
	return reg.parsed, true
}

// Names returns the names of all operations in order.
func (r *Registry) Names() []string {
	r.lookup("")
	return slices.Sorted(maps.Keys(r.ops))
}

// Kernels returns all kernels of an operation, in order of registration.
func (r *Registry) Kernels(op string) []Impl {
	if reg := r.lookup(op); reg != nil {
		return reg.kernels(r.more)
	}
	return nil
}

// Extend adds kernels for other types of devices. The function is called once for each operation,
// when the kernels of the operation are first needed. It must not look up that operation in the
// registry. The kernels have no tables of types.
func (r *Registry) Extend(kernels func(op string) []Impl) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.frozen {
		panic("kernel: the registry is extended after the first look-up")
	}
	r.more = append(r.more, kernels)
}

// Find returns the kernel of an operation for a device type and attributes, or nil if there is
// none.
func (r *Registry) Find(op, deviceType string, attrs opdef.Attrs) *Impl {
	return Best(r.Kernels(op), deviceType, attrs)
}

// Best returns the kernel for a device type and attributes, or nil if there is none. Of several it
// is the one with the highest priority. Kernels for [DefaultDevice] are used if there is none for
// the type.
func Best(kernels []Impl, deviceType string, attrs opdef.Attrs) *Impl {
	var best *Impl
	for i := range kernels {
		k := &kernels[i]
		if k.Serves(deviceType) && k.Matches(attrs) && (best == nil || k.precedes(best)) {
			best = k
		}
	}
	return best
}

// Serves reports whether the kernel can run on devices of a type. CPUs have kernels of their own
// for everything.
func (i *Impl) Serves(deviceType string) bool {
	return i.Device == deviceType || i.Device == DefaultDevice && deviceType != CPU
}

// precedes reports whether the kernel is used where both match.
func (i *Impl) precedes(other *Impl) bool {
	if own := i.Device != DefaultDevice; own != (other.Device != DefaultDevice) {
		return own
	}
	return i.Priority > other.Priority
}

// Def returns the definition of an operation as written, for the generator of builders.
func (r *Registry) Def(op string) (opdef.Def, bool) {
	if reg := r.lookup(op); reg != nil {
		return reg.Def, true
	}
	return opdef.Def{}, false
}
