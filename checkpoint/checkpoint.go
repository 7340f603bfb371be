// Package checkpoint reads and writes TensorFlow's checkpoints: named tensors in files.
//
// A checkpoint in the format that TensorFlow calls V2, a tensor bundle, is known by the common
// prefix of its files. The table PREFIX.index maps names to entries (element type, shape, place,
// checksum), and PREFIX.data-00000-of-00002 and so on hold the elements. A large tensor may be
// stored in pieces, each with its place in the whole. A checkpoint in the older format, V1, is one
// table, or several that a pattern of names finds, with the elements inside.
//
//	w, err := checkpoint.Create("/tmp/model.ckpt-100")
//	…
//	defer w.Abort()
//	if err := w.Add("weights", &weights); err != nil {
//		return err
//	}
//	return w.Close() // now it is there, and on disk
//
//	r, err := checkpoint.Open("/tmp/model.ckpt-100") // either format
//	…
//	defer r.Close()
//	weights, err := r.Read("weights")
//
// Files are byte for byte those that TensorFlow writes for the same tensors. A checkpoint appears
// whole or not at all, also when the process dies on the way, and what a dead process has left is
// removed when the next checkpoint is written to the same folder. Readers return the values that
// were stored or an error, with code DataLoss and the name of the file when it is damaged; they
// allocate no more memory than the sizes of the files justify.
package checkpoint

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Info is what a checkpoint says of a tensor.
type Info struct {
	Name  string
	DType tensor.DType
	Shape tensor.Shape // of the whole tensor
	// Slices are the pieces that are stored; nil for a tensor that is stored whole.
	Slices []Slice
}

// IndexFile returns the name of the index of the checkpoint with the given prefix.
func IndexFile(prefix string) string { return prefix + ".index" }

// DataFile returns the name of a file with elements of the checkpoint with the given prefix.
func DataFile(prefix string, shard, shards int) string {
	return fmt.Sprintf("%s.data-%05d-of-%05d", prefix, shard, shards)
}

var dataSuffix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.data-[0-9]{5,}-of-[0-9]{5,}$`) })

// dataFiles returns the existing files with elements of a prefix.
func dataFiles(prefix string) []string {
	entries, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(prefix), e.Name())
		if suffix, ok := strings.CutPrefix(e.Name(), filepath.Base(prefix)); ok && dataSuffix().MatchString(suffix) {
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
