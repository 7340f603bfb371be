package ioops

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerState := func(def opdef.Def, n kernel.New) {
		def.Shape = resource.ByNamesShape
		if len(def.In) > 0 {
			def.Shape = func(c *opdef.ShapeContext) error {
				if err := resource.CheckNames(c, 0); err != nil {
					return err
				}
				return shapefn.CheckRanks(c, 1, 0)
			}
		}
		resource.RegisterForms("reader_handle", def, def.Name+"V2", scalars, n)
	}
	registerState(opdef.Def{
		Name: "ReaderNumRecordsProduced", Doc: "Returns the number of records that a reader has produced.", Out: []string{"records_produced: int64"},
	}, counting(func(c *counts) int64 { return c.produced }))
	registerState(opdef.Def{
		Name: "ReaderNumWorkUnitsCompleted", Doc: "Returns the number of files that a reader has finished processing.", Out: []string{"units_completed: int64"},
	}, counting(func(c *counts) int64 { return c.finished }))
	registerState(opdef.Def{
		Name: "ReaderSerializeState", Doc: "Returns a string that encodes the state of a reader. Only readers of whole files support it.",
		Out: []string{"state: string"},
	}, onReader(func(ctx *kernel.Context, r *Reader) error {
		if !r.saveState {
			return status.Unimplementedf("Reader SerializeState")
		}
		r.count(func(c *counts) { ctx.SetOutput(0, tensor.Scalar(c.encode())) })
		return nil
	}))
	registerState(opdef.Def{
		Name: "ReaderRestoreState", Doc: "Restores a reader to a state saved by ReaderSerializeState.", In: []string{"state: string"},
	}, onReader(restore))
	registerState(opdef.Def{
		Name: "ReaderReset", Doc: "Restores a reader to its initial state.",
	}, onReader(func(_ *kernel.Context, r *Reader) error { r.reset(); return nil }))
}

// counting returns the constructor of kernels that return a count, even during a read.
func counting(f func(*counts) int64) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		r, err := resource.Find[*Reader](ctx, 0)
		if err == nil {
			r.count(func(c *counts) { ctx.SetOutput(0, tensor.Scalar(f(c))) })
		}
		return err
	})
}

// onReader returns the constructor of kernels that call f while the reader is idle.
func onReader(f func(*kernel.Context, *Reader) error) kernel.New {
	compute := kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		r, err := resource.Find[*Reader](ctx, 0)
		if err != nil {
			done(err)
			return
		}
		r.use(ctx.Context(), done, func() error { return f(ctx, r) })
	})
	return func(*kernel.Construction) (kernel.Kernel, error) { return compute, nil }
}

// mostQuoted is the number of bytes of a text that an error shows.
const mostQuoted = 4 << 10

func restore(ctx *kernel.Context, r *Reader) error {
	state := ctx.Input(1)
	if state.Rank() != 0 {
		return status.InvalidArgumentf("Reader state must be scalar, but had shape: %v", state.Shape())
	}
	r.reset()
	if !r.saveState {
		return status.Unimplementedf("Reader RestoreState")
	}
	text := tensor.Value[string](state)
	membudget.MustTake(2 * int64(len(text))) // one copy is parsed, the other stays
	saved, ok := decodeCounts([]byte(text))
	switch {
	case !ok:
		return status.InvalidArgumentf("Could not parse state for %s: %s", r.name, tensor.Escape(text[:min(len(text), mostQuoted)], false))
	case saved.started < 0 || saved.finished < 0 || saved.produced < 0:
		return status.InvalidArgumentf("Unexpected negative value when restoring in %s: %v", r.name, saved)
	case saved.started > saved.finished:
		return status.InvalidArgumentf("Inconsistent work started vs. finished when restoring in %s: %v", r.name, saved)
	}
	r.count(func(c *counts) { *c = saved })
	return nil
}

// Fields of a saved state, a ReaderBaseState message.
const (
	fieldStarted = 1 + iota
	fieldFinished
	fieldProduced
	fieldWork
)

// numbers returns pointers to the counts, by field.
func (c *counts) numbers() []*int64 {
	return []*int64{fieldStarted: &c.started, fieldFinished: &c.finished, fieldProduced: &c.produced}
}

func (c *counts) encode() string {
	const copies = 3 // a list that grows, and the string
	membudget.MustTake(copies * int64(len(c.work)))
	var b []byte
	for field, n := range c.numbers() {
		if n != nil && *n != 0 {
			b = protowire.AppendTag(b, protowire.Number(field), protowire.VarintType)
			b = protowire.AppendVarint(b, uint64(*n))
		}
	}
	if c.work != "" {
		b = protowire.AppendTag(b, fieldWork, protowire.BytesType)
		b = protowire.AppendString(b, c.work)
	}
	return string(b)
}

func decodeCounts(b []byte) (c counts, ok bool) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return c, false
		}
		b = b[n:]
		switch {
		case field >= fieldStarted && field <= fieldProduced && kind == protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			*c.numbers()[field] = int64(v)
		case field == fieldWork && kind == protowire.BytesType:
			c.work, n = protowire.ConsumeString(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return c, false
		}
		b = b[n:]
	}
	return c, true
}

// String formats the counts in protocol buffer text format.
func (c counts) String() string {
	var s strings.Builder
	for field, name := range []string{fieldStarted: "work_started", fieldFinished: "work_finished", fieldProduced: "num_records_produced"} {
		if n := c.numbers()[field]; n != nil && *n != 0 {
			fmt.Fprintf(&s, "%s: %d\n", name, *n)
		}
	}
	if c.work != "" {
		fmt.Fprintf(&s, "current_work: \"%s\"\n", tensor.Escape(c.work[:min(len(c.work), mostQuoted)], false))
	}
	return s.String()
}
