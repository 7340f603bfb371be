// Package checkpoint reads and writes TensorFlow's checkpoints: named tensors in files.
//
// A checkpoint in the format V2, a tensor bundle, is identified by the common prefix of its files.
// The table PREFIX.index maps names to entries (element type, shape, position, checksum), and the
// data files PREFIX.data-00000-of-00002 … hold the elements. A large tensor may be stored in
// slices. A checkpoint in the older format V1 is a table that also holds the elements, or several
// such tables, whose names match a pattern.
//
//	w, err := checkpoint.Create("/tmp/model.ckpt-100")
//	…
//	defer w.Abort()
//	if err := w.Add("weights", &weights); err != nil {
//		return err
//	}
//	return w.Close() // the checkpoint is complete and on disk
//
//	r, err := checkpoint.Open("/tmp/model.ckpt-100") // either format
//	…
//	defer r.Close()
//	weights, err := r.Read("weights")
//
// The files are identical to those that TensorFlow writes for the same tensors. A checkpoint
// appears complete or not at all, even if the process dies meanwhile; files that a dead process has
// left are removed when the next checkpoint is written to the same folder. A damaged file is an
// error with the code DataLoss that names the file. Readers do not allocate more memory than the
// sizes of the files justify.
package checkpoint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Info describes a tensor in a checkpoint.
type Info struct {
	Name   string
	DType  tensor.DType
	Shape  tensor.Shape // of the whole tensor
	Slices []Slice      // nil if the tensor is stored as a whole
}

// IndexFile returns the name of the index of the checkpoint with the given prefix.
func IndexFile(prefix string) string { return prefix + ".index" }

// DataFile returns the name of the data file of one of several shards, numbered from 0.
func DataFile(prefix string, shard, shards int) string {
	return fmt.Sprintf("%s.data-%05d-of-%05d", prefix, shard, shards)
}

var dataSuffix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.data-[0-9]{5,}-of-[0-9]{5,}$`) })

// dataFiles returns the existing data files of a checkpoint.
func (s Store) dataFiles(prefix string) []string {
	entries, err := s.files.ReadDir(fileio.Dir(prefix))
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries {
		path := fileio.Join(fileio.Dir(prefix), e.Name())
		if suffix, ok := strings.CutPrefix(e.Name(), fileio.Base(prefix)); ok && dataSuffix().MatchString(suffix) {
			files = append(files, path)
		}
	}
	return files
}

// in adds the name of the file to an error about its contents.
func in(file string, err error) error {
	if err == nil {
		return nil
	}
	return status.Errorf(status.CodeOf(err), "%s: %w", file, err)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
