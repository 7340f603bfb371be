package ioops

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "RecordInput",
		Doc: "Returns batches of records from the files that match patterns, in random order. " +
			"Each record is returned once before any is repeated. file_parallelism is " +
			"ignored.",
		Out: []string{"records: string"},
		Attrs: []string{
			"file_pattern: string", "file_random_seed: int = 301", "file_shuffle_shift_ratio: float = 0", "file_buffer_size: int = 10000",
			"file_parallelism: int = 16", "batch_size: int = 32", "compression_type: string = ''",
		},
		Stateful: true, Class: opdef.FilesRead, Shape: opdef.UnknownShape,
	}, newRecordInput)
}

// recordInput is a kernel that repeatedly reads a set of files.
type recordInput struct {
	pattern string
	// fraction of the shuffled files that is moved from the beginning to the end
	shift  float32
	buffer int // number of records from which the next one is drawn
	batch  int64
	open   opener
	access fileio.Files

	mu     sync.Mutex
	random *rand.Rand // guarded by mu, like the fields below
	files  []string   // unopened files of this pass
	from   records    // records of the open file, or nil
	ready  []string   // buffered records of this pass, in random order
	meter  membudget.Meter
	err    error // permanent error
}

func newRecordInput(c *kernel.Construction) (kernel.Kernel, error) {
	a := c.Attrs
	switch {
	case a.Int("file_parallelism") < 0:
		return nil, status.InvalidArgumentf("file_parallelism should >= 0, got %d", a.Int("file_parallelism"))
	case a.Int("batch_size") < 0:
		return nil, status.InvalidArgumentf("batch_size must be non-negative but got %d", a.Int("batch_size"))
	}
	return &recordInput{
		pattern: a.String("file_pattern"), shift: a.Float("file_shuffle_shift_ratio"), buffer: max(1, a.Int("file_buffer_size")),
		batch: int64(a.Int("batch_size")), open: openFramed(a.String("compression_type")), access: c.Files(),
		random: rand.New(rand.NewPCG(uint64(a.Int("file_random_seed")), 0)),
	}, nil
}

// Compute implements kernel.Kernel.
func (r *recordInput) Compute(ctx *kernel.Context) error {
	out, err := ctx.Allocate(0, tensor.Shape{r.batch})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := tensor.Values[string](out)
	for i := range all {
		if all[i], err = r.next(ctx.Context()); err != nil {
			return err
		}
	}
	return nil
}

// Close implements kernel.Closer.
func (r *recordInput) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from != nil {
		_ = r.from.close() // an error does not matter after reading
		r.from = nil
	}
	r.err = status.Cancelledf("RecordInput is closed")
}

// next fills the buffer as far as this pass allows and returns a record. An error of a file is
// permanent.
func (r *recordInput) next(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", status.FromContext(ctx, "reading a record")
	}
	for began := false; r.err == nil && len(r.ready) < r.buffer; {
		switch {
		case r.from != nil || len(r.files) > 0:
			r.err = r.read(ctx)
			continue
		case len(r.ready) == 0 && began:
			r.err = status.InvalidArgumentf("Found no records in the files at %s", r.pattern)
		case len(r.ready) == 0:
			r.err = r.begin(ctx)
			began = true
			continue
		}
		break
	}
	if r.err != nil {
		return "", r.err
	}
	last := len(r.ready) - 1
	rec := r.ready[last]
	r.ready[last] = ""
	r.ready = r.ready[:last]
	return rec, nil
}

// begin lists and shuffles the files of a pass.
func (r *recordInput) begin(ctx context.Context) error {
	for pattern := range strings.SplitSeq(r.pattern, ",") {
		found, err := r.access.In(ctx).Match(pattern)
		if err != nil {
			return err
		}
		r.files = membudget.AppendAll(r.files, found...)
	}
	if len(r.files) == 0 {
		return status.NotFoundf("Found no files at %s", r.pattern)
	}
	r.random.Shuffle(len(r.files), func(i, j int) { r.files[i], r.files[j] = r.files[j], r.files[i] })
	if r.shift > 0 && r.shift < 1 {
		n := int(r.shift * float32(len(r.files)))
		r.files = append(r.files[n:], r.files[:n]...)
	}
	return nil
}

// read inserts a record at a random position of the buffer, or opens the next file.
func (r *recordInput) read(ctx context.Context) error {
	if r.from == nil {
		path := r.files[0]
		r.files = r.files[1:]
		from, err := r.open(r.access.In(ctx), path)
		if status.CodeOf(err) == status.ResourceExhausted {
			return err
		}
		if err != nil {
			return status.InvalidArgumentf("Can't open %s", path)
		}
		r.from = from
	}
	r.from.use(ctx)
	rec, err := r.from.next()
	if err != nil {
		_ = r.from.close() // an error does not matter after reading
		r.from = nil
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	r.meter.MustTake(entrySize + len(rec.key) + len(rec.value))
	i := r.random.IntN(len(r.ready) + 1)
	r.ready = membudget.Append(r.ready, rec.value)
	last := len(r.ready) - 1
	r.ready[i], r.ready[last] = r.ready[last], r.ready[i]
	return nil
}
