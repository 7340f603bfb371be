package train

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Session runs steps: a [weft.Session], or one that does more around each step.
type Session interface {
	Run(ctx context.Context, feeds map[graph.Output]tensor.Tensor, fetches []graph.Output, targets []*graph.Node,
		opts ...weft.RunOption) ([]tensor.Tensor, error)
}

// SaverOptions say what a [Saver] saves and how many checkpoints it keeps.
type SaverOptions struct {
	// Variables are what is saved, by their names in checkpoints; nil for all global variables
	// under their own names. Several with one name are the parts of one variable ([Partitioned]).
	Variables map[string][]*Variable
	// MaxToKeep is the number of recent checkpoints that are kept: 5 if it is 0, all if it is
	// negative.
	MaxToKeep int
	// KeepEvery keeps a checkpoint for good whenever so much time has passed; 0 for never.
	KeepEvery time.Duration
	// Sharded lets every task write the variables that it has, in files of its own.
	Sharded bool
	// StateFile is the name of the file that lists the checkpoints of a folder;
	// [checkpoint.StateFile] if empty.
	StateFile string
	// RelativePaths writes the paths in the state file relative to the folder, which can then be
	// moved.
	RelativePaths bool
	// NoMetaGraph leaves out the file PREFIX.meta with the graph.
	NoMetaGraph bool
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

const defaultMaxToKeep = 5

// Saver saves variables to checkpoints and restores them. The tasks of the session write and read
// the files, so that these must be in a file system that all of them and the caller share.
//
// A checkpoint that [Saver.Save] has returned is on disk. If the process or the machine dies at any
// time, the last one that was returned is there and listed in the state file; what an interrupted
// save has left is removed by the first Save of the next Saver for that folder, or by
// [Saver.Recover]. One Saver at a time may write to a folder.
type Saver struct {
	scope   *op.Scope
	options SaverOptions
	nodes   savedmodel.Saver // the names of the following
	file    op.Output
	save    op.Output
	restore *graph.Node

	turn chan struct{} // has room for one: who puts something in owns the following
	kept *keptCheckpoints
	meta metaCache
}

// NewSaver adds the nodes of a saver, below "save", to the graph, and the saver to the collection
// [Savers]. A graph may have several savers.
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

// never is what TensorFlow writes down for savers that keep no checkpoint for good.
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
	return &Saver{scope: s, options: options, turn: make(chan struct{}, 1)}
}

// SaverOf returns the saver whose nodes a MetaGraph names, after the graph was imported (see
// [ImportMetaGraph]).
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

// Def returns the names of the nodes of the saver, as MetaGraphs have them.
func (sv *Saver) Def() savedmodel.Saver { return sv.nodes }

// NoStep is the step of a checkpoint whose prefix has none.
const NoStep = -1

// Save saves the variables under the prefix "path-step", or path if step is [NoStep], and returns
// the prefix when the checkpoint is on disk and stands in the state file of its folder. Then it
// removes the checkpoints that are too many. After an error the checkpoints of before are still
// there.
func (sv *Saver) Save(ctx context.Context, sess Session, path string, step int64) (string, error) {
	if err := sv.take(ctx, "waiting for another checkpoint to be saved"); err != nil {
		return "", err
	}
	defer sv.leave()
	prefix := path
	if step != NoStep {
		prefix = fmt.Sprintf("%s-%d", path, step)
	}
	dir := filepath.Dir(prefix)
	if err := os.MkdirAll(dir, 0o755); err != nil {
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
		checkpoint.Sweep(dir) // the parts that tasks have written, which a full disk needs back
		return "", status.Errorf(status.CodeOf(err), "saving %s: %w", prefix, err)
	}
	return prefix, sv.kept.commit(prefix)
}

// write makes the files of a checkpoint and waits until they are on disk.
func (sv *Saver) write(ctx context.Context, sess Session, prefix string) error {
	if err := sv.Write(ctx, sess, prefix); err != nil {
		return err
	}
	if sv.options.NoMetaGraph {
		return nil
	}
	return sv.meta.write(sv, prefix+metaSuffix)
}

// Write saves the variables under a prefix and waits until the files are on disk, without a place
// in any state file: for SavedModels and for programs that keep account of checkpoints themselves.
func (sv *Saver) Write(ctx context.Context, sess Session, prefix string) error {
	feeds := map[graph.Output]tensor.Tensor{sv.file: tensor.Scalar(prefix)}
	if _, err := sess.Run(ctx, feeds, []graph.Output{sv.save}, nil); err != nil {
		return err
	}
	return checkpoint.Sync(prefix)
}

// Restore gives the variables the values that they have in a checkpoint, of which the prefix is
// given.
func (sv *Saver) Restore(ctx context.Context, sess Session, prefix string) error {
	if !sv.nodes.FormatIsOld && !checkpoint.Exists(prefix) {
		return status.InvalidArgumentf("The passed save_path is not a valid checkpoint: %s", prefix)
	}
	feeds := map[graph.Output]tensor.Tensor{sv.file: tensor.Scalar(prefix)}
	_, err := sess.Run(ctx, feeds, nil, []*graph.Node{sv.restore})
	if err != nil {
		return status.Errorf(status.CodeOf(err), "restoring %s: %w", prefix, err)
	}
	return nil
}

// Recover removes from a folder what an interrupted save has left and takes over the checkpoints
// that its state file lists, so that they count among those to keep. [Saver.Save] does it for a
// folder that is new to the saver.
func (sv *Saver) Recover(ctx context.Context, dir string) error {
	if err := sv.take(ctx, "waiting for a checkpoint to be saved"); err != nil {
		return err
	}
	defer sv.leave()
	return sv.recover(filepath.Clean(dir))
}

func (sv *Saver) recover(dir string) error {
	kept, err := recoverCheckpoints(dir, &sv.options)
	if err != nil {
		return err
	}
	sv.kept = kept
	return nil
}

// LastCheckpoints returns the prefixes of the checkpoints that the saver keeps, the oldest first.
func (sv *Saver) LastCheckpoints(ctx context.Context) ([]string, error) {
	if err := sv.take(ctx, "waiting for a checkpoint to be saved"); err != nil {
		return nil, err
	}
	defer sv.leave()
	if sv.kept == nil {
		return nil, nil
	}
	return sv.kept.prefixes(), nil
}

// LatestCheckpoint returns the prefix of the latest checkpoint in a folder, "" if the folder has
// none yet. The error has the code NotFound if the state file of the folder names a checkpoint whose
// files are missing, and DataLoss if it cannot be parsed.
func LatestCheckpoint(dir string) (string, error) { return checkpoint.Latest(dir) }

func (sv *Saver) take(ctx context.Context, why string) error {
	select {
	case sv.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return status.FromContext(ctx, why)
	}
}

func (sv *Saver) leave() { <-sv.turn }

// savedVariable is a variable with its name in checkpoints.
type savedVariable struct {
	name   string
	isPart bool // of the tensor of that name
	*Variable
}

// savedVariables returns what is to be saved in order of names, the parts of a variable in order of
// their rows.
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
				s.Fail(status.InvalidArgumentf("train: several variables are to be saved as %q, and %s is no part of one", name, v.Name))
			}
			out = append(out, savedVariable{name, isPart, v})
		}
	}
	return out
}
