package train

import (
	"errors"
	"slices"
	"time"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/status"
)

// keptCheckpoints is the list of checkpoints in a folder; the state file is its copy on disk. Every
// checkpoint that may exist is listed: it is added before it is written and deleted from the list
// after its files are removed. So a saver that starts after a crash finds all files in the list.
type keptCheckpoints struct {
	dir     string
	options *SaverOptions
	latest  string           // prefix of the last complete checkpoint; "" for none
	list    []keptCheckpoint // oldest first
	keepAt  time.Time        // the first checkpoint saved after this time is kept permanently
}

type keptCheckpoint struct {
	prefix string
	saved  time.Time
}

const metaSuffix = ".meta"

// recoverCheckpoints reads the state file of a folder, and removes incomplete checkpoints and those
// beyond the number to keep.
func recoverCheckpoints(dir string, options *SaverOptions) (*keptCheckpoints, error) {
	k := &keptCheckpoints{dir: dir, options: options, keepAt: options.Now().Add(options.KeepEvery)}
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

// savedAt returns the time at which a checkpoint was saved, the zero Time if it does not exist.
func savedAt(prefix string) time.Time {
	for _, file := range []string{checkpoint.IndexFile(prefix), prefix} {
		if info, err := (fileio.Files{}).Stat(file); err == nil {
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

// begin adds a checkpoint that is about to be written to the list. Checkpoints whose save has
// failed are deleted from the list.
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

// commit makes a complete checkpoint the latest one and removes those beyond the number to keep.
func (k *keptCheckpoints) commit(prefix string) error {
	at := k.index(prefix)
	k.list = append(slices.Delete(k.list, at, at+1), keptCheckpoint{prefix, k.options.Now()})
	k.latest = prefix
	for limit := k.options.MaxToKeep; limit > 0 && len(k.list) > limit && k.list[0].saved.After(k.keepAt); {
		k.list = k.list[1:] // unlisted checkpoints stay on disk
		k.keepAt = k.keepAt.Add(k.options.KeepEvery)
	}
	if k.options.MaxToKeep < 0 {
		k.list = k.list[len(k.list)-1:]
	}
	if err := k.write(); err != nil {
		return err
	}
	return k.removeSurplus()
}

// removeSurplus removes the oldest checkpoints beyond the number to keep, but never the latest, and
// then deletes them from the list.
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

// removeCheckpoint removes the files of a checkpoint, including its MetaGraph.
func removeCheckpoint(prefix string) error {
	if err := checkpoint.Remove(prefix); err != nil {
		return err
	}
	if err := (fileio.Files{}).Remove(prefix + metaSuffix); err != nil && status.CodeOf(err) != status.NotFound {
		return err
	}
	return nil
}
