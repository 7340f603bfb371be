package listops

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Map is a tensor map, the value of a variant: a map from tensors to tensors. Like List, it is
// immutable, and the garbage collector frees its elements.
type Map struct {
	items trie[*pair]
	next  uint64 // order of the next new key
}

// pair is a key and its value.
type pair struct {
	order      uint64 // insertion order of the key
	key, value tensor.Tensor
}

// keyText returns a string that identifies a key by its type, shape and elements. Handles and
// variants cannot be keys.
// Strings of the tensor may share a text, so the memory of all of them is asked for.
func keyText(t *tensor.Tensor) (string, error) {
	size := 2 + binary.MaxVarintLen64*t.Rank() + len(t.Bytes())
	if t.DType() == tensor.String {
		for _, s := range tensor.Values[string](t) {
			size += binary.MaxVarintLen64 + len(s)
		}
	}
	membudget.MustTake(int64(size)) // of the string
	text := append(membudget.MakeCap[byte](size), byte(t.DType()), byte(t.Rank()))
	for _, d := range t.Shape() {
		text = binary.AppendUvarint(text, uint64(d))
	}
	switch t.DType() {
	case tensor.Resource, tensor.Variant:
		return "", status.InvalidArgumentf("a %v cannot be the key of a tensor map", t.DType())
	case tensor.String:
		for _, s := range tensor.Values[string](t) {
			text = append(binary.AppendUvarint(text, uint64(len(s))), s...)
		}
	default:
		text = append(text, t.Bytes()...)
	}
	return string(text), nil
}

// get returns the pair with the given key, or nil.
func (m *Map) get(key *tensor.Tensor) (*pair, error) {
	text, err := keyText(key)
	if err != nil {
		return nil, err
	}
	p, _ := m.items.get(text)
	return p, nil
}

// with returns the map with the value of key set. It retains both tensors. A new key is last in
// insertion order.
func (m *Map) with(key, value *tensor.Tensor) (*Map, error) {
	text, err := keyText(key)
	if err != nil {
		return nil, err
	}
	p, out := &pair{order: m.next, value: value.Retain()}, *m
	if old, ok := m.items.get(text); ok {
		p.order, p.key = old.order, old.key
	} else {
		p.key = key.Retain()
		out.next++
	}
	out.items = m.items.set(text, p)
	return &out, nil
}

// without returns the map without key.
func (m *Map) without(key *tensor.Tensor) (*Map, error) {
	text, err := keyText(key)
	if err != nil {
		return nil, err
	}
	return &Map{m.items.remove(text), m.next}, nil
}

// pairs returns all pairs in insertion order of their keys.
func (m *Map) pairs() []*pair {
	all := m.items.values()
	slices.SortFunc(all, func(a, b *pair) int { return cmp.Compare(a.order, b.order) })
	return all
}

// setOutput sets output 0 to a variant with the map.
func (m *Map) setOutput(ctx *kernel.Context) {
	ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: m}))
}

// inputMap returns the map in input 0.
func inputMap(ctx *kernel.Context) (*Map, error) {
	t := ctx.Input(0)
	if t.Rank() != 0 {
		return nil, status.InvalidArgumentf("Input map must be a scalar. Saw: %v", t.Shape())
	}
	v := tensor.Value[tensor.VariantValue](t)
	m, ok := v.Value.(*Map)
	if !ok {
		return nil, status.InvalidArgumentf("Input handle is not a map. Saw: '%T'", v.Value)
	}
	return m, nil
}

// ZerosLike returns an empty map, as in TensorFlow.
func (*Map) ZerosLike() (any, error) { return &Map{}, nil }

// AddVariant returns the union of both maps. The values of common keys are added.
func (m *Map) AddVariant(other any) (any, error) {
	o, ok := other.(*Map)
	if !ok {
		return nil, status.InvalidArgumentf("Trying to add a map of tensors and a %T", other)
	}
	out, sums := m, newSums()
	for _, p := range o.pairs() {
		sums.meter.MustTake(elementBytes + pathBytes)
		value := &p.value
		have, err := m.get(&p.key)
		if err == nil && have != nil {
			value, err = sums.add(value, &have.value)
		}
		if err == nil {
			out, err = out.with(&p.key, value)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

const mapTypeName = "tensorflow::TensorMap"

func init() { tensor.RegisterVariant(mapTypeName, decodeMap) }

// EncodeVariant returns TensorFlow's encoded form of a map: each key followed by its value.
func (m *Map) EncodeVariant() (tensor.EncodedVariant, error) {
	out := tensor.EncodedVariant{TypeName: mapTypeName}
	for _, p := range m.pairs() {
		out.Tensors = membudget.AppendAll(out.Tensors, p.key.Retain(), p.value.Retain())
	}
	return out, nil
}

func decodeMap(v tensor.EncodedVariant) (any, error) {
	if len(v.Tensors)%2 != 0 {
		return nil, status.InvalidArgumentf("an encoded tensor map has %d tensors", len(v.Tensors))
	}
	m := &Map{}
	for i := 0; i < len(v.Tensors); i += 2 {
		var err error
		if m, err = m.with(&v.Tensors[i], &v.Tensors[i+1]); err != nil {
			return nil, err
		}
	}
	return m, nil
}
