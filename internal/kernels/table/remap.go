package table

import (
	"context"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "GenerateVocabRemapping",
		Doc: "Returns the line number in an old vocabulary of each word of a new one, starting " +
			"at new_vocab_offset, or -1 if it is absent. num_present is the number of words " +
			"that are present.",
		In: []string{"new_vocab_file: string", "old_vocab_file: string"}, Out: []string{"remapping: int64", "num_present: int32"},
		Attrs: []string{"new_vocab_offset: int >= 0", "num_new_vocab: int >= 0", "old_vocab_size: int >= -1 = -1"},
		Class: opdef.FilesRead, Shape: remappingShape,
	}, newRemapping)
}

func remappingShape(c *opdef.ShapeContext) error {
	c.Out[0], c.Out[1] = shapefn.Of(int64(c.Attrs.Int("num_new_vocab"))), shapefn.Of()
	return shapefn.CheckRanks(c, 0, 0, 0)
}

// remapping compares vocabulary files with one word per line.
type remapping struct {
	first, n int // range of lines of the new file
	old      vocabulary
}

func newRemapping(c *kernel.Construction) (kernel.Kernel, error) {
	r := &remapping{
		first: c.Attrs.Int("new_vocab_offset"), n: c.Attrs.Int("num_new_vocab"),
		old: vocabulary{key: wholeLine, value: lineNumber, size: c.Attrs.Int("old_vocab_size")},
	}
	return kernel.WithFiles(r.compute)(c)
}

func (r *remapping) compute(ctx *kernel.Context, files fileio.Files) error {
	newFile, err := fileName(ctx, 0, "new_vocab_file", "new vocab filename")
	if err != nil {
		return err
	}
	words, err := r.words(files, newFile)
	if err != nil {
		return err
	}
	oldFile, err := fileName(ctx, 1, "old_vocab_file", "new vocab filename")
	if err != nil {
		return err
	}
	lines, err := r.oldLines(ctx.Context(), files, oldFile)
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, words.Shape())
	if err != nil {
		return err
	}
	absent := tensor.Scalar[int64](-1)
	if err := lines.find(ctx.Context(), out, &words, &absent); err != nil {
		return err
	}
	present := int32(0)
	for _, line := range tensor.Values[int64](out) {
		if line >= 0 {
			present++
		}
	}
	ctx.SetOutput(1, tensor.Scalar(present))
	return nil
}

// words returns the selected lines of the new file.
func (r *remapping) words(files fileio.Files, path string) (tensor.Tensor, error) {
	v := vocabulary{key: lineNumber, value: wholeLine, size: -1}
	_, all, err := v.read(files, path, tensor.Int64, tensor.String)
	if err != nil {
		return all, err
	}
	if have := all.NumElements(); r.n > have || r.first > have-r.n {
		return all, status.InvalidArgumentf("lookup table size must be larger than last new vocab entry's line")
	}
	return all.Rows(r.first, r.first+r.n), nil
}

// oldLines returns a table from the lines of the old file to their numbers.
func (r *remapping) oldLines(ctx context.Context, files fileio.Files, path string) (*fixed, error) {
	words, numbers, err := r.old.read(files, path, tensor.String, tensor.Int64)
	if err != nil {
		return nil, err
	}
	m, err := newMutable(layout{keyType: tensor.String, valueType: tensor.Int64})
	if err != nil {
		return nil, err
	}
	f := &fixed{mutable: *m}
	return f, f.replace(ctx, nil, &words, &numbers)
}
