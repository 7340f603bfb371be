package nn

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/hdf5"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// kerasFile is an open file of Keras.
type kerasFile struct {
	layers []*kerasLayer // that have weights, in their order
	file   *fileio.File
}

// kerasLayer is a layer of a file.
type kerasLayer struct {
	name    string
	kind    string // class in the form of names, such as "conv2d"; "" if not known
	weights []kerasWeight
}

func (l *kerasLayer) String() string { return l.name }

// kerasWeight is an array of a layer.
type kerasWeight struct {
	data     *hdf5.Dataset
	bfloat16 bool
}

// floats returns the elements.
func (w kerasWeight) floats() ([]float32, error) {
	if !w.bfloat16 {
		return w.data.Floats()
	}
	b, err := w.data.Bytes()
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(b)/2)
	for i := range out {
		out[i] = tensor.BFloat16Elem(uint16(b[2*i]) | uint16(b[2*i+1])<<8).Float32()
	}
	return out, nil
}

// kerasConfig is the part of a configuration, of a model or a layer, that says which layers there
// are. A layer that has layers is a model.
type kerasConfig struct {
	Class  string `json:"class_name"`
	Config struct {
		Name   string        `json:"name"`
		Layers []kerasConfig `json:"layers"`
	} `json:"config"`
}

func readKerasConfig(text []byte) (model kerasConfig, err error) {
	if err := json.Unmarshal(text, &model); err != nil {
		return model, status.DataLossf("the configuration of the model: %w", err)
	}
	return model, nil
}

// openKeras opens a file and lists its layers.
func openKeras(name string) (*kerasFile, error) {
	file, err := fileio.Files{}.Open(name)
	if err != nil {
		if status.CodeOf(err) == status.NotFound {
			return nil, status.NotFoundf("the file does not exist")
		}
		return nil, status.Errorf(status.InvalidArgument, "%w", err)
	}
	f := &kerasFile{file: file}
	if err := f.list(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// list lists the layers of the file.
func (f *kerasFile) list() error {
	size, err := f.file.Size()
	if err != nil {
		return status.Errorf(status.InvalidArgument, "%w", err)
	}
	var weights io.ReaderAt = f.file
	config := []byte(nil)
	if archive, err := zip.NewReader(f.file, size); err == nil {
		if config, err = member(archive, "config.json"); err != nil {
			return err
		}
		content, err := member(archive, "model.weights.h5")
		if err != nil {
			return err
		}
		weights, size = bytes.NewReader(content), int64(len(content))
	}
	h, err := hdf5.Open(weights, size)
	if err != nil {
		return err
	}
	root, err := h.Root()
	if err != nil {
		return err
	}
	switch names, err := root.Names(); {
	case err != nil:
		return err
	case config != nil:
		model, err := readKerasConfig(config)
		if err != nil {
			return err
		}
		return f.addModel(root, model)
	case slices.Contains(names, "model_weights"):
		return f.addLegacyModel(root)
	case slices.Contains(names, "layers"):
		return f.addGroups(root)
	default:
		return f.addLegacy(root, nil)
	}
}

func (f *kerasFile) close() { _ = f.file.Close() } // it was only read

// member returns the content of a file of an archive.
func member(archive *zip.Reader, name string) ([]byte, error) {
	r, err := archive.Open(name)
	if err != nil {
		return nil, status.DataLossf("the archive has no %s; is it a model of Keras 3?", name)
	}
	defer r.Close()
	// Keras does not compress. The content grows with the input, so a false size allocates nothing.
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, status.DataLossf("%s of the archive: %w", name, err)
	}
	return b, nil
}

// addModel adds the layers of a model of Keras 3, whose groups are named after their classes.
func (f *kerasFile) addModel(group *hdf5.Object, model kerasConfig) error {
	if len(model.Config.Layers) == 0 {
		return status.Unimplementedf("the model is of the class %s, which lists no layers; save a Sequential or functional model", model.Class)
	}
	seen := map[string]int{}
	for _, layer := range model.Config.Layers {
		kind := snakeCase(layer.Class)
		name := kind
		if n := seen[kind]; n > 0 {
			name = fmt.Sprintf("%s_%d", kind, n)
		}
		seen[kind]++
		at, err := group.Find("layers/" + name)
		if status.CodeOf(err) == status.NotFound && kind == "input_layer" {
			continue
		}
		if err != nil {
			return err
		}
		if len(layer.Config.Layers) > 0 { // a model within the model
			if err := f.addModel(at, layer); err != nil {
				return err
			}
			continue
		}
		if err := f.add(at, layer.Config.Name, kind); err != nil {
			return err
		}
	}
	return nil
}

// addGroups adds the layers of a file of weights of Keras 3, which has no configuration.
func (f *kerasFile) addGroups(root *hdf5.Object) error {
	layers, err := root.Find("layers")
	if err != nil {
		return err
	}
	names, err := layers.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		at, err := layers.Find(name)
		if err != nil {
			return err
		}
		members, err := at.Names()
		if err != nil {
			return err
		}
		if slices.Contains(members, "layers") {
			return status.Unimplementedf("%s is a model within the model; save the whole as a .keras file", at.Path())
		}
	}
	index := func(name string) int { // the names end with "", "_1", "_2" …
		n, err := strconv.Atoi(name[strings.LastIndexByte(name, '_')+1:])
		if err != nil {
			return 0
		}
		return n
	}
	slices.SortStableFunc(names, func(a, b string) int { return index(a) - index(b) })
	for _, name := range names {
		at, err := layers.Find(name)
		if err != nil {
			return err
		}
		kind := name
		if i := index(name); i > 0 {
			kind = strings.TrimSuffix(name, "_"+strconv.Itoa(i))
		}
		if err := f.add(at, name, kind); err != nil {
			return err
		}
	}
	return nil
}

