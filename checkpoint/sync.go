package checkpoint

import (
	"os"
	"path/filepath"

	"github.com/weft-ml/weft/internal/format/fileio"
)

// Sync waits until the files of a checkpoint in the format V2 are on disk. It is for checkpoints of
// other writers; [Writer.Close] has waited already.
func Sync(prefix string) error {
	for _, path := range append(dataFiles(prefix), IndexFile(prefix)) {
		if err := syncFile(path); err != nil {
			return err
		}
	}
	return fileio.SyncDir(filepath.Dir(prefix))
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fileio.Error(path, err)
	}
	defer f.Close()
	return fileio.Error(path, f.Sync())
}
