package parsing

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "EncodeProto", Doc: "Serializes messages. sizes is the number of values of each field in each message.",
		In: []string{"sizes: int32", "values: Tinput_types"}, Out: []string{"bytes: string"},
		Attrs: []string{
			"field_names: list(string)", "message_type: string", "descriptor_source: string = 'local://'", "Tinput_types: list(type) >= 1",
		},
		Class: opdef.FilesRead, Shape: encodeProtoShape,
	}, newEncodeProto)
}

func encodeProtoShape(c *opdef.ShapeContext) error {
	var out shapefn.Shape
	for _, in := range slices.Backward(c.In[1:]) {
		in, err := opdef.WithRankAtLeast(in, 2)
		if err != nil {
			return err
		}
		if out, err = opdef.MergeShapes(shapefn.Sub(in, 0, -1), out); err != nil {
			return err
		}
	}
	c.Out[0] = out
	return nil
}

// encodeProto is the kernel of EncodeProto.
type encodeProto struct {
	names  []string
	fields []protoreflect.FieldDescriptor
	order  []int // indices of fields in the order of their numbers, in which they are written
}

func newEncodeProto(c *kernel.Construction) (kernel.Kernel, error) {
	known, err := newMessages(c.Files(), c.Attrs.String("descriptor_source"))
	if err != nil {
		return nil, err
	}
	name := c.Attrs.String("message_type")
	d, err := known.find(name)
	if err != nil {
		return nil, err
	}
	e := &encodeProto{names: c.Attrs.Strings("field_names")}
	for i, n := range e.names {
		f := field(d, n)
		if f == nil {
			return nil, status.InvalidArgumentf("Unknown field: %s in message type %s", n, name)
		}
		e.fields, e.order = append(e.fields, f), append(e.order, i)
	}
	slices.SortStableFunc(e.order, func(a, b int) int { return int(e.fields[a].Number() - e.fields[b].Number()) })
	return e, nil
}

// Compute implements kernel.Kernel.
func (e *encodeProto) Compute(ctx *kernel.Context) error {
	prefix, err := e.check(ctx)
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, prefix)
	if err != nil {
		return err
	}
	n, sizes, z := len(e.fields), tensor.Values[int32](ctx.Input(0)), tensor.Values[string](out)
	writers, width := membudget.Make[func(b []byte, at int) []byte](n), membudget.Make[int](n)
	for i, f := range e.fields {
		v := ctx.Input(1 + i)
		writers[i], width[i] = writer(f.Kind(), v), v.Dim(v.Rank()-1)
	}
	at := progress(ctx.Context())
	var b []byte
	for row := range z {
		most := 0
		for _, i := range e.order {
			most += mostBytes(ctx.Input(1+i), row*width[i], int(sizes[row*n+i]))
		}
		if err := at.Pass(most); err != nil {
			return err
		}
		if most > cap(b) { // values may share their text
			membudget.MustTake(int64(most))
			b = make([]byte, 0, most) //sizedmake:ok MustTake has asked for it
		}
		b = b[:0]
		for _, i := range e.order {
			if size := int(sizes[row*n+i]); size != 0 {
				b = appendField(b, e.fields[i], writers[i], row*width[i], max(size, 0))
			}
		}
		membudget.MustTake(int64(len(b)))
		z[row] = string(b)
	}
	return nil
}

// mostBytes returns the largest size, in bytes, of values of a field, starting at value number at.
func mostBytes(v *tensor.Tensor, at, size int) int {
	const tag, number = binary.MaxVarintLen32, binary.MaxVarintLen64 // groups have the same tag
	if size <= 0 {
		return 2 * number // of an empty list
	}
	n := (2*tag+number)*size + 2*number
	if v.DType() == tensor.String {
		for _, s := range tensor.Values[string](v)[at : at+size] {
			n += len(s)
		}
	}
	return n
}

