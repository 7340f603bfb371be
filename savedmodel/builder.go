package savedmodel

import (
	"fmt"
	"io"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// Builder writes a SavedModel. It writes to a temporary folder next to that of the model, and
// [Builder.Save] renames the folder. In a store, whose folders cannot be renamed, it writes to the
// folder itself, and the file that makes the folder a model comes last. The methods must not be
// called concurrently.
type Builder struct {
	files  fileio.Files
	dir    string // folder of the model
	tmp    string // temporary folder; "" after Save or Abort
	model  *pb.SavedModel
	assets map[string]string // name in the model → path of the original file
}

// CheckCreate returns the error that [Create] would return for a folder: AlreadyExists if it is not
// empty, or an error of the file system. Programs that export a model at the end of a long run call
// it at the start. It creates the parent folders of dir.
func CheckCreate(dir string) error {
	b, err := Create(dir)
	if err != nil {
		return err
	}
	b.Abort()
	return nil
}

// Create returns a builder of a SavedModel in a folder that must be empty or not exist
// (AlreadyExists). It creates the parent folders. The caller must call Save or Abort; Abort after
// Save does nothing.
func Create(dir string) (*Builder, error) {
	if dir == "" {
		return nil, status.InvalidArgumentf("a SavedModel needs the name of a folder")
	}
	var files fileio.Files
	entries, err := files.ReadDir(dir)
	if err != nil && fileio.IsRemote(dir) && status.CodeOf(err) != status.NotFound {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, status.AlreadyExistsf("Export directory %s already exists, and isn't empty. Please choose a different export "+
			"directory, or delete all the contents of the specified directory.", dir)
	}
	model := &pb.SavedModel{SavedModelSchemaVersion: schemaVersion}
	if fileio.IsRemote(dir) {
		return &Builder{dir: dir, tmp: dir, model: model, assets: map[string]string{}}, nil
	}
	parent := fileio.Dir(fileio.Clean(dir))
	if err := files.MakeDirs(parent); err != nil {
		return nil, err
	}
	tmp := fileio.Join(parent, fmt.Sprintf("%s.weft-tmp-%016x", fileio.Base(fileio.Clean(dir)), rand.Uint64()))
	if err := files.MakeDirs(fileio.Join(tmp, variables)); err != nil {
		return nil, err
	}
	return &Builder{dir: dir, tmp: tmp, model: model, assets: map[string]string{}}, nil
}

// Variables returns the prefix for the checkpoint with the values of the variables. The caller
// writes the checkpoint before Save.
func (b *Builder) Variables() string { return fileio.Join(b.tmp, variables, variables) }

// Add adds a MetaGraph. Its tags must differ from those of the other MetaGraphs (AlreadyExists).
func (b *Builder) Add(m *MetaGraph) error {
	for _, other := range b.model.GetMetaGraphs() {
		if fmt.Sprint(sortedTags(other.GetMetaInfoDef().GetTags())) == fmt.Sprint(sortedTags(m.Tags)) {
			return status.AlreadyExistsf("the model already has a MetaGraph with the tags %q", m.Tags)
		}
	}
	p, err := m.encode()
	if err != nil {
		return err
	}
	b.model.MetaGraphs = append(b.model.MetaGraphs, p)
	return nil
}

// AddAsset copies a file to the model and returns its name there. If another file with the same
// base name was added before, the name gets a numeric suffix.
func (b *Builder) AddAsset(path string) (string, error) {
	if _, err := b.files.Stat(path); err != nil {
		return "", err
	}
	name := fileio.Base(path)
	for i := 1; b.assets[name] != "" && b.assets[name] != path; i++ {
		name = fmt.Sprintf("%s_%d", fileio.Base(path), i)
	}
	if b.assets[name] == path {
		return name, nil
	}
	if err := b.copyFile(fileio.Join(b.tmp, assets, name), path); err != nil {
		return "", err
	}
	b.assets[name] = path
	return name, nil
}

// copyFile copies a file and waits until the copy is on disk.
func (b *Builder) copyFile(to, from string) error {
	in, err := b.files.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := b.files.MakeDirs(fileio.Dir(to)); err != nil {
		return err
	}
	out, err := b.files.Create(to)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Commit()
}

// Save completes the model and waits until it is on disk. After an error the folder contains no
// model.
func (b *Builder) Save() error {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(b.model)
	if err != nil {
		return status.InvalidArgumentf("%w", err)
	}
	if err := b.files.Write(fileio.Join(b.tmp, modelFile), data); err != nil {
		return err
	}
	if b.tmp == b.dir {
		b.tmp = ""
		return nil
	}
	if err := b.files.SyncDir(b.tmp); err != nil {
		return err
	}
	if err := b.files.Remove(b.dir); err != nil && status.CodeOf(err) != status.NotFound {
		return err
	}
	if err := b.files.Rename(b.tmp, b.dir); err != nil {
		return err
	}
	b.tmp = ""
	return b.files.SyncDir(fileio.Dir(fileio.Clean(b.dir)))
}

// Abort removes the temporary folder.
func (b *Builder) Abort() {
	if b.tmp != "" {
		_ = b.files.RemoveAll(b.tmp) // files that remain are not part of a model
		b.tmp = ""
	}
}
