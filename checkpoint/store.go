package checkpoint

import "github.com/weft-ml/weft/internal/format/fileio"

// Store is where checkpoints are. The zero Store is the file system. The functions of this package
// with the names of its methods use that.
type Store struct{ files fileio.Files }

// In returns the store of a task's operation, which may have access to some folders only. Readers
// and writers of the store must not be used after the end of its context.
func In(files fileio.Files) Store { return Store{files} }
