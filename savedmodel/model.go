package savedmodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Names of files in a SavedModel, and the version of its format.
const (
	modelFile     = "saved_model.pb"
	modelTextFile = "saved_model.pbtxt"
	variables     = "variables"
	assets        = "assets"
	schemaVersion = 1
)

// Model is a SavedModel in memory, without the values of its variables.
type Model struct {
	Dir        string
	MetaGraphs []*MetaGraph
}

// Open reads a SavedModel from its folder. The error has the code NotFound if there is none, and
// DataLoss if it cannot be parsed.
func Open(dir string) (*Model, error) {
	p, err := read(dir)
	if err != nil {
		return nil, err
	}
	m := &Model{Dir: dir}
	for i, g := range p.GetMetaGraphs() {
		decoded, err := decode(g)
		if err != nil {
			return nil, status.Errorf(status.CodeOf(err), "%s: MetaGraph %d: %w", dir, i, err)
		}
		m.MetaGraphs = append(m.MetaGraphs, decoded)
	}
	return m, nil
}

// versionsIn returns text that names a version of a model in a folder; "" if there is none.
func versionsIn(dir string) string {
	entries, err := fileio.Files{}.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range slices.Backward(entries) {
		if _, err := strconv.ParseUint(e.Name(), 10, 63); err == nil && e.IsDir() {
			return "; it is a folder of versions, such as " + fileio.Join(dir, e.Name())
		}
	}
	return ""
}

// IsModel reports whether a folder contains a SavedModel.
func IsModel(dir string) bool {
	for _, name := range []string{modelFile, modelTextFile} {
		if (fileio.Files{}).Exists(fileio.Join(dir, name)) {
			return true
		}
	}
	return false
}

func read(dir string) (*pb.SavedModel, error) {
	p := &pb.SavedModel{}
	path := fileio.Join(dir, modelFile)
	b, err := fileio.Files{}.Read(path)
	parse, memory := proto.Unmarshal, func() bool { return protomem.Take(p.ProtoReflect().Descriptor(), b) }
	if status.CodeOf(err) == status.NotFound {
		path, parse = fileio.Join(dir, modelTextFile), prototext.Unmarshal
		memory = func() bool { return membudget.Take(protomem.TextMemory(b)) }
		b, err = fileio.Files{}.Read(path)
	}
	switch {
	case status.CodeOf(err) == status.NotFound:
		return nil, status.NotFoundf("SavedModel file does not exist at: %s/{%s|%s}%s", dir, modelTextFile, modelFile, versionsIn(dir))
	case err != nil:
		return nil, err
	}
	if !memory() { // a message takes two bytes of the file, and 200 of memory
		return nil, status.ResourceExhaustedf("%s; out of memory: there is none for the messages of the file (--memory-limit)", path)
	}
	if err := parse(b, p); err != nil {
		return nil, status.DataLossf("Cannot parse file %s: %w.", path, err)
	}
	return p, nil
}

// MetaGraph returns the MetaGraph with exactly the given tags, in any order. The error has the code
// NotFound and lists the tags that exist.
func (m *Model) MetaGraph(tags ...string) (*MetaGraph, error) {
	want := sortedTags(tags)
	var have []string
	for _, g := range m.MetaGraphs {
		got := sortedTags(g.Tags)
		if slices.Equal(got, want) {
			return g, nil
		}
		have = append(have, fmt.Sprintf("{%s}", strings.Join(got, ", ")))
	}
	return nil, status.NotFoundf("MetaGraphDef associated with tags {%s} could not be found in SavedModel %s, with available tags %s",
		strings.Join(want, ", "), m.Dir, strings.Join(have, ", "))
}

func sortedTags(tags []string) []string { return slices.Compact(slices.Sorted(slices.Values(tags))) }

// Variables returns the prefix of the checkpoint with the values of the variables. A model without
// variables has no such checkpoint.
func (m *Model) Variables() string { return fileio.Join(m.Dir, variables, variables) }

// AssetPath returns the path of an asset.
func (m *Model) AssetPath(a Asset) string { return fileio.Join(m.Dir, assets, a.Filename) }
