package boosted

import (
	"math"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// The numbers of fields are those of TensorFlow's boosted_trees.proto.

// message is a serialized message that is being written. Zeros are left out. The parts of a message
// whose number a client chooses ask for their memory.
type message []byte

// grow makes room for n bytes, and for the tag and the length before them.
func (m *message) grow(n int) {
	const header = 16
	if n += header; n > cap(*m)-len(*m) {
		*m = append(membudget.MakeCap[byte](max(2*cap(*m), len(*m)+n)), *m...)
	}
}

func (m *message) int(field protowire.Number, v int64) {
	if v != 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(v))
	}
}

func (m *message) bool(field protowire.Number, v bool) {
	if v {
		m.int(field, 1)
	}
}

func (m *message) float(field protowire.Number, v float32) {
	if math.Float32bits(v) != 0 {
		*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), math.Float32bits(v))
	}
}

func (m *message) floats(field protowire.Number, values []float32) {
	if len(values) == 0 {
		return
	}
	m.grow(4 * len(values))
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.BytesType), uint64(4*len(values)))
	for _, v := range values {
		*m = protowire.AppendFixed32(*m, math.Float32bits(v))
	}
}

func (m *message) message(field protowire.Number, inner message) {
	m.grow(len(inner))
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), inner)
}

// serialize returns the ensemble as a TreeEnsemble message.
func (e *ensemble) serialize() string {
	var m message
	var weights []float32
	for _, t := range e.trees {
		var nodes message
		for i := range t.nodes {
			nodes.message(1, t.nodes[i].message())
		}
		m.message(1, nodes)
		weights = membudget.Append(weights, t.weight)
	}
	m.floats(2, weights)
	for _, t := range e.trees {
		var meta message
		meta.int(2, int64(t.layers))
		meta.bool(3, t.finalized)
		for _, p := range t.pruned {
			var update message
			update.int(1, int64(p.node))
			update.floats(2, p.changes)
			meta.message(4, update)
		}
		m.message(3, meta)
	}
	if g := e.growing; g.known {
		var meta message
		meta.int(1, g.trees)
		meta.int(2, g.layers)
		meta.int(3, int64(g.layerStart))
		meta.int(4, int64(g.layerEnd))
		m.message(4, meta)
	}
	membudget.MustTake(int64(len(m)))
	return string(m)
}

func (n *node) message() (m message) {
	var inner message
	switch n.kind {
	case noKind: // not in an ensemble
	case leafNode:
		m.message(1, n.leaf.message())
	case thresholdNode, valueNode:
		inner.int(1, int64(n.feature))
		inner.int(2, int64(n.bucket))
		inner.int(3, int64(n.left))
		inner.int(4, int64(n.right))
		inner.int(5, int64(n.dimension))
		if n.kind == thresholdNode {
			inner.bool(6, !n.missingLeft)
			m.message(2, inner)
		} else {
			m.message(3, inner)
		}
	}
	if n.meta {
		var meta message
		meta.float(1, n.gain)
		if n.hadLeaf {
			meta.message(2, n.original.message())
		}
		m.message(777, meta)
	}
	return m
}

func (l *leaf) message() (m message) {
	if l.many {
		var vector message
		vector.floats(1, l.vector)
		m.message(1, vector)
	}
	m.float(3, l.scalar)
	return m
}

// field is a field of a serialized message.
type field struct {
	number int
	kind   protowire.Type
	varint uint64
	fixed  uint32
	bytes  []byte
}

func (f *field) int() int32 { return int32(f.varint) } //nolint:gosec // an int32 is written sign-extended

// floats returns the numbers of a repeated field, packed or not.
func (f *field) floats() []float32 {
	if f.kind == protowire.Fixed32Type {
		return []float32{math.Float32frombits(f.fixed)}
	}
	var out []float32
	for b := f.bytes; len(b) >= 4; b = b[4:] {
		v, _ := protowire.ConsumeFixed32(b)
		out = membudget.Append(out, math.Float32frombits(v))
	}
	return out
}

