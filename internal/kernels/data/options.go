package data

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("OptionsDataset", "Creates a dataset that attaches options to its input.", nil,
		append([]string{"serialized_options: string"}, withSpecAndMetadata()...),
		func(n *node, _ *kernel.Context, s stage) (dataset, error) {
			options := n.Attrs.String("serialized_options")
			if !wellFormed([]byte(options)) {
				return nil, status.InvalidArgumentf("Could not parse serialized_options as valid Options.")
			}
			return &optionsDataset{passDataset{s}, options}, nil
		})
	kernel.RegisterFunc(opdef.Def{
		Name: "GetOptions", Doc: "Returns the options of a dataset as a serialized tensorflow.data.Options. They are those of its inputs merged with its own, which take precedence.",
		In: []string{"input_dataset: variant"}, Out: []string{"serialized_options: string"}, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		d, err := datasetOf(ctx.Input(0))
		if err == nil {
			ctx.SetOutput(0, tensor.Scalar(options(d)))
		}
		return err
	})
}

// optionsDataset contains the elements of its input and attaches options. Iterators use those for
// the order of elements and for parallel maps. The others concern scheduling, which Go's scheduler
// does, and are kept for programs that read them.
type optionsDataset struct {
	passDataset
	options string
}

// wellFormed reports whether message is a syntactically valid serialized message.
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

// options returns the merged options of a dataset. Concatenating serialized messages merges them.
// The last of two equal texts decides, so each dataset counts once, at its last place.
func options(d dataset) string {
	var all strings.Builder
	for _, d := range reachable(d) {
		if d, ok := d.(*optionsDataset); ok {
			all.WriteString(d.options)
		}
	}
	return all.String()
}
