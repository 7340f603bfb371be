package parsing

import (
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "DecodeProtoV2",
		Doc: "Extracts fields from serialized messages: the number of values of each field in " +
			"each message, and the values, padded with the field's default value.",
		In: []string{"bytes: string"}, Out: []string{"sizes: int32", "values: output_types"},
		Attrs: []string{
			"message_type: string", "field_names: list(string)", "output_types: list(type) >= 0",
			"descriptor_source: string = 'local://'", "message_format: string = 'binary'", "sanitize: bool = false",
		},
		Class: opdef.FilesRead,
		Shape: func(c *opdef.ShapeContext) error {
			c.SetAll(shapefn.Concat(c.In[0], shapefn.Of(shapefn.Unknown)))
			c.Out[0] = shapefn.Concat(c.In[0], shapefn.Of(int64(len(c.Out)-1)))
			return nil
		},
	}, newDecodeProto)
}

// decodeProto is the kernel of DecodeProtoV2.
type decodeProto struct {
	fields   []protoField // ordered by number
	byNumber map[int]int  // index in fields of the first field with a number
	types    *dynamicpb.Types
	message  protoreflect.MessageDescriptor
	text     bool
	again    bool // whether messages are reserialized before they are read, to validate them
}

type protoField struct {
	protoreflect.FieldDescriptor
	output int // index of the output after sizes
	wire   int
}

func newDecodeProto(c *kernel.Construction) (kernel.Kernel, error) {
	known, err := newMessages(c.Files(), c.Attrs.String("descriptor_source"))
	if err != nil {
		return nil, err
	}
	name := c.Attrs.String("message_type")
	d := &decodeProto{byNumber: map[int]int{}, types: dynamicpb.NewTypes(known.files)}
	if d.message, err = known.find(name); err != nil {
		return nil, err
	}
	names, types := c.Attrs.Strings("field_names"), c.Attrs.Types("output_types")
	if len(names) != len(types) {
		return nil, status.InvalidArgumentf("field_names and output_types attributes must have the same length")
	}
	for i, n := range names {
		f := field(d.message, n)
		if f == nil {
			f = known.extension(d.message, n)
		}
		if f == nil {
			return nil, status.InvalidArgumentf("Unknown field: %s in message type %s", n, name)
		}
		if !slices.Contains(fieldTypes[f.Kind()], types[i]) {
			return nil, status.InvalidArgumentf("Unexpected output type for %s: %s to %s",
				strings.TrimPrefix(string(f.FullName()), ownPrefix), memoryName(f.Kind()), types[i].Enum())
		}
		d.fields = append(d.fields, protoField{f, i, wireOf(f.Kind())})
	}
	slices.SortStableFunc(d.fields, func(a, b protoField) int { return int(a.Number() - b.Number()) })
	for i, f := range slices.Backward(d.fields) {
		d.byNumber[int(f.Number())] = i
	}
	format := c.Attrs.String("message_format")
	if format != "binary" && format != "text" {
		return nil, status.InvalidArgumentf("format must be one of binary or text")
	}
	d.text, d.again = format == "text", c.Attrs.Bool("sanitize")
	return d, nil
}

// Compute implements kernel.Kernel.
func (d *decodeProto) Compute(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.NumElements() < 1 {
		return status.InvalidArgumentf("Bufs argument must contain at least one value")
	}
	all := tensor.Values[string](in)
	at := progress(ctx.Context())
	if d.text || d.again {
		all = membudget.AppendAll(nil, all...)
		for i, s := range all {
			var err error
			if err = at.Pass(len(s)); err == nil {
				all[i], err = d.rewrite(s)
			}
			if err != nil {
				return err
			}
		}
	}
	sizes, err := ctx.Allocate(0, append(slices.Clone(in.Shape()), int64(len(d.fields))))
	if err != nil {
		return err
	}
	counts, most := tensor.Values[int32](sizes), membudget.Make[int](len(d.fields))
	for i := range most {
		most[i] = 1 // so that a singular field has its default value
	}
	for i, s := range all {
		if err := at.Pass(len(s)); err != nil {
			return err
		}
		c := counter{d.fields, membudget.Make[int](len(d.fields))}
		if err := d.walk(message(s), &c); err != nil {
			return err
		}
		for j, n := range c.counts {
			counts[i*len(d.fields)+d.fields[j].output] = int32(n)
			most[j] = max(most[j], n)
		}
	}
	sinks := membudget.Make[sink](len(d.fields))
	for j, f := range d.fields {
		out, err := ctx.Allocate(1+f.output, append(slices.Clone(in.Shape()), int64(most[j])))
		if err != nil {
			return err
		}
		sinks[j] = newSink(out, f)
	}
	for i, s := range all {
		if err := at.Pass(len(s)); err != nil {
			return err
		}
		c := collector{d.fields, sinks, most, membudget.Make[int](len(d.fields)), i}
		if err := d.walk(message(s), &c); err != nil {
			return err
		}
		for j := range d.fields {
			sinks[j].fill(i*most[j]+c.next[j], (i+1)*most[j])
		}
	}
	return nil
}

