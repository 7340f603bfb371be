package nn

import (
	"path"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/format/hdf5"
	"github.com/weft-ml/weft/status"
)

// addLegacyModel adds the layers of a model in HDF5, the format of Keras 2.
func (f *kerasFile) addLegacyModel(root *hdf5.Object) error {
	group, err := root.Find("model_weights")
	if err != nil {
		return err
	}
	config, _, err := root.Strings("model_config")
	if err != nil {
		return err
	}
	kinds := map[string]string{}
	if len(config) == 1 {
		model, err := readKerasConfig([]byte(config[0]))
		if err != nil {
			return err
		}
		for _, layer := range model.Config.Layers {
			if len(layer.Config.Layers) > 0 {
				return status.Unimplementedf("the layer %s is a model within the model; save the whole as a .keras file", layer.Config.Name)
			}
			kinds[layer.Config.Name] = snakeCase(layer.Class)
		}
	}
	return f.addLegacy(group, kinds)
}

// addLegacy adds the layers of a group whose attributes name layers and their weights.
func (f *kerasFile) addLegacy(group *hdf5.Object, kinds map[string]string) error {
	layers, ok, err := nameList(group, "layer_names")
	if err != nil {
		return err
	}
	if !ok {
		return status.InvalidArgumentf("the HDF5 file has no weights of Keras: %s has no attribute layer_names", group.Path())
	}
	for _, name := range layers {
		at, err := group.Find(name)
		if err != nil {
			return err
		}
		weights, _, err := nameList(at, "weight_names")
		if err != nil {
			return err
		}
		l := &kerasLayer{name: name, kind: kinds[name]}
		for _, w := range weights {
			if strings.Contains(path.Base(w), "seed_generator_state") {
				continue
			}
			array, err := at.Find(w)
			if err != nil {
				return err
			}
			if array.Dataset() == nil {
				return status.DataLossf("%s is not an array", array.Path())
			}
			l.weights = append(l.weights, kerasWeight{data: array.Dataset()})
		}
		if len(l.weights) > 0 {
			f.layers = append(f.layers, l)
		}
	}
	return nil
}

// nameList returns an attribute of strings, which Keras splits into "name0", "name1" … if it is
// larger than an object header.
func nameList(o *hdf5.Object, name string) ([]string, bool, error) {
	all, ok, err := o.Strings(name)
	if ok || err != nil {
		return all, ok, err
	}
	for i := 0; ; i++ {
		part, more, err := o.Strings(name + strconv.Itoa(i))
		if err != nil || !more {
			return all, i > 0, err
		}
		all = append(all, part...)
	}
}
