// Package models holds the models of a server: which versions are loaded, which are to be, and
// which one answers a request.
//
// A model is a folder with one folder for each version. The manager lists the folders, loads the
// versions that the policy of the model chooses, and unloads the others when a chosen one is ready.
// A request holds its version: unloading waits for it.
package models

import (
	"context"
	"log/slog"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/internal/sys/tensormem"
	"github.com/weft-ml/weft/status"
)

// Options configure a manager.
type Options struct {
	// Load loads a version of a model from its folder, and warms it up.
	Load func(ctx context.Context, model string, version int64, dir string) (*servable.Servable, error)
	// Poll is the interval at which folders are listed; 0 for once per configuration.
	Poll          time.Duration
	LoadThreads   int // loads at the same time
	Retries       int // attempts after the first that failed
	RetryInterval time.Duration
	// EarlyLabels allows a new label for a version that is not loaded.
	EarlyLabels bool
	Log         *slog.Logger
}

// State is the state of a version.
type State = servingpb.ModelVersionStatus_State

// Manager holds models. Its methods may be called concurrently.
type Manager struct {
	opts    Options
	loads   chan struct{} // has an element for each load in progress
	running sync.WaitGroup
	ctx     context.Context // ends when the manager is closed
	cancel  context.CancelFunc
	applies sync.Mutex // held while a configuration is applied
	folders folders

	mu      sync.RWMutex
	models  map[string]*model // guarded by mu
	changed chan struct{}     // closed at the next change of a state; guarded by mu
}

// model is one model. All fields are guarded by the mutex of the manager.
type model struct {
	config   *servingpb.ModelConfig // nil for a model that was removed
	labels   map[string]int64
	versions map[int64]*version
	wanted   []int64 // versions that are to be loaded, lowest first
	listed   bool    // the folder was listed after the last configuration
	warned   bool    // a missing version was logged
}

// version is one version of a model. All fields are guarded by the mutex of the manager.
type version struct {
	state    State
	err      error
	servable *servable.Servable
	holders  sync.WaitGroup // requests; Add only while the state is AVAILABLE
	stop     context.CancelFunc
	gone     bool     // was not wanted after it ended
	base     string   // base path of the model when the version was found
	next     *version // is loaded from another base path to replace this one; nil for none
}

// New returns a manager without models.
func New(opts Options) *Manager {
	m := &Manager{opts: opts, loads: make(chan struct{}, max(1, opts.LoadThreads)), models: map[string]*model{}, changed: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if opts.Poll > 0 {
		m.running.Go(m.poll)
	}
	return m
}

// Close stops loading, unloads all models, and waits for both.
func (m *Manager) Close() {
	m.cancel()
	m.mu.Lock()
	for name, mod := range m.models {
		mod.config, mod.wanted = nil, nil
		m.settleLocked(name, mod)
	}
	m.mu.Unlock()
	m.running.Wait()
}

func (m *Manager) poll() {
	ticker := time.NewTicker(m.opts.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.List()
		case <-m.ctx.Done():
			return
		}
	}
}

// List lists the folders of all models, and starts to load and unload what has changed.
func (m *Manager) List() {
	m.mu.RLock()
	configs := map[string]*servingpb.ModelConfig{}
	for name, mod := range m.models {
		if mod.config != nil {
			configs[name] = mod.config
		}
	}
	m.mu.RUnlock()
	for name, config := range configs {
		have, err := m.folders.versions(m.ctx, config.GetBasePath())
		m.mu.Lock()
		if mod := m.models[name]; mod.config == config {
			m.listedLocked(name, mod, have, err)
		}
		m.mu.Unlock()
	}
}

