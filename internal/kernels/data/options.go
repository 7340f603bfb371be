package data

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("OptionsDataset", "Gives a dataset with options for how it is iterated over.", nil,
		append([]string{"serialized_options: string"}, described()...),
		func(n *node, _ *kernel.Context, s stage) (dataset, error) {
			options := n.Attrs.String("serialized_options")
			if !wellFormed([]byte(options)) {
				return nil, status.InvalidArgumentf("Could not parse serialized_options as valid Options.")
			}
			return &optionsDataset{passDataset{s}, options}, nil
		})
	kernel.RegisterFunc(opdef.Def{
		Name: "GetOptions", Doc: "Gives the options of a dataset, a serialized tensorflow.data.Options: those of its inputs and its own, of which the last count.",
		In: []string{"input_dataset: variant"}, Out: []string{"serialized_options: string"}, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		d, err := datasetOf(ctx.Input(0))
		if err == nil {
			ctx.SetOutput(0, tensor.Scalar(options(d)))
		}
		return err
	})
}

// optionsDataset has the elements of its input. Of what its options ask for iterators heed parallel
// maps; the rest is the business of Go's scheduler, and kept for programs that look at it.
type optionsDataset struct {
	passDataset
	options string
}

// wellFormed reports whether bytes have the form of a serialized message.
func wellFormed(message []byte) bool {
	for len(message) > 0 {
		_, _, n := protowire.ConsumeField(message)
		if n < 0 {
			return false
		}
		message = message[n:]
	}
	return true
}

// options returns the merged options of a dataset. Serialized messages merge by being put one after
// the other.
func options(d dataset) (all string) {
	for _, input := range inputsOf(d) {
		all += options(input)
	}
	if d, ok := d.(*optionsDataset); ok {
		all += d.options
	}
	return all
}