// add adds a layer of Keras 3 if it has weights.
func (f *kerasFile) add(group *hdf5.Object, name, kind string) error {
	l := &kerasLayer{name: name, kind: kind}
	if err := l.collect(group, 0); err != nil {
		return err
	}
	if len(l.weights) > 0 {
		f.layers = append(f.layers, l)
	}
	return nil
}

// innerLayers are the names of the layers within layers, in the order of their weights.
var innerLayers = []string{"vars", "layer", "cell", "forward_layer", "backward_layer", "query_dense", "key_dense", "value_dense", "output_dense"}

// maxLayerDepth bounds the nesting of layers within a layer.
const maxLayerDepth = 8

// collect adds the weights of a group: its own, and those of the layers within the layer.
func (l *kerasLayer) collect(group *hdf5.Object, depth int) error {
	if depth > maxLayerDepth {
		return status.DataLossf("%s is nested too deeply", group.Path())
	}
	names, err := group.Names()
	if err != nil {
		return err
	}
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(innerLayers, a) - slices.Index(innerLayers, b) })
	for _, name := range names {
		if name == "seed_generator" { // of random numbers; not a weight
			continue
		}
		at, err := group.Find(name)
		if err != nil {
			return err
		}
		before := len(l.weights)
		if name == "vars" {
			err = l.vars(at)
		} else if at.IsGroup() {
			err = l.collect(at, depth+1)
		}
		if err != nil {
			return err
		}
		if len(l.weights) > before && !slices.Contains(innerLayers, name) {
			return status.Unimplementedf("%s has weights of a layer within the layer %s, which package nn does not have", at.Path(), l.name)
		}
	}
	return nil
}

// vars adds the arrays "0", "1" … of a group.
func (l *kerasLayer) vars(group *hdf5.Object) error {
	names, err := group.Names()
	if err != nil {
		return err
	}
	for i := range names {
		at, err := group.Find(strconv.Itoa(i))
		if err != nil {
			return err
		}
		if at.Dataset() == nil {
			return status.DataLossf("%s is not an array", at.Path())
		}
		w := kerasWeight{data: at.Dataset()}
		if class, size := w.data.Type(); class == hdf5.Opaque {
			dtype, _, err := at.Strings("dtype")
			if err != nil {
				return err
			}
			if w.bfloat16 = size == 2 && slices.Equal(dtype, []string{"bfloat16"}); !w.bfloat16 {
				return status.Unimplementedf("%s has elements of the type %q", at.Path(), dtype)
			}
		}
		l.weights = append(l.weights, w)
	}
	return nil
}

// snakeCase returns the name of a class as Keras uses it in names: "conv2d" for "Conv2D".
func snakeCase(class string) string {
	r := []rune(class)
	var out []rune
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			out = append(out, '_')
		}
		out = append(out, unicode.ToLower(c))
	}
	return string(out)
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
