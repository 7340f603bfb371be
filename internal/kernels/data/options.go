package data

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/sys/membudget"
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
//
// The simple walk calls itself for each input and adds up the texts. It takes quadratic time for a
// chain of stages that all have options, and exponential time if stages have an input twice, as in
// a chain of Zip(d, d). The last of two equal texts decides, so each dataset counts once, at its
// last place. The walk goes from the last place to the first.
func options(d dataset) string {
	var found []string
	var meter membudget.Meter
	seen := map[dataset]bool{}
	for next := []dataset{d}; len(next) > 0; {
		d, next = next[len(next)-1], next[:len(next)-1]
		if seen[d] {
			continue
		}
		meter.MustTakeEntry(0)
		seen[d] = true
		if d, ok := d.(*optionsDataset); ok {
			found = membudget.Append(found, d.options)
		}
		next = append(next, inputsOf(d)...)
	}
	slices.Reverse(found)
	return strings.Join(found, "")
}
