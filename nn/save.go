package nn

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/internal/sys/callsite"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Save writes the model as a SavedModel to a folder, which must be empty or not exist: a program
// that trains again saves to another one, such as the next version for a model server. Weft and
// TensorFlow serve it. Its default signature has the inputs "inputs" (then "inputs_1" …) and the
// output "outputs". The model must have been trained, or have predicted, in this program.
func (m *Model) Save(ctx context.Context, dir string) error {
	ctx, line := callsite.Begin(ctx)
	return withLine(line, m.save(ctx, dir, nil))
}

// save writes the model, with a signature of the columns of a file if there are some.
func (m *Model) save(ctx context.Context, dir string, columns *data.CSV) error {
	if m.types == nil {
		return status.FailedPreconditionf("nn: the model does not know its inputs yet; call train.Fit or Predict first")
	}
	s := op.NewScope()
	sig := savedmodel.Signature{
		Method: savedmodel.MethodPredict, Inputs: map[string]savedmodel.TensorInfo{}, Outputs: map[string]savedmodel.TensorInfo{},
	}
	signatures := map[string]savedmodel.Signature{savedmodel.DefaultSignature: sig}
	var ins []op.Output
	var table *tableInput
	for i := range m.types {
		name := "inputs"
		if i > 0 {
			name = fmt.Sprintf("inputs_%d", i)
		}
		var in op.Output
		if columns == nil {
			in = op.Placeholder(s.Named(name), m.types[i], op.PlaceholderShape(m.shapes[i]))
		} else {
			var err error
			if table, err = m.tableInput(s, columns); err != nil {
				return err
			}
			in = op.PlaceholderWithDefault(s.Named(name), table.features, m.shapes[i])
		}
		ins = append(ins, in)
		sig.Inputs[name] = savedmodel.InfoOf(in, s.ShapeOf(in))
	}
	c := m.context(s, false)
	y := m.forward(c, ins)
	if err := s.Err(); err != nil {
		return err
	}
	sig.Outputs["outputs"] = savedmodel.InfoOf(y, s.ShapeOf(y))
	if table != nil {
		signatures[TableSignature] = table.signature(s, y)
		if err := s.Err(); err != nil {
			return err
		}
	}
	var saver *train.Saver
	if len(c.Variables()) > 0 {
		saver = train.NewSaver(s, train.SaverOptions{Sharded: true})
	}
	run, err := m.start(ctx, c)
	if err != nil {
		return err
	}
	defer run.sess.Close()
	export := train.Export{Dir: dir, Signatures: signatures}
	return export.SaveModel(ctx, run.sess, s, saver)
}

// SaveWeights writes the weights as a checkpoint with the given prefix.
func (m *Model) SaveWeights(prefix string) error {
	line := callsite.Find()
	if m.weights == nil {
		return withLine(line, status.FailedPreconditionf("nn: the model has no weights; train it with train.Fit"))
	}
	return withLine(line, train.WriteWeights(prefix, m.weights))
}

// LoadWeights reads the weights from a checkpoint: one of [Model.SaveWeights], one of [train.Fit],
// or the prefix "variables/variables" in a folder of [Model.Save].
func (m *Model) LoadWeights(prefix string) error {
	line := callsite.Find()
	return withLine(line, m.loadWeights(prefix))
}

func (m *Model) loadWeights(prefix string) error {
	r, err := checkpoint.Open(prefix)
	if status.CodeOf(err) == status.NotFound {
		return status.NotFoundf("nn: there is no checkpoint with the prefix %s", prefix)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	weights := map[string]tensor.Tensor{}
	for _, info := range r.Tensors() {
		if weights[info.Name], err = r.Read(info.Name); err != nil {
			return err
		}
	}
	m.weights, m.loaded = weights, prefix
	return nil
}