// rewrite parses a message and returns it in canonical binary form.
func (d *decodeProto) rewrite(s string) (string, error) {
	m := dynamicpb.NewMessage(d.message)
	const copies = 3 // one of s and two of the result, which is about as long
	membudget.MustTake(copies * int64(len(s)))
	if d.text {
		membudget.MustTake(protomem.TextMemory(s))
		if (prototext.UnmarshalOptions{Resolver: d.types}).Unmarshal([]byte(s), m) != nil {
			return "", status.DataLossf("Unable to parse text protobuf")
		}
	} else {
		b := []byte(s)
		protomem.MustTake(d.message, b)
		if (proto.UnmarshalOptions{Resolver: d.types}).Unmarshal(b, m) != nil {
			return "", status.DataLossf("Unable to parse binary protobuf")
		}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return "", status.DataLossf("Unable to reserialize text proto as binary")
	}
	return string(b), nil
}

// visitor receives the values of a message's fields; i is the index of the field among the
// requested ones.
type visitor interface {
	number(i int, raw uint64)
	text(i int, s message)
	packed(i int, list message) error
}

// walk reads a message. It skips fields that are not requested or whose wire type differs from the
// schema.
func (d *decodeProto) walk(m message, v visitor) error {
	for m != "" {
		t, ok := m.varint()
		t = uint64(uint32(t))
		if !ok || t == 0 || t&7 == wireGroupEnd {
			return status.DataLossf("CountFields: Failed to consume entire buffer")
		}
		i, asked := d.byNumber[int(t>>3)]
		if !asked {
			if t>>3 == 0 || !m.skipAny(t, maxGroups) {
				return status.DataLossf("Failed skipping unrequested field")
			}
			continue
		}
		switch f, wire := d.fields[i], int(t&7); {
		case wire == wireBytes && f.wire != wireBytes:
			size, ok := m.varint()
			if !ok {
				return status.DataLossf("CollectField: Failed reading packed size")
			}
			list, ok := m.take(size)
			if !ok {
				return status.DataLossf("ReadPackedValues: Skipping packed field failed")
			}
			if err := v.packed(i, list); err != nil {
				return err
			}
		case wire != f.wire:
			if !m.skipAny(t, maxGroups) {
				return status.DataLossf("CollectField: Failed skipping malformed field")
			}
		default:
			if !m.visit(i, t, v) {
				return status.DataLossf("ReadValue: Failed skipping field when counting")
			}
		}
	}
	return nil
}

// visit consumes a value of wire type t, which matches the schema.
func (m *message) visit(i int, t uint64, v visitor) bool {
	switch t & 7 {
	case wireBytes:
		b, ok := m.block()
		if ok {
			v.text(i, b)
		}
		return ok
	case wireGroup:
		before := *m
		if !m.skipAny(t, maxGroups) {
			return false
		}
		membudget.MustTake(int64(len(before) - len(*m))) // of a copy
		v.text(i, message(protowire.AppendVarint(nil, t))+before[:len(before)-len(*m)])
		return true
	}
	raw, ok := m.raw(int(t & 7))
	if ok {
		v.number(i, raw)
	}
	return ok
}

// raw consumes a number of a wire type.
func (m *message) raw(wire int) (uint64, bool) {
	size := uint64(8)
	switch wire {
	case wireVarint:
		return m.varint()
	case wireFixed4:
		size = 4
	}
	b, ok := m.take(size)
	if !ok {
		return 0, false
	}
	v := uint64(0)
	for i := range b {
		v |= uint64(b[i]) << (8 * i)
	}
	return v, true
}

// counter counts the values of fields.
type counter struct {
	fields []protoField
	counts []int
}

func (c *counter) number(i int, _ uint64) {
	if c.counts[i] == 0 || c.fields[i].IsList() {
		c.counts[i]++
	}
}

func (c *counter) text(i int, _ message) { c.number(i, 0) }

func (c *counter) packed(i int, list message) error {
	f := c.fields[i]
	switch size := len(list); {
	case size == 0:
		return nil
	case f.wire == wireGroup:
		return status.DataLossf("TYPE_GROUP encountered as packed")
	case f.wire == wireVarint && list[size-1]&0x80 != 0:
		return status.DataLossf("Corrupt packed varint")
	case f.wire == wireFixed4 && size%4 != 0, f.wire == wireFixed8 && size%8 != 0:
		return status.DataLossf("Illegal data length for packed fixed-size type: %d", size)
	}
	for list != "" {
		if _, ok := list.raw(f.wire); !ok {
			return status.DataLossf("Corrupt packed varint")
		}
		c.counts[i]++
	}
	if !f.IsList() {
		c.counts[i] = min(c.counts[i], 1)
	}
	return nil
}

// collector stores the values of a message.
type collector struct {
	fields []protoField
	sinks  []sink
	most   []int
	next   []int // index of the next value of each field
	row    int
}

func (c *collector) at(i int) int {
	at := c.row * c.most[i]
	if c.fields[i].IsList() {
		at += c.next[i]
		c.next[i]++
	} else {
		c.next[i] = 1 // the last value of a singular field counts
	}
	return at
}

