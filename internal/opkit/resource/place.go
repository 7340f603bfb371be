// Package resource creates and finds resources: state that outlives a step, such as queues, tables
// and readers. An operation names its resource by a handle or, in older graphs, by a reference to
// two strings, container and name.
package resource

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/numeric/murmur"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Place is the location of a resource: its container and its name.
type Place struct {
	Container, Name string
	// Private is set if no other node can name the resource. It is deleted with the kernel that
	// created it.
	Private bool
}

var lastPrivate atomic.Int64

// PlaceOf returns the place of a node's resource according to its attributes container and
// shared_name. Without a shared name, the name is that of the node if byNode is set, or else a
// unique one.
func PlaceOf(c *kernel.Construction, byNode bool) (Place, error) {
	p := Place{Container: c.Attrs.String("container"), Name: c.Attrs.String("shared_name")}
	if err := CheckContainer(p.Container); err != nil {
		return p, err
	}
	if p.Container == "" {
		p.Container = c.Device.Resources.DefaultContainer()
	}
	switch {
	case strings.HasPrefix(p.Name, "_"):
		return p, status.InvalidArgumentf("shared_name cannot start with '_':%s", p.Name)
	case p.Name == "" && byNode:
		p.Name = c.Node
	case p.Name == "":
		p.Name, p.Private = "_"+strconv.FormatInt(lastPrivate.Add(1)-1, 10)+"_"+c.Node, true
	}
	return p, nil
}

// CheckContainer returns an error unless TensorFlow allows the name for a container. The empty name
// is allowed.
func CheckContainer(name string) error {
	for i := range len(name) {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.'
		if !alnum && (i == 0 || c != '-' && c != '/') {
			return status.InvalidArgumentf("container contains invalid characters: %s", name)
		}
	}
	return nil
}

// Handle returns a handle to the resource of the given type at p.
func (p Place) Handle(device *kernel.Device, typeName string, elems ...tensor.HandleElem) *tensor.Handle {
	return &tensor.Handle{
		Device: device.Name, Container: p.Container, Name: p.Name,
		HashCode: murmur.Sum64(typeName), TypeName: typeName, Elems: elems,
	}
}
