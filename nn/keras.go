package nn

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/sys/callsite"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// LoadKeras reads the weights of a file that Keras has written: ".keras", ".weights.h5", or ".h5"
// of Keras 2 or 3. The network of the model must have the layers of the Keras model, with the same
// settings. inputs describe its inputs, as for [Model.Summary]; they may be left out after
// [train.Fit] or [Model.Predict].
//
// The n-th layer of a class in the file, such as Conv2D, belongs to the n-th layer of that class in
// the network; layers without weights do not count. Models within models are read from ".keras"
// files. An error names the layer and both shapes, and leaves the model as it was.
//
//	m := &nn.Model{Network: nn.Sequential{&nn.Dense{Units: 16, Activation: nn.ReLU}, &nn.Dense{Units: 3}}}
//	err := m.LoadKeras("iris.keras", nn.Input{Shape: []int64{4}})
func (m *Model) LoadKeras(path string, inputs ...Input) error {
	line := callsite.Find()
	return withLine(line, m.loadKeras(path, inputs))
}

func (m *Model) loadKeras(path string, inputs []Input) error {
	s := op.NewScope()
	c := m.context(s, false)
	types, shapes := m.types, m.shapes
	if len(inputs) > 0 {
		types, shapes = nil, nil
		for _, in := range inputs {
			dtype, shape := in.spec()
			types, shapes = append(types, dtype), append(shapes, shape)
		}
	}
	if types == nil {
		return status.FailedPreconditionf("nn: the model does not know its inputs yet; describe them in the call of LoadKeras")
	}
	var ins []op.Output
	for i := range types {
		ins = append(ins, op.Placeholder(s, types[i], op.PlaceholderShape(shapes[i])))
	}
	m.forward(c, ins)
	if err := s.Err(); err != nil {
		return err
	}
	f, err := openKeras(path)
	if err != nil {
		return status.Errorf(status.CodeOf(err), "nn: %s: %w", path, err)
	}
	defer f.close()
	weights, err := matchKeras(f.layers, c.kerasLayers())
	if err != nil {
		return status.Errorf(status.CodeOf(err), "nn: %s: %w", path, err)
	}
	m.weights, m.types, m.shapes = weights, types, shapes
	return nil
}

// modelLayer is a layer of the network as Keras counts them.
type modelLayer struct {
	name, kind string
	weights    []modelWeight
}

// modelWeight is a variable, or the parts of a table.
type modelWeight struct {
	name  string
	shape tensor.Shape
	parts []*train.Variable
}

// kerasLayers returns the layers that have variables, with the variables in the order of Keras.
func (c *Context) kerasLayers() []*modelLayer {
	position := map[*train.Variable]int{}
	for i, v := range c.Variables() {
		position[v] = i
	}
	var layers []*modelLayer
	byOwner := map[*layerWeights]*modelLayer{}
	for _, own := range c.weights.order {
		var weights []modelWeight
		for _, v := range own.values {
			weights = append(weights, modelWeight{v.Name, v.Shape, []*train.Variable{v}})
		}
		for _, p := range own.tables {
			weights = append(weights, modelWeight{p.Name, p.Shape, p.Parts})
		}
		slices.SortFunc(weights, func(a, b modelWeight) int { return position[a.parts[0]] - position[b.parts[0]] })
		l := &modelLayer{name: own.name, kind: own.kind}
		if own.parent != nil && own.parent.kind == "bidirectional" { // one layer in Keras
			if l = byOwner[own.parent]; l == nil {
				l = &modelLayer{name: own.parent.name, kind: own.parent.kind}
				byOwner[own.parent] = l
			}
		}
		if len(weights) > 0 && len(l.weights) == 0 {
			layers = append(layers, l)
		}
		l.weights = append(l.weights, weights...)
	}
	return layers
}

// matchKeras reads the weights of the layers of a file into those of a network.
func matchKeras(from []*kerasLayer, to []*modelLayer) (map[string]tensor.Tensor, error) {
	kind := func(l *modelLayer) string { return l.kind }
	if slices.ContainsFunc(from, func(l *kerasLayer) bool { return l.kind == "" }) {
		kind = func(*modelLayer) string { return "" } // the classes are not known: by order alone
		for _, l := range from {
			l.kind = ""
		}
	}
	files, models := map[string][]*kerasLayer{}, map[string][]*modelLayer{}
	for _, l := range from {
		files[l.kind], models[l.kind] = append(files[l.kind], l), nil
	}
	for _, l := range to {
		models[kind(l)] = append(models[kind(l)], l)
	}
	out := map[string]tensor.Tensor{}
	for _, k := range slices.Sorted(maps.Keys(models)) {
		if len(files[k]) != len(models[k]) {
			return nil, status.InvalidArgumentf("the file has %s with weights, the model has %s", count(k, files[k]), count(k, models[k]))
		}
		for i, l := range models[k] {
			if err := l.read(files[k][i], out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// count describes layers of a kind.
func count[L interface{ String() string }](kind string, layers []L) string {
	if kind != "" {
		kind += " "
	}
	if len(layers) == 0 {
		return "no " + kind + "layer"
	}
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.String()
	}
	return strings.TrimSpace(plural(len(layers), kind+"layer") + " (" + strings.Join(names, ", ") + ")")
}

func (l *modelLayer) String() string { return l.name }

// read reads the weights of a layer.
func (l *modelLayer) read(from *kerasLayer, out map[string]tensor.Tensor) error {
	if len(from.weights) != len(l.weights) {
		return status.InvalidArgumentf("the layer %s of the file has %s, the layer %s of the model has %d; does one of them have no bias?",
			from.name, plural(len(from.weights), "weight"), l.name, len(l.weights))
	}
	for i, w := range l.weights {
		got := tensor.Shape(from.weights[i].data.Shape())
		if !got.Equal(w.shape) {
			return status.InvalidArgumentf("%s has shape %v in the model, and in the file the layer %s has shape %v",
				w.name, w.shape, from.name, got)
		}
		values, err := from.weights[i].floats()
		if err != nil {
			return err
		}
		for _, v := range w.parts {
			n := int(v.Shape.NumElements())
			if out[v.Name], err = tensor.FromSlice(v.Shape, values[:n]); err != nil {
				return err
			}
			values = values[n:]
		}
	}
	return nil
}
