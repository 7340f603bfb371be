package train

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/status"
)

// keptCheckpoints is the account of the checkpoints of a folder, of which the state file is the
// copy on disk. What is there is always listed: a checkpoint is added to the list before it is
// written, and taken out after it was removed, so that whoever comes after a crash knows what may
// have been left.
type keptCheckpoints struct {
	dir     string
	options *SaverOptions
	latest  string           // the last that was saved; "" for none
	list    []keptCheckpoint // oldest first
	forGood time.Time        // the oldest that is later than this is kept for good
}

type keptCheckpoint struct {
	prefix string
	saved  time.Time
}

const metaSuffix = ".meta"

// recoverCheckpoints reads the account of a folder and removes what is not whole or too much.
func recoverCheckpoints(dir string, options *SaverOptions) (*keptCheckpoints, error) {
	k := &keptCheckpoints{dir: dir, options: options, forGood: options.Now().Add(options.KeepEvery)}
	checkpoint.Sweep(dir)
	state, err := checkpoint.ReadState(dir, options.StateFile)
	switch {
	case status.CodeOf(err) == status.NotFound:
		return k, nil
	case err != nil:
		return nil, err
	}
	for _, prefix := range state.All {
		if checkpoint.Exists(prefix) {
			k.list = append(k.list, keptCheckpoint{prefix, savedAt(prefix)})
		} else if err := removeCheckpoint(prefix); err != nil {
			return nil, err
		}
	}
	if checkpoint.Exists(state.Latest) {
		k.latest = state.Latest
	}
	return k, k.removeSurplus()
}

// savedAt returns when a checkpoint was saved.
func savedAt(prefix string) time.Time {
	for _, file := range []string{checkpoint.IndexFile(prefix), prefix} {
		if info, err := os.Stat(file); err == nil {
			return info.ModTime()
		}
	}
	return time.Time{}
}

func (k *keptCheckpoints) prefixes() []string {
	out := make([]string, len(k.list))
	for i, c := range k.list {
		out[i] = c.prefix
	}
	return out
}

func (k *keptCheckpoints) write() error {
	return (&checkpoint.State{Latest: k.latest, All: k.prefixes()}).Write(k.dir, k.options.StateFile, k.options.RelativePaths)
}

// begin lists a checkpoint that is about to be written. Earlier ones that never came to be are
// forgotten.
func (k *keptCheckpoints) begin(prefix string) error {
	k.list = slices.DeleteFunc(k.list, func(c keptCheckpoint) bool { return !checkpoint.Exists(c.prefix) })
	if k.index(prefix) < 0 {
		k.list = append(k.list, keptCheckpoint{prefix, k.options.Now()})
	}
	return k.write()
}

func (k *keptCheckpoints) index(prefix string) int {
	return slices.IndexFunc(k.list, func(c keptCheckpoint) bool { return c.prefix == prefix })
}

// commit makes a checkpoint that is on disk the latest and removes those that are too many.
func (k *keptCheckpoints) commit(prefix string) error {
	at := k.index(prefix)
	k.list = append(slices.Delete(k.list, at, at+1), keptCheckpoint{prefix, k.options.Now()})
	k.latest = prefix
	for most := k.options.MaxToKeep; most > 0 && len(k.list) > most && k.list[0].saved.After(k.forGood); {
		k.list = k.list[1:] // it stays on disk and is not listed any more
		k.forGood = k.forGood.Add(k.options.KeepEvery)
	}
	if k.options.MaxToKeep < 0 {
		k.list = k.list[len(k.list)-1:]
	}
	if err := k.write(); err != nil {
		return err
	}
	return k.removeSurplus()
}

// removeSurplus removes the oldest checkpoints, but never the latest, and then takes them out of
// the list.
func (k *keptCheckpoints) removeSurplus() error {
	if k.options.MaxToKeep < 0 {
		return nil
	}
	var errs []error
	for i := 0; len(k.list) > k.options.MaxToKeep && i < len(k.list); {
		if k.list[i].prefix == k.latest {
			i++
			continue
		}
		errs = append(errs, removeCheckpoint(k.list[i].prefix))
		k.list = slices.Delete(k.list, i, i+1)
	}
	if errs == nil {
		return nil
	}
	return errors.Join(append(errs, k.write())...)
}

// removeCheckpoint removes the files of a checkpoint and the graph beside it.
func removeCheckpoint(prefix string) error {
	if err := checkpoint.Remove(prefix); err != nil {
		return err
	}
	if err := os.Remove(prefix + metaSuffix); err != nil && !os.IsNotExist(err) {
		return fileio.Error(prefix+metaSuffix, err)
	}
	return nil
}
