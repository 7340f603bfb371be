package resource

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/numeric/murmur"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Step is the name of the container for the resources of a step.
const Step = "_step"

// Find returns the resource that input i names: by a handle, or by a vector of two strings
// (container and name), possibly through a reference.
func Find[T kernel.Resource](ctx *kernel.Context, i int) (T, error) {
	var none T
	return FindAs[T](ctx, i, none.TypeName())
}

// FindAs is [Find] for a resource that the caller knows by an interface and its type name.
func FindAs[T any](ctx *kernel.Context, i int, typeName string) (t T, err error) {
	found, err := find(ctx, i, typeName)
	if err != nil {
		return t, err
	}
	t, ok := found.(T)
	if !ok {
		return t, status.InvalidArgumentf("input %d names a %T, want %T", i, found, t)
	}
	return t, nil
}

func find(ctx *kernel.Context, i int, typeName string) (any, error) {
	if v := ctx.InputRef(i); v != nil {
		names := v.Load()
		defer names.Release()
		return findNamed(ctx, &names, typeName)
	}
	if t := ctx.Input(i); t.DType() == tensor.String {
		return findNamed(ctx, t, typeName)
	}
	h, err := Handle(ctx, i)
	if err != nil {
		return nil, err
	}
	if h.TypeName != "" && h.TypeName != typeName {
		return nil, status.InvalidArgumentf("Trying to access a handle's resource using the wrong type. The handle points to a "+
			"resource (name '%s') of type '%s' (hash code %d) but you are trying to access the resource as type '%s' (hash code %d)",
			h.Name, readable(h.TypeName), h.HashCode, readable(typeName), murmur.Sum64(typeName))
	}
	if h.Resource != nil {
		return h.Resource, nil
	}
	return lookup(ctx, h.Container, typeName, h.Name)
}

// Handle returns the handle at input i. The resource must be on the kernel's device.
func Handle(ctx *kernel.Context, i int) (*tensor.Handle, error) {
	t := ctx.Input(i)
	if t.NumElements() == 0 {
		return nil, status.InvalidArgumentf("Empty resource handle")
	}
	h := tensor.Values[*tensor.Handle](t)[0]
	if h == nil {
		return nil, status.InvalidArgumentf("resource input is not a handle")
	}
	if h.Device != ctx.Device.Name {
		return nil, status.InvalidArgumentf("Trying to access resource %s located in device %s from device %s",
			h.Name, h.Device, ctx.Device.Name)
	}
	return h, nil
}

func findNamed(ctx *kernel.Context, names *tensor.Tensor, typeName string) (any, error) {
	if names.DType() != tensor.String || names.NumElements() != 2 {
		return nil, status.InvalidArgumentf("Resource handle must have 2 elements, but had shape: %v", names.Shape())
	}
	s := tensor.Values[string](names)
	return lookup(ctx, s[0], typeName, s[1])
}

func lookup(ctx *kernel.Context, container, typeName, name string) (any, error) {
	if container == Step {
		return ctx.Step.Resources.Lookup("", typeName, name)
	}
	return ctx.Device.Resources.Lookup(container, typeName, name)
}

// readable converts the mangled name of a C++ class, unless it is a template, to its form in source
// code.
func readable(mangled string) string {
	rest, ok := strings.CutPrefix(mangled, "N")
	if !ok {
		return mangled
	}
	var parts []string
	for rest != "E" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > len(rest)-digits {
			return mangled
		}
		part := rest[digits : digits+n]
		if strings.HasPrefix(part, "_GLOBAL__N_") {
			part = "(anonymous namespace)"
		}
		//sizedmake:ok parts of the name of a type
		parts = append(parts, part)
		rest = rest[digits+n:]
	}
	//sizedmake:ok parts of the name of a type
	return strings.Join(parts, "::")
}
