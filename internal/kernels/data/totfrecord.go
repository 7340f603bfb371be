package data

import (
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, name := range []string{"DatasetToTFRecord", "ExperimentalDatasetToTFRecord"} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Writes the elements of a dataset, which must be strings, to a TFRecord file.",
			In: []string{"input_dataset: variant", "filename: string", "compression_type: string"}, Stateful: true, Class: opdef.FilesWrite,
		}, iterating(toTFRecord))
	}
}

func toTFRecord(n *node, ctx *kernel.Context, r *run) error {
	d, err := datasetOf(ctx.Input(0))
	if err != nil {
		return err
	}
	name, err := scalar[string](n, ctx, "filename")
	if err != nil {
		return err
	}
	kind, err := scalar[string](n, ctx, "compression_type")
	if err != nil {
		return err
	}
	file, err := n.Files().In(ctx.Context()).Truncate(name)
	if err != nil {
		return err
	}
	defer file.Close()
	to, err := record.NewWriter(file, record.Compression(kind))
	if err != nil {
		return err
	}
	if err := writeRecords(r, d, to); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	return file.Close()
}

func writeRecords(r *run, d dataset, to *record.Writer) error {
	return each(r, d, func(e element) error {
		defer e.release()
		if len(e) != 1 || e[0].DType() != tensor.String || e[0].Rank() != 0 {
			return status.InvalidArgumentf("the elements of a dataset written to a TFRecord file must be strings")
		}
		text := tensor.Value[string](&e[0])
		membudget.MustTake(int64(len(text))) // of the copy
		return to.Write([]byte(text))
	})
}
