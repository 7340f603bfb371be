package nn

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/internal/sys/callsite"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TableSignature is the name of the signature of [Model.SaveTable] that takes columns.
const TableSignature = "columns"

// SaveTable is [Model.Save] for a model of the rows of a table; columns are the Options of the
// [data.Table] of the training data. The model has a second signature, [TableSignature], which
// takes the columns by their names, as vectors with a value for each row: float32, or strings for
// columns of OneHot. It makes the features as data.ReadCSV does, with two differences: a text that
// training has not seen makes all features of its column 0, and a missing number is NaN. Beside
// "outputs" it returns the most likely "class" of each row, as text, if the labels are classes.
func (m *Model) SaveTable(ctx context.Context, dir string, columns data.CSV) error {
	ctx, line := callsite.Begin(ctx)
	return withLine(line, m.save(ctx, dir, &columns))
}

// tableInput computes the features of a model from the columns of a table.
type tableInput struct {
	inputs   map[string]savedmodel.TensorInfo
	features op.Output // [rows, features]
	classes  []string
}

func (m *Model) tableInput(s *op.Scope, columns *data.CSV) (*tableInput, error) {
	if len(columns.Features) == 0 {
		return nil, status.InvalidArgumentf("nn: the columns have no names; use the Options of the table that data.ReadCSV returned")
	}
	t := &tableInput{inputs: map[string]savedmodel.TensorInfo{}, classes: columns.Classes}
	var parts []op.Output
	width := 0
	for i, name := range columns.Features {
		texts, isText := columns.Texts[name]
		dtype := tensor.Float32
		if isText {
			dtype = tensor.String
		}
		in := op.Placeholder(s.Named(fmt.Sprintf("column_%d", i)), dtype, op.PlaceholderShape(tensor.MakePartial(-1)))
		t.inputs[name] = savedmodel.InfoOf(in, s.ShapeOf(in))
		part := op.ExpandDims(s, in, op.Const(s, int32(1)))
		if isText {
			part = op.Cast(s, op.Equal(s, part, op.Const(s, [][]string{texts})), tensor.Float32)
			width += len(texts)
		} else {
			if mean, ok := columns.Means[name]; ok {
				part = op.SelectV2(s, op.IsNan(s, part), op.Const(s, mean), part)
			}
			width++
		}
		parts = append(parts, part)
	}
	t.features = op.ConcatV2(s, parts, op.Const(s, int32(1)))
	if want := tensor.MakePartial(-1, int64(width)); len(m.types) != 1 || m.types[0] != tensor.Float32 || !m.shapes[0].Compatible(want) {
		return nil, status.InvalidArgumentf("nn: the columns have %d features, which are no input of the model: %v of shape %v", width, m.types, m.shapes)
	}
	return t, nil
}

// signature returns the signature of the columns for the predictions y.
func (t *tableInput) signature(s *op.Scope, y op.Output) savedmodel.Signature {
	outputs := map[string]savedmodel.TensorInfo{"outputs": savedmodel.InfoOf(y, s.ShapeOf(y))}
	if shape := s.ShapeOf(y); len(t.classes) > 0 && shape.Rank() == 2 && shape.Dim(1) == int64(len(t.classes)) {
		best := op.ArgMax(s, y, op.Const(s, int32(1)))
		class := op.GatherV2(s, op.Const(s, t.classes), best, op.Const(s, int32(0)))
		outputs["class"] = savedmodel.InfoOf(class, s.ShapeOf(class))
	}
	return savedmodel.Signature{Method: savedmodel.MethodPredict, Inputs: t.inputs, Outputs: outputs}
}
