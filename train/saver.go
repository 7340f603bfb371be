package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Session runs steps. It is implemented by [weft.Session] and [MonitoredSession].
type Session interface {
	Run(ctx context.Context, feeds map[graph.Output]tensor.Tensor, fetches []graph.Output, targets []*graph.Node,
		opts ...weft.RunOption) ([]tensor.Tensor, error)
}

// SaverOptions configure a [Saver]. The zero value saves all global variables and keeps the last 5
// checkpoints.
type SaverOptions struct {
	// Variables maps names in checkpoints to variables; nil for all global variables under their
	// own names. Several variables with one name must be the parts of one [Partitioned] variable.
	Variables map[string][]*Variable
	// MaxToKeep is the number of recent checkpoints to keep: 5 if it is 0, all if it is negative.
	MaxToKeep int
	// KeepEvery is the interval at which one checkpoint is kept permanently; 0 for never.
	KeepEvery time.Duration
	// Sharded makes every task write the variables that it holds to files of its own.
	Sharded bool
	// StateFile is the name of the file that lists the checkpoints of a folder;
	// [checkpoint.StateFile] if empty.
	StateFile string
	// RelativePaths stores paths in the state file relative to the folder, so that the folder can
	// be moved. Paths in a folder that is given relative to the working directory are always
	// relative.
	RelativePaths bool
	// NoMetaGraph omits the file PREFIX.meta with the graph.
	NoMetaGraph bool
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

const defaultMaxToKeep = 5

// Saver saves variables to checkpoints and restores them. The tasks of the session write and read
// the files, so the files must be in a file system that all tasks and the caller share.
//
// A checkpoint that [Saver.Save] has returned is on disk and listed in the state file, even if the
// process or the machine fails right afterwards. The files that an interrupted save leaves are
// removed by the first Save of the next Saver for that folder, or by [Saver.Recover]. Only one
// Saver at a time may write to a folder. The methods of a Saver may be called concurrently.
type Saver struct {
	scope   *op.Scope
	options SaverOptions
	nodes   savedmodel.Saver // names of the three nodes below
	file    op.Output        // string scalar, fed with the prefix
	save    op.Output        // fetched to save
	restore *graph.Node      // run to restore

	lock chan struct{}    // capacity 1: a mutex that a context can interrupt
	kept *keptCheckpoints // nil before the first folder; guarded by lock
	meta metaCache        // guarded by lock
}

// NewSaver adds the nodes of a saver, in the name scope "save", to the graph, and adds the saver to
// the collection [Savers]. A graph may have several savers. It is a build error if there are no
// variables to save.
func NewSaver(s *op.Scope, options SaverOptions) *Saver {
	sv := buildSaver(s, options)
	if s.Err() == nil {
		s.AddToCollection(Savers, sv)
	}
	return sv
}

// buildSaver adds the nodes of a saver.
func buildSaver(s *op.Scope, options SaverOptions) *Saver {
	b := saverBuilder{scope: s.WithoutControlDependencies().WithoutDevices().SubScope("save"), vars: savedVariables(s, options.Variables)}
	sv := newSaver(s, options)
	if len(b.vars) == 0 {
		s.Fail(status.InvalidArgumentf("train: No variables to save"))
		return sv
	}
	if s.Err() != nil {
		return sv
	}
	b.addFilename()
	if options.Sharded {
		b.addSharded()
	} else {
		b.addWhole()
	}
	if s.Err() != nil {
		return sv
	}
	sv.file, sv.save, sv.restore = b.file, b.save, b.restore
	sv.nodes = savedmodel.Saver{
		Filename: savedmodel.OutputName(b.file), Save: savedmodel.OutputName(b.save), Restore: b.restore.Name,
		MaxToKeep: max(sv.options.MaxToKeep, 0), Sharded: options.Sharded, KeepEvery: float32(sv.options.KeepEvery.Hours()),
	}
	return sv
}

// never is the value that TensorFlow stores for savers that keep no checkpoint permanently.
const never = 10000 * time.Hour

func newSaver(s *op.Scope, options SaverOptions) *Saver {
	if options.MaxToKeep == 0 {
		options.MaxToKeep = defaultMaxToKeep
	}
	if options.KeepEvery <= 0 {
		options.KeepEvery = never
	}
	if options.StateFile == "" {
		options.StateFile = checkpoint.StateFile
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Saver{scope: s, options: options, lock: make(chan struct{}, 1)}
}

// SaverOf returns the saver whose nodes def names, in a graph that was imported. [ImportMetaGraph]
// calls it. The error has the code NotFound if the graph lacks a node.
func SaverOf(s *op.Scope, def savedmodel.Saver, options SaverOptions) (*Saver, error) {
	sv := newSaver(s, options)
	sv.nodes = def
	var err error
	if sv.file, err = savedmodel.FindOutput(s.Graph(), def.Filename); err != nil {
		return nil, err
	}
	if sv.save, err = savedmodel.FindOutput(s.Graph(), def.Save); err != nil {
		return nil, err
	}
	sv.restore, err = savedmodel.FindNode(s.Graph(), def.Restore)
	return sv, err
}

// Def returns the names of the nodes of the saver, as a MetaGraph stores them.
func (sv *Saver) Def() savedmodel.Saver { return sv.nodes }

// NoStep is the step of a checkpoint without a step in its prefix.
const NoStep = -1

// Save saves the variables under the prefix "path-step", or path if step is [NoStep]. It creates
// the folder if necessary. It returns the prefix after the checkpoint is on disk and listed in the
// state file of its folder, and the checkpoints beyond [SaverOptions.MaxToKeep] are removed. After
// an error the earlier checkpoints still exist.
func (sv *Saver) Save(ctx context.Context, sess Session, path string, step int64) (string, error) {
	if err := sv.acquire(ctx, "waiting for another checkpoint to be saved"); err != nil {
		return "", err
	}
	defer sv.release()
	prefix := path
	if step != NoStep {
		prefix = fmt.Sprintf("%s-%d", path, step)
	}
	dir := fileio.Dir(prefix)
	if err := (fileio.Files{}).MakeDirs(dir); err != nil {
		return "", err
	}
	if sv.kept == nil || sv.kept.dir != dir {
		if err := sv.recover(dir); err != nil {
			return "", err
		}
	}
	if err := sv.kept.begin(prefix); err != nil {
		return "", err
	}
	if err := sv.write(ctx, sess, prefix); err != nil {
		// frees the space of the parts that tasks have written, for a full disk
		checkpoint.Sweep(dir)
		return "", status.Errorf(status.CodeOf(err), "saving %s: %w", prefix, err)
	}
	return prefix, sv.kept.commit(prefix)
}

// write writes the files of a checkpoint and waits until they are on disk.
func (sv *Saver) write(ctx context.Context, sess Session, prefix string) error {
	if err := sv.Write(ctx, sess, prefix); err != nil {
		return err
	}
	if sv.options.NoMetaGraph {
		return nil
	}
	return sv.meta.write(sv, prefix+metaSuffix)
}

// Write saves the variables under a prefix and waits until the files are on disk. It does not
// change a state file or remove checkpoints. It is for SavedModels and for programs that manage
// checkpoints themselves.
func (sv *Saver) Write(ctx context.Context, sess Session, prefix string) error {
	feeds := map[graph.Output]tensor.Tensor{sv.file: tensor.Scalar(prefix)}
	if _, err := sess.Run(ctx, feeds, []graph.Output{sv.save}, nil); err != nil {
		return err
	}
	return checkpoint.Sync(prefix)
}

// Restore assigns the values in the checkpoint with the given prefix to the variables. The error
// has the code InvalidArgument if there is no such checkpoint, and NotFound if it lacks a variable.
func (sv *Saver) Restore(ctx context.Context, sess Session, prefix string) error {
	if !sv.nodes.FormatV1 && !checkpoint.Exists(prefix) {
		return status.InvalidArgumentf("The passed save_path is not a valid checkpoint: %s", prefix)
	}
	feeds := map[graph.Output]tensor.Tensor{sv.file: tensor.Scalar(prefix)}
	_, err := sess.Run(ctx, feeds, nil, []*graph.Node{sv.restore})
	if err != nil {
		return status.Errorf(status.CodeOf(err), "restoring %s: %w", prefix, err)
	}
	return nil
}

// Recover removes the files that an interrupted save has left in a folder, and adds the checkpoints
// of its state file to those that the saver manages: they count towards [SaverOptions.MaxToKeep].
// [Saver.Save] calls it for the first checkpoint in a folder.
func (sv *Saver) Recover(ctx context.Context, dir string) error {
	if err := sv.acquire(ctx, "waiting for a checkpoint to be saved"); err != nil {
		return err
	}
	defer sv.release()
	return sv.recover(fileio.Clean(dir))
}

func (sv *Saver) recover(dir string) error {
	kept, err := recoverCheckpoints(dir, &sv.options)
	if err != nil {
		return err
	}
	sv.kept = kept
	return nil
}

// LastCheckpoints returns the prefixes of the checkpoints that the saver manages, oldest first.
func (sv *Saver) LastCheckpoints(ctx context.Context) ([]string, error) {
	if err := sv.acquire(ctx, "waiting for a checkpoint to be saved"); err != nil {
		return nil, err
	}
	defer sv.release()
	if sv.kept == nil {
		return nil, nil
	}
	return sv.kept.prefixes(), nil
}

// LatestCheckpoint returns the prefix of the latest checkpoint in a folder, "" if the folder has
// none yet. The error has the code NotFound if the state file of the folder names a checkpoint
// whose files are missing, and DataLoss if it cannot be parsed.
func LatestCheckpoint(dir string) (string, error) { return checkpoint.Latest(dir) }

// acquire locks the saver. why describes the wait in the error if ctx ends first.
func (sv *Saver) acquire(ctx context.Context, why string) error {
	select {
	case sv.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return status.FromContext(ctx, why)
	}
}

func (sv *Saver) release() { <-sv.lock }

// savedVariable is a variable with its name in checkpoints.
type savedVariable struct {
	name   string
	isPart bool // the variable is a part of the tensor with that name
	*Variable
}

// savedVariables returns the variables to save in order of their names in checkpoints, the parts of
// a variable in order of their rows.
func savedVariables(s *op.Scope, named map[string][]*Variable) []savedVariable {
	if named == nil {
		named = map[string][]*Variable{}
		for _, v := range Variables(s, GlobalVariables) {
			named[v.wholeName()] = append(named[v.wholeName()], v)
		}
	}
	var out []savedVariable
	for _, name := range slices.Sorted(maps.Keys(named)) {
		for _, v := range named[name] {
			isPart := v.Part != nil && (len(named[name]) > 1 || name == v.Part.Name)
			if len(named[name]) > 1 && v.Part == nil {
				s.Fail(status.InvalidArgumentf("train: several variables are to be saved as %q, but %s is not a part of a partitioned variable", name, v.Name))
			}
			out = append(out, savedVariable{name, isPart, v})
		}
	}
	return out
}
