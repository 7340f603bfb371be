package checkpoint

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// State is the contents of a state file, which lists the checkpoints in a folder. Paths are
// prefixes. In the file they are absolute or relative to the folder, in a State absolute or
// relative to the working directory.
type State struct {
	Latest string    // "" before the first checkpoint is complete
	All    []string  // oldest first; the last is Latest
	Times  []float64 // times of All, in seconds since 1970; may be empty
	// time when a checkpoint was last kept permanently, in seconds since 1970; 0 for none
	LastPreserved float64
}

// StateFile is the default name of the state file.
const StateFile = "checkpoint"

// ReadState reads the state file of the given name in a folder, and joins relative paths in it with
// dir. The error has the code NotFound if there is no such file, and DataLoss if it cannot be
// parsed.
func ReadState(dir, file string) (*State, error) {
	path := fileio.Join(dir, file)
	text, err := (Store{}).files.Read(path)
	if err != nil {
		return nil, err
	}
	p := &pb.CheckpointState{}
	if err := prototext.Unmarshal(text, p); err != nil {
		return nil, status.DataLossf("%s: %w", path, err)
	}
	s := &State{
		Latest: below(dir, p.GetModelCheckpointPath()), Times: p.GetAllModelCheckpointTimestamps(),
		LastPreserved: p.GetLastPreservedTimestamp(),
	}
	for _, prefix := range p.GetAllModelCheckpointPaths() {
		s.All = append(s.All, below(dir, prefix))
	}
	return s, nil
}

func below(dir, path string) string {
	if path == "" || fileio.IsAbs(path) {
		return path
	}
	return fileio.Join(dir, path)
}

// Write replaces the state file of the given name in a folder and waits until it is on disk. A
// relative path in the file is relative to the folder, as in TensorFlow: if the path and dir are
// both relative to the working directory, Write rewrites the path. Absolute paths stay absolute,
// unless relative is true and they are below the folder, which can then be moved.
func (s *State) Write(dir, file string, relative bool) error {
	store := func(path string) string {
		if path == "" || fileio.IsAbs(path) && !relative {
			return path
		}
		rel, err := relativeTo(dir, path)
		if err != nil || fileio.IsAbs(path) && !filepath.IsLocal(rel) {
			return path
		}
		return rel
	}
	var b strings.Builder
	fmt.Fprintf(&b, "model_checkpoint_path: %s\n", quote(store(s.Latest)))
	for _, prefix := range s.All {
		fmt.Fprintf(&b, "all_model_checkpoint_paths: %s\n", quote(store(prefix)))
	}
	for _, t := range s.Times {
		fmt.Fprintf(&b, "all_model_checkpoint_timestamps: %s\n", seconds(t))
	}
	if s.LastPreserved != 0 {
		fmt.Fprintf(&b, "last_preserved_timestamp: %s\n", seconds(s.LastPreserved))
	}
	return Store{}.files.Write(fileio.Join(dir, file), []byte(b.String()))
}

// relativeTo returns a path relative to dir. Relative arguments are relative to the working
// directory.
func relativeTo(dir, path string) (string, error) {
	dir, err := fileio.Abs(dir)
	if err != nil {
		return "", err
	}
	if path, err = fileio.Abs(path); err != nil {
		return "", err
	}
	return fileio.Rel(dir, path)
}

func quote(s string) string { return `"` + tensor.Escape(s, true) + `"` }

// seconds formats a time as Python does.
func seconds(t float64) string {
	s := strconv.FormatFloat(t, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Exists reports whether there is a checkpoint in either format with the given prefix or, in the
// format V1, with names that match it as a pattern.
func Exists(prefix string) bool {
	files := Store{}.files
	return files.Exists(IndexFile(prefix)) || files.Exists(prefix) || len(shardsV1(prefix)) > 0
}

// sharded matches patterns for the files that several tasks have written for a checkpoint in the
// format V1.
var sharded = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-\?{5}-of-[0-9]{5,}$`) })

// shardsV1 returns the existing files that match such a pattern.
func shardsV1(pattern string) []string {
	if !sharded().MatchString(pattern) {
		return nil
	}
	paths, _ := Store{}.files.Match(pattern) // without limits it does not fail
	return paths
}

// Latest returns the prefix of the latest checkpoint in a folder. It returns "" if the folder has
// no state file, or one that was written before the first checkpoint was complete. The error has
// the code NotFound if the state file names a checkpoint whose files are missing, and DataLoss if
// the state file cannot be parsed.
func Latest(dir string) (string, error) {
	s, err := ReadState(dir, StateFile)
	switch {
	case status.CodeOf(err) == status.NotFound:
		return "", nil
	case err != nil:
		return "", err
	case s.Latest == "" || Exists(s.Latest):
		return s.Latest, nil
	}
	return "", s.missing(fileio.Join(dir, StateFile))
}

// missing returns the error for a state file whose latest checkpoint does not exist.
func (s *State) missing(file string) error {
	others := slices.DeleteFunc(slices.Clone(s.All), func(prefix string) bool { return !Exists(prefix) })
	rest := "none of the checkpoints that it lists exists"
	if len(others) > 0 {
		rest = "of the others that it lists there are " + strings.Join(others, ", ")
	}
	return status.NotFoundf("%s names %s as the latest checkpoint, and there is no file %s; %s. "+
		"Put the checkpoint back, correct %s, or remove it to start without a checkpoint", file, s.Latest, IndexFile(s.Latest), rest, file)
}

// Remove removes the files of a checkpoint in either format. It removes the index first, so that no
// incomplete checkpoint can be opened. It returns nil if there is no such checkpoint.
func Remove(prefix string) error {
	var s Store
	err := s.files.Remove(IndexFile(prefix))
	for _, file := range s.dataFiles(prefix) {
		_ = s.files.Remove(file) // without the index a file that stays is not part of a checkpoint
	}
	if status.CodeOf(err) == status.NotFound {
		err = removeV1(prefix)
	}
	return err
}

func removeV1(prefix string) error {
	for _, file := range append(shardsV1(prefix), prefix) {
		if err := (Store{}).files.Remove(file); err != nil && status.CodeOf(err) != status.NotFound {
			return err
		}
	}
	return nil
}

// parts matches the names of the folders in which the tasks of a cluster write the parts of a
// sharded checkpoint before they are merged.
var parts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`_temp_[0-9a-f]{32}$|_temp$`) })

// Sweep removes the files of interrupted saves from a folder: temporary files, parts that were not
// merged, and data files without an index. Only the process that writes the checkpoints in the
// folder may call it, and not during a save.
func Sweep(dir string) {
	files := Store{}.files
	files.Sweep(dir)
	entries, err := files.ReadDir(dir)
	if err != nil {
		return // there is no folder
	}
	for _, e := range entries {
		path := fileio.Join(dir, e.Name())
		at := strings.LastIndex(path, ".data-")
		switch {
		case e.IsDir() && parts().MatchString(e.Name()):
			_ = files.RemoveAll(path) // what remains is swept again
		case at > 0 && dataSuffix().MatchString(path[at:]) && !Exists(path[:at]):
			_ = files.Remove(path)
		}
	}
}