func (c *collector) number(i int, raw uint64) { c.sinks[i].number(c.at(i), raw, false) }
func (c *collector) text(i int, s message)    { c.sinks[i].text[c.at(i)] = string(s) }

func (c *collector) packed(i int, list message) error {
	f := c.fields[i]
	if c.next[i] >= c.most[i] {
		return status.DataLossf("ReadPackedValues: Tried to write more entries than allowed.  Field tag: %d, Max entries allowed: %d",
			f.Number(), c.most[i])
	}
	for list != "" {
		raw, _ := list.raw(f.wire) // valid, because counter has read it
		c.sinks[i].number(c.row*c.most[i]+c.next[i], raw, true)
		if f.IsList() { // otherwise the default value is stored, as in TensorFlow
			c.next[i]++
		}
	}
	return nil
}

// sink stores the values of a field.
type sink struct {
	number func(at int, raw uint64, packed bool)
	text   []string
	fill   func(lo, hi int) // sets elements lo to hi to the default value
}

func newSink(out *tensor.Tensor, f protoField) sink {
	signed, unsigned, real := signedValue(f.Kind()), uint64(math.MaxUint64), realValue(f.Kind())
	if k := f.Kind(); k == protoreflect.Uint32Kind || k == protoreflect.Fixed32Kind {
		unsigned = math.MaxUint32
	}
	standard := standardValue(f)
	switch out.DType() {
	case tensor.Float64:
		return numbers(out, standard.Float(), func(raw uint64, _ bool) float64 { return real(raw) })
	case tensor.Float32:
		return numbers(out, float32(standard.Float()), func(raw uint64, _ bool) float32 { return float32(real(raw)) })
	case tensor.Int64:
		return numbers(out, standard.Int(), signed)
	case tensor.Int32:
		return numbers(out, int32(standard.Int()), func(raw uint64, packed bool) int32 { return int32(signed(raw, packed)) })
	case tensor.Uint64:
		return numbers(out, standard.Uint(), func(raw uint64, _ bool) uint64 { return raw & unsigned })
	case tensor.Uint32:
		return numbers(out, uint32(standard.Uint()), func(raw uint64, _ bool) uint32 { return uint32(raw) })
	case tensor.Bool:
		return numbers(out, standard.Bool(), func(raw uint64, _ bool) bool { return raw != 0 })
	}
	z := tensor.Values[string](out)
	return sink{text: z, fill: filler(z, standard.String())}
}

// standardValue returns the default value of a field: an integer for an enum, and a string for
// bytes and messages.
func standardValue(f protoField) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.EnumKind:
		if v := f.DefaultEnumValue(); v != nil {
			return protoreflect.ValueOfInt32(int32(v.Number()))
		}
		return protoreflect.ValueOfInt32(int32(f.Enum().Values().Get(0).Number()))
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return protoreflect.ValueOfString("")
	default:
	}
	v := f.Default()
	if b, ok := v.Interface().([]byte); ok {
		return protoreflect.ValueOfString(string(b))
	}
	if v.IsValid() {
		return v
	}
	switch memoryName(f.Kind()) { // lists
	case "double":
		return protoreflect.ValueOfFloat64(0)
	case "float":
		return protoreflect.ValueOfFloat32(0)
	case "int32", "int64":
		return protoreflect.ValueOfInt64(0)
	case "uint32", "uint64":
		return protoreflect.ValueOfUint64(0)
	case "bool":
		return protoreflect.ValueOfBool(false)
	}
	return protoreflect.ValueOfString("")
}

func numbers[T tensor.Elem](out *tensor.Tensor, standard T, value func(raw uint64, packed bool) T) sink {
	z := tensor.Values[T](out)
	return sink{number: func(at int, raw uint64, packed bool) { z[at] = value(raw, packed) }, fill: filler(z, standard)}
}

func filler[T any](z []T, v T) func(lo, hi int) {
	return func(lo, hi int) {
		for i := lo; i < hi; i++ {
			z[i] = v
		}
	}
}

func realValue(k protoreflect.Kind) func(raw uint64) float64 {
	if k == protoreflect.FloatKind {
		return func(raw uint64) float64 { return float64(math.Float32frombits(uint32(raw))) }
	}
	return math.Float64frombits
}

func signedValue(k protoreflect.Kind) func(raw uint64, packed bool) int64 {
	switch k {
	case protoreflect.Sint32Kind:
		return func(raw uint64, _ bool) int64 { return int64(int32(protowire.DecodeZigZag(uint64(uint32(raw))))) }
	case protoreflect.Sint64Kind:
		return func(raw uint64, _ bool) int64 { return protowire.DecodeZigZag(raw) }
	case protoreflect.Int32Kind:
		return func(raw uint64, packed bool) int64 {
			if packed { // negative numbers become positive 64-bit ones, as in TensorFlow
				return int64(uint32(raw))
			}
			return int64(int32(raw))
		}
	case protoreflect.EnumKind, protoreflect.Sfixed32Kind:
		return func(raw uint64, _ bool) int64 { return int64(int32(raw)) }
	default:
		return func(raw uint64, _ bool) int64 { return int64(raw) }
	}
}
