package train

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

// HistoryFile is the name of the file with the history of [Fit], in JSON.
const HistoryFile = "history.json"

// bestPrefix is the prefix, within the folder, of the checkpoint with the weights of the best
// epoch.
const bestPrefix = "best/model.ckpt"

// History is what [Fit] has measured. With parameter servers that of the workers which are not the
// chief is empty.
type History struct {
	Epochs []Epoch `json:"epochs"`
	// BestEpoch is the number of the epoch with the best value of [FitOptions.Monitor], whose
	// weights KeepBest keeps; 0 if there is none with a finite value.
	BestEpoch int `json:"best_epoch,omitempty"`
}

// Epoch is what was measured in one epoch.
type Epoch struct {
	Epoch   int     `json:"epoch"`   // from 1
	Step    int64   `json:"step"`    // global steps at its end
	Seconds float64 `json:"seconds"` // it took, with validation
	// Values are the mean loss ("loss") and the metrics by name over the training data, and those
	// over the validation data after "val_".
	Values map[string]float64 `json:"values"`
}

// Last returns the values of the last epoch; nil if there is none.
func (h *History) Last() map[string]float64 {
	if len(h.Epochs) == 0 {
		return nil
	}
	return h.Epochs[len(h.Epochs)-1].Values
}

// Best returns the values of the best epoch; nil if there is none.
func (h *History) Best() map[string]float64 {
	for _, e := range h.Epochs {
		if e.Epoch == h.BestEpoch {
			return e.Values
		}
	}
	return nil
}

// Names returns the names of all values, sorted.
func (h *History) Names() []string {
	all := map[string]bool{}
	for _, e := range h.Epochs {
		for name := range e.Values {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// ReadHistory reads the history that [Fit] has written to a folder.
func ReadHistory(dir string) (*History, error) {
	h := &History{}
	b, err := fileio.Files{}.Read(fileio.Join(dir, HistoryFile))
	if status.CodeOf(err) == status.NotFound {
		return nil, status.NotFoundf("train: there is no %s in %s; Fit writes it to the folder FitOptions.Dir", HistoryFile, dir)
	}
	if err == nil {
		err = json.Unmarshal(b, h)
	}
	if err != nil {
		return nil, status.DataLossf("train: %s: %w", fileio.Join(dir, HistoryFile), err)
	}
	return h, nil
}

// read reads the history of a folder; it stays empty if there is none.
func (h *History) read(dir string) error {
	old, err := ReadHistory(dir)
	if status.CodeOf(err) == status.NotFound {
		return nil
	}
	if err == nil {
		*h = *old
	}
	return err
}

// write replaces the file.
func (h *History) write(dir string) error {
	b, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return err
	}
	return fileio.Files{}.Write(fileio.Join(dir, HistoryFile), append(b, '\n'))
}

// cut drops the epochs after the first n, which no checkpoint has.
func (h *History) cut(n int) { h.Epochs = h.Epochs[:min(n, len(h.Epochs))] }

// monitor is the value by which epochs are compared.
type monitor struct {
	name  string
	rises bool // larger values are better
}

// best returns the index of the first of the best epochs; -1 if there is none with a number.
func (h *History) best(m monitor) int {
	at, best := -1, math.Inf(1)
	for i, e := range h.Epochs {
		v := e.Values[m.name]
		if m.rises {
			v = -v
		}
		if v < best {
			at, best = i, v
		}
	}
	return at
}

// stalled reports whether none of the last n epochs was better than one before; false if n is 0.
func (h *History) stalled(m monitor, n int) bool {
	return n > 0 && len(h.Epochs) > n && len(h.Epochs)-1-h.best(m) >= n
}

// readBest reads the weights of the best epoch of an earlier call.
func (f *fitting) readBest() error {
	if f.options.Dir == "" || !f.options.KeepBest || f.firstEpoch == 0 {
		return nil
	}
	r, err := checkpoint.Open(fileio.Join(f.options.Dir, bestPrefix))
	if status.CodeOf(err) == status.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	f.best = map[string]tensor.Tensor{}
	for _, v := range f.built.Variables {
		if f.best[v.Name], err = r.Read(v.Name); err != nil {
			return err
		}
	}
	return nil
}

// writeBest writes the weights of the best epoch if e is that epoch.
func (f *fitting) writeBest(e Epoch) error {
	if f.best == nil || f.history.Epochs[f.history.best(f.monitor())].Epoch != e.Epoch {
		return nil
	}
	return WriteWeights(fileio.Join(f.options.Dir, bestPrefix), f.best)
}

// WriteWeights writes values by name to a checkpoint with the given prefix. It creates the folder
// and those above it.
func WriteWeights(prefix string, weights map[string]tensor.Tensor) error {
	if err := (fileio.Files{}).MakeDirs(fileio.Dir(prefix)); err != nil {
		return err
	}
	w, err := checkpoint.Create(prefix)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		value := weights[name]
		if err := w.Add(name, &value); err != nil {
			return err
		}
	}
	return w.Close()
}

// eventFiles writes values of epochs for TensorBoard, with the tags and folders that Keras uses.
type eventFiles struct {
	dir               string
	train, validation *summary.Writer
}

// add writes the values of an epoch.
func (w *eventFiles) add(e Epoch) (err error) {
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		to, folder := &w.train, "train"
		tag, validation := strings.CutPrefix(name, "val_")
		if validation {
			to, folder = &w.validation, "validation"
		}
		if *to == nil {
			if *to, err = summary.NewWriter(fileio.Join(w.dir, folder), summary.Options{}); err != nil {
				return err
			}
		}
		v := summary.Value{Tag: "epoch_" + tag, Data: float32(e.Values[name])}
		if err := (*to).Add(int64(e.Epoch-1), v); err != nil {
			return err
		}
	}
	return nil
}

func (w *eventFiles) close() error {
	var errs []error
	for _, to := range []*summary.Writer{w.train, w.validation} {
		if to != nil {
			errs = append(errs, to.Close())
		}
	}
	return errors.Join(errs...)
}
