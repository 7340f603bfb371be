package parsing

import (
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// canonicalize returns records in the canonical form that this package reads. For
// ParseSingleSequenceExample, TensorFlow accepts any valid encoding, with unknown or split fields,
// and rejects invalid messages even where no feature is requested.
func (b *batch) canonicalize(records []string) ([]string, error) {
	out := membudget.Make[string](len(records))
	for row, r := range records {
		if isCanonical(message(r)) {
			out[row] = r
			continue
		}
		var m pb.SequenceExample
		const copies = 3 // one of the record and two of the result, which is at most as long
		membudget.MustTake(copies * int64(len(r)))
		text := []byte(r)
		protomem.MustTake(m.ProtoReflect().Descriptor(), text)
		if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &m) != nil {
			return nil, b.words.record(row, r)
		}
		written, err := proto.Marshal(&m)
		if err != nil {
			return nil, b.words.record(row, r)
		}
		out[row] = string(written)
	}
	return out, nil
}

// isCanonical reports whether m is a valid SequenceExample in canonical form.
func isCanonical(m message) bool {
	for m != "" {
		t, ok := m.varint()
		if !ok || t != tag(1, wireBytes) && t != tag(2, wireBytes) {
			return false
		}
		features, ok := m.block()
		if !ok || !features.isMap(t == tag(2, wireBytes)) {
			return false
		}
	}
	return true
}

// isMap reports whether a message is a map in canonical form, to features or to feature lists.
func (m message) isMap(lists bool) bool {
	for m != "" {
		entry, ok := m.item()
		if !ok {
			return false
		}
		key, value, ok := entry.entry()
		if !ok || !utf8.ValidString(key) || !lists && !value.isFeature() {
			return false
		}
		for lists && value != "" {
			if f, ok := value.item(); !ok || !f.isFeature() {
				return false
			}
		}
	}
	return true
}

// isFeature reports whether a message is a Feature in canonical form: one kind, and packed numbers.
func (m message) isFeature() bool {
	if m == "" {
		return true
	}
	t, _ := m.varint()
	list, ok := m.block()
	switch dtype := featureTypes[t]; {
	case !ok || m != "":
		return false
	case list == "":
		return dtype != tensor.Invalid
	case dtype == tensor.String:
		_, ok = countTexts(list)
		return ok
	case dtype == tensor.Invalid:
		return false
	default:
		packed := list
		if _, ok := packed.item(); !ok || packed != "" {
			return false
		}
		_, ok = valuesOf[dtype].count(list)
		return ok
	}
}