// fields calls read with each field of a message, until read fails.
func fields(b []byte, read func(f *field) error) error {
	for len(b) > 0 {
		var f field
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return unparsed()
		}
		f.number, f.kind, b = int(number), kind, b[n:]
		switch f.kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			f.fixed, n = protowire.ConsumeFixed32(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return unparsed()
		}
		if err := read(&f); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func unparsed() error { return status.InvalidArgumentf("Unable to parse tree ensemble proto.") }

// parse sets the ensemble to a serialized TreeEnsemble message. It is unchanged if parse fails.
func (e *ensemble) parse(serialized string) error {
	var read ensemble
	var weights []float32
	metas := 0
	// a copy, the logits, and what they grow from
	const copies = 3
	membudget.MustTake(copies * int64(len(serialized)))
	var meter membudget.Meter
	err := fields([]byte(serialized), func(f *field) error {
		switch f.number {
		case 1:
			meter.MustTake(int(unsafe.Sizeof(tree{})))
			t := &tree{}
			read.trees = membudget.Append(read.trees, t)
			return fields(f.bytes, func(f *field) error {
				if f.number != 1 {
					return nil
				}
				n, err := parseNode(f.bytes)
				t.nodes = membudget.Append(t.nodes, n)
				return err
			})
		case 2:
			weights = membudget.AppendAll(weights, f.floats()...)
		case 3:
			metas++
			if metas > len(read.trees) {
				return status.InvalidArgumentf("the ensemble has metadata of %d trees, but only %d trees", metas, len(read.trees))
			}
			return read.trees[metas-1].parseMeta(f.bytes)
		case 4:
			return read.growing.parse(f.bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(weights) != len(read.trees) {
		return status.InvalidArgumentf("the ensemble has %d trees and %d weights", len(read.trees), len(weights))
	}
	for i, t := range read.trees {
		t.weight = weights[i]
	}
	if err := read.check(); err != nil {
		return err
	}
	e.trees, e.growing = read.trees, read.growing
	return nil
}

func (g *growing) parse(b []byte) error {
	g.known = true
	return fields(b, func(f *field) error {
		switch f.number {
		case 1:
			g.trees = int64(f.varint) //nolint:gosec // an int64 is written as its bits
		case 2:
			g.layers = int64(f.varint) //nolint:gosec // an int64 is written as its bits
		case 3:
			g.layerStart = f.int()
		case 4:
			g.layerEnd = f.int()
		}
		return nil
	})
}

func (t *tree) parseMeta(b []byte) error {
	return fields(b, func(f *field) error {
		switch f.number {
		case 2:
			t.layers = f.int()
		case 3:
			t.finalized = f.varint != 0
		case 4:
			var p pruned
			t.pruned = membudget.Append(t.pruned, p)
			last := &t.pruned[len(t.pruned)-1]
			return fields(f.bytes, func(f *field) error {
				switch f.number {
				case 1:
					last.node = f.int()
				case 2:
					last.changes = membudget.AppendAll(last.changes, f.floats()...)
				}
				return nil
			})
		}
		return nil
	})
}

func parseNode(b []byte) (n node, err error) {
	err = fields(b, func(f *field) error {
		switch f.number {
		case 1:
			n.kind = leafNode
			return n.leaf.parse(f.bytes)
		case 2, 3:
			n.kind, n.missingLeft = thresholdNode, true
			if f.number == 3 {
				n.kind, n.missingLeft = valueNode, false
			}
			return n.parseSplit(f.bytes)
		case 4:
			return status.Unimplementedf("the ensemble has a split by values that are not bucketized")
		case 777:
			n.meta = true
			return fields(f.bytes, func(f *field) error {
				switch f.number {
				case 1:
					n.gain = math.Float32frombits(f.fixed)
				case 2:
					n.hadLeaf = true
					return n.original.parse(f.bytes)
				}
				return nil
			})
		}
		return nil
	})
	return n, err
}

func (n *node) parseSplit(b []byte) error {
	return fields(b, func(f *field) error {
		switch f.number {
		case 1:
			n.feature = f.int()
		case 2:
			n.bucket = f.int()
		case 3:
			n.left = f.int()
		case 4:
			n.right = f.int()
		case 5:
			n.dimension = f.int()
		case 6:
			n.missingLeft = f.varint == 0
		}
		return nil
	})
}

func (l *leaf) parse(b []byte) error {
	return fields(b, func(f *field) error {
		switch f.number {
		case 1:
			l.many = true
			return fields(f.bytes, func(f *field) error {
				if f.number == 1 {
					l.vector = membudget.AppendAll(l.vector, f.floats()...)
				}
				return nil
			})
		case 2:
			return status.Unimplementedf("the ensemble has a leaf with a sparse vector")
		case 3:
			l.scalar = math.Float32frombits(f.fixed)
		}
		return nil
	})
}

// appendVarint appends an element of a packed repeated field.
func appendVarint(m message, v int32) message { return protowire.AppendVarint(m, uint64(int64(v))) } //nolint:gosec // sign-extended
