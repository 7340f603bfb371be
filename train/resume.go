package train

import (
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/status"
)

// checkResume fails if the latest checkpoint of the folder is one of another model. What else may
// be wrong with the checkpoint is an error of the session that restores it.
func (f *fitting) checkResume() error {
	if f.saver == nil {
		return nil
	}
	prefix, err := LatestCheckpoint(f.options.Dir)
	if err != nil || prefix == "" {
		return nil
	}
	r, err := checkpoint.Open(prefix)
	if err != nil {
		return nil // the tasks may see other files
	}
	defer r.Close()
	for _, v := range f.built.Variables {
		info, err := r.Lookup(v.Name)
		switch {
		case err != nil:
			return otherModel(f.options.Dir, "it has no %s", v.Name)
		case len(info.Slices) > 0: // of a partitioned variable
		case info.DType != v.DType || !info.Shape.Equal(v.Shape):
			return otherModel(f.options.Dir, "%s is %v%v there and %v%v in the model", v.Name, info.DType, info.Shape, v.DType, v.Shape)
		}
	}
	return nil
}

func otherModel(dir, why string, args ...any) error {
	return status.FailedPreconditionf("train: the folder %s has the checkpoint of another model: "+why+"; give another FitOptions.Dir, or remove the folder",
		append([]any{dir}, args...)...)
}
