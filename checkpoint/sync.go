package checkpoint

import "github.com/weft-ml/weft/internal/format/fileio"

// Sync waits until the files of a checkpoint in the format V2 are on disk. It is for checkpoints of
// other writers; [Writer.Close] has waited already.
func Sync(prefix string) error {
	var s Store
	for _, path := range append(s.dataFiles(prefix), IndexFile(prefix)) {
		if err := s.sync(path); err != nil {
			return err
		}
	}
	return s.files.SyncDir(fileio.Dir(prefix))
}

func (s Store) sync(path string) error {
	f, err := s.files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