// Absent returns the sorted names of the models for which no version was found.
func (m *Manager) Absent() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []string
	for name, mod := range m.models {
		if mod.config != nil && mod.warned {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// listedLocked takes over the versions in the folder of a model. If the folder cannot be listed,
// the loaded versions stay.
func (m *Manager) listedLocked(name string, mod *model, have found, err error) {
	mod.listed = true
	if err == nil {
		mod.wanted = choose(have, mod.config.GetModelVersionPolicy())
	}
	if len(mod.wanted) == 0 && !mod.warned {
		m.opts.Log.Warn("no versions of a model were found", "model", name, "base_path", mod.config.GetBasePath(), "error", err)
	}
	mod.warned = len(mod.wanted) == 0
	for _, v := range mod.wanted {
		if folder, ok := have[v]; ok && mod.mustLoadLocked(v) {
			m.startLocked(name, mod, v, fileio.Join(mod.config.GetBasePath(), folder))
		}
	}
	m.settleLocked(name, mod)
	m.changeLocked()
}

// mustLoadLocked reports whether a version that is wanted has to be loaded: for the first time,
// again, or from another base path than before.
func (mod *model) mustLoadLocked(v int64) bool {
	ver, base := mod.versions[v], mod.config.GetBasePath()
	if ver == nil {
		return true
	}
	if ver.next != nil && ver.next.base != base {
		ver.next.stop()
		ver.next = nil
	}
	if ver.base != base {
		return ver.next == nil
	}
	return ver.state == servingpb.ModelVersionStatus_END && ver.gone
}

// startLocked starts to load a version. One that serves is replaced when the new one is loaded.
func (m *Manager) startLocked(name string, mod *model, v int64, dir string) {
	ctx, stop := context.WithCancel(m.ctx)
	ver := &version{state: servingpb.ModelVersionStatus_START, stop: stop, base: mod.config.GetBasePath()}
	old := mod.versions[v]
	if old != nil && old.state == servingpb.ModelVersionStatus_AVAILABLE {
		old.next = ver
	} else {
		if old != nil {
			old.stop()
		}
		mod.versions[v], old = ver, nil
	}
	m.running.Go(func() {
		defer stop()
		s, err := m.load(ctx, ver, name, v, dir)
		m.mu.Lock()
		defer m.mu.Unlock()
		switch {
		case err != nil:
			if ver.state, ver.err = servingpb.ModelVersionStatus_END, err; ctx.Err() == nil {
				m.opts.Log.Error("a version of a model cannot be loaded", "model", name, "version", v, "error", err)
			}
		case ctx.Err() != nil:
			m.unloadLocked(name, v, ver, s)
		default:
			ver.state, ver.servable = servingpb.ModelVersionStatus_AVAILABLE, s
			m.opts.Log.Info("a version of a model is available", "model", name, "version", v)
			if old != nil {
				mod.versions[v] = ver
				m.retireLocked(name, v, old)
			}
		}
		m.settleLocked(name, mod)
		m.changeLocked()
	})
}

// load loads a version, and repeats that after an error.
func (m *Manager) load(ctx context.Context, ver *version, name string, v int64, dir string) (*servable.Servable, error) {
	for attempt := 0; ; attempt++ {
		select {
		case m.loads <- struct{}{}:
		case <-ctx.Done():
			return nil, status.Cancelledf("the version is not wanted any more")
		}
		m.mu.Lock()
		ver.state = servingpb.ModelVersionStatus_LOADING
		m.mu.Unlock()
		s, err := m.opts.Load(ctx, name, v, dir)
		<-m.loads
		if err == nil || ctx.Err() != nil || attempt >= m.opts.Retries {
			return s, err
		}
		m.opts.Log.Warn("a version of a model cannot be loaded", "model", name, "version", v, "error", err, "retry_in", m.opts.RetryInterval)
		timer := time.NewTimer(m.opts.RetryInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// settleLocked stops loads and unloads versions that are not wanted. A version that serves is
// unloaded only if a wanted one can take its place, if another one that is not wanted does, or if
// none is wanted.
func (m *Manager) settleLocked(name string, mod *model) {
	ready := len(mod.wanted) == 0
	var extra []int64
	for _, v := range slices.Sorted(maps.Keys(mod.versions)) {
		ver := mod.versions[v]
		wanted := slices.Contains(mod.wanted, v)
		if !wanted && ver.next != nil {
			ver.next.stop()
			ver.next = nil
		}
		switch {
		case wanted:
			ready = ready || ver.state == servingpb.ModelVersionStatus_AVAILABLE
		case ver.state == servingpb.ModelVersionStatus_AVAILABLE:
			extra = append(extra, v)
		case ver.state == servingpb.ModelVersionStatus_END:
			ver.gone = true
		case ver.state != servingpb.ModelVersionStatus_UNLOADING:
			ver.stop()
		}
	}
	if !ready && len(extra) > 0 {
		extra = extra[:len(extra)-1]
	}
	for _, v := range extra {
		m.retireLocked(name, v, mod.versions[v])
	}
}

// retireLocked unloads a version that serves.
func (m *Manager) retireLocked(name string, v int64, ver *version) {
	s := ver.servable
	ver.servable = nil
	m.unloadLocked(name, v, ver, s)
}

// unloadLocked unloads a version when its requests have ended.
func (m *Manager) unloadLocked(name string, v int64, ver *version, s *servable.Servable) {
	ver.state = servingpb.ModelVersionStatus_UNLOADING
	m.running.Go(func() {
		ver.holders.Wait()
		if err := s.Close(); err != nil {
			m.opts.Log.Warn("a version of a model was not closed", "model", name, "version", v, "error", err)
		}
		giveBack()
		m.opts.Log.Info("a version of a model was unloaded", "model", name, "version", v)
		m.mu.Lock()
		defer m.mu.Unlock()
		ver.state, ver.gone = servingpb.ModelVersionStatus_END, true
		m.changeLocked()
	})
}

// giveBack returns the memory of an unloaded version to the machine, and the free lists of tensors
// that its requests have used.
func giveBack() {
	tensormem.DropFree()
	runtime.GC() // pools keep what they have until the second collection
	debug.FreeOSMemory()
}

func (m *Manager) changeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}