// check checks the inputs and returns the shape of the batch.
func (e *encodeProto) check(ctx *kernel.Context) (tensor.Shape, error) {
	if len(e.fields) != ctx.NumInputs()-1 {
		return nil, status.InvalidArgumentf("Length of inputs list must match field_names")
	}
	var prefix tensor.Shape
	for i, f := range e.fields {
		v := ctx.Input(1 + i)
		switch {
		case !slices.Contains(fieldTypes[f.Kind()], v.DType()):
			return nil, status.InvalidArgumentf("Incompatible type for field %s.  Saw dtype: %v but field type is: %v",
				e.names[i], v.DType(), f.Kind())
		case v.Rank() < 2:
			return nil, status.InvalidArgumentf("Invalid shape for field %s.  Saw shape %v but it should be at least a matrix.",
				e.names[i], v.Shape())
		case i == 0:
			prefix = v.Shape()[:v.Rank()-1]
		case !v.Shape()[:v.Rank()-1].Equal(prefix):
			return nil, status.InvalidArgumentf("Values must match up to the last dimension")
		}
	}
	sizes, want := ctx.Input(0), append(slices.Clone(prefix), int64(len(e.fields)))
	if !sizes.Shape().Equal(want) {
		return nil, status.InvalidArgumentf("sizes should be batch_size + [len(field_names)].  Saw: %v but expected: %v", sizes.Shape(), want)
	}
	for i := range e.fields {
		v := ctx.Input(1 + i)
		most := v.Dim(v.Rank() - 1)
		for row := range int(prefix.NumElements()) {
			if size := tensor.Values[int32](sizes)[row*len(e.fields)+i]; int(size) > most {
				return nil, status.InvalidArgumentf(
					"Size to write must not be larger than value tensor; but saw: %d > %d at message %d field %d", size, most, row, i)
			}
		}
	}
	return prefix, nil
}

// appendField appends size values of a field, starting at value number at.
func appendField(b []byte, f protoreflect.FieldDescriptor, write func(b []byte, at int) []byte, at, size int) []byte {
	if f.IsPacked() {
		var list []byte
		for i := range size {
			list = write(list, at+i)
		}
		return protowire.AppendBytes(protowire.AppendTag(b, f.Number(), protowire.BytesType), list)
	}
	for i := range size {
		b = write(protowire.AppendTag(b, f.Number(), protowire.Type(wireOf(f.Kind()))), at+i)
		if f.Kind() == protoreflect.GroupKind {
			b = protowire.AppendTag(b, f.Number(), protowire.EndGroupType)
		}
	}
	return b
}

// writer returns the function that appends values of a tensor as values of a field.
func writer(k protoreflect.Kind, v *tensor.Tensor) func(b []byte, at int) []byte {
	switch v.DType() {
	case tensor.Float64:
		x := tensor.Values[float64](v)
		if k == protoreflect.FloatKind {
			return func(b []byte, at int) []byte { return protowire.AppendFixed32(b, math.Float32bits(float32(x[at]))) }
		}
		return func(b []byte, at int) []byte { return protowire.AppendFixed64(b, math.Float64bits(x[at])) }
	case tensor.Float32:
		x := tensor.Values[float32](v)
		return func(b []byte, at int) []byte { return protowire.AppendFixed32(b, math.Float32bits(x[at])) }
	case tensor.Int64:
		return intWriter(k, tensor.Values[int64](v))
	case tensor.Int32:
		return intWriter(k, tensor.Values[int32](v))
	case tensor.Uint64:
		return intWriter(k, tensor.Values[uint64](v))
	case tensor.Uint32:
		return intWriter(k, tensor.Values[uint32](v))
	case tensor.Bool:
		x := tensor.Values[bool](v)
		return func(b []byte, at int) []byte { return protowire.AppendVarint(b, protowire.EncodeBool(x[at])) }
	}
	x := tensor.Values[string](v)
	if k == protoreflect.GroupKind {
		return func(b []byte, at int) []byte { return append(b, x[at]...) }
	}
	return func(b []byte, at int) []byte { return protowire.AppendString(b, x[at]) }
}

func intWriter[T int32 | int64 | uint32 | uint64](k protoreflect.Kind, x []T) func(b []byte, at int) []byte {
	switch k {
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return func(b []byte, at int) []byte { return protowire.AppendFixed64(b, uint64(x[at])) }
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return func(b []byte, at int) []byte { return protowire.AppendFixed32(b, uint32(x[at])) }
	case protoreflect.Sint32Kind:
		return func(b []byte, at int) []byte {
			return protowire.AppendVarint(b, uint64(uint32(protowire.EncodeZigZag(int64(int32(x[at]))))))
		}
	case protoreflect.Sint64Kind:
		return func(b []byte, at int) []byte { return protowire.AppendVarint(b, protowire.EncodeZigZag(int64(x[at]))) }
	case protoreflect.Int32Kind, protoreflect.EnumKind:
		return func(b []byte, at int) []byte { return protowire.AppendVarint(b, uint64(int64(int32(x[at])))) }
	case protoreflect.Uint32Kind:
		return func(b []byte, at int) []byte { return protowire.AppendVarint(b, uint64(uint32(x[at]))) }
	default:
		return func(b []byte, at int) []byte { return protowire.AppendVarint(b, uint64(x[at])) }
	}
}
