package models

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/status"
)

// Apply replaces the configuration of all models. It changes nothing if the configuration is
// invalid. Then it waits until every model that is new or has another base path has an available
// version, or has none in its folder. The error has the code Unknown if such a model cannot be
// loaded.
func (m *Manager) Apply(ctx context.Context, config *servingpb.ModelServerConfig) error {
	m.applies.Lock()
	defer m.applies.Unlock()
	list, err := listOf(config)
	if err != nil {
		return err
	}
	added, err := m.replace(list)
	if err != nil {
		return err
	}
	m.List()
	return m.await(ctx, added)
}

// replace replaces the configurations, and returns the names of the models that are new or have
// another base path.
func (m *Manager) replace(list []*servingpb.ModelConfig) (added []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return nil, errStopping()
	}
	for _, c := range list {
		if err := m.checkLabelsLocked(c); err != nil {
			return nil, err
		}
	}
	listed := map[string]bool{}
	for _, c := range list {
		listed[c.GetName()] = true
		mod := m.models[c.GetName()]
		if mod == nil {
			mod = &model{versions: map[int64]*version{}}
			m.models[c.GetName()] = mod
		}
		if mod.config == nil {
			added = append(added, c.GetName())
		} else if mod.config.GetBasePath() != c.GetBasePath() {
			// the versions of the old folder end when those of the new one are ready
			added = append(added, c.GetName())
		}
		mod.config, mod.labels, mod.listed = c, maps.Clone(c.GetVersionLabels()), false
	}
	for name, mod := range m.models {
		if !listed[name] && mod.config != nil {
			mod.config, mod.labels, mod.wanted = nil, nil, nil
			m.settleLocked(name, mod)
		}
	}
	return added, nil
}

// checkLabelsLocked checks that the labels of a model are on versions that are available.
func (m *Manager) checkLabelsLocked(c *servingpb.ModelConfig) error {
	mod := m.models[c.GetName()]
	for _, label := range slices.Sorted(maps.Keys(c.GetVersionLabels())) {
		v := c.GetVersionLabels()[label]
		if mod != nil && mod.versions[v] != nil && mod.versions[v].state == servingpb.ModelVersionStatus_AVAILABLE {
			continue
		}
		if m.opts.EarlyLabels {
			if mod == nil {
				continue
			}
			if was, exists := mod.labels[label]; !exists || was == v {
				continue
			}
		}
		return status.FailedPreconditionf("Request to assign label to version %d of model %s, which is not currently available for inference", v, c.GetName())
	}
	return nil
}

// await waits until models have an available version.
func (m *Manager) await(ctx context.Context, names []string) error {
	for {
		m.mu.RLock()
		changed := m.changed
		waiting, failed := m.progressLocked(names)
		closed := m.ctx.Err() != nil
		m.mu.RUnlock()
		switch {
		case closed: // no model has a configuration any more, so none is waiting or failed
			return errStopping()
		case len(waiting) > 0:
		case len(failed) > 0:
			return status.Errorf(status.Unknown, "%d model(s) did not become available: {%s}", len(failed), strings.Join(failed, ", "))
		default:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status.FromContext(ctx, "waiting for models to become available")
		case <-m.ctx.Done():
			return errStopping()
		}
	}
}

func errStopping() error { return status.Unavailablef("the server is stopping") }

// progressLocked returns which models are being loaded, and the errors of those that cannot be.
func (m *Manager) progressLocked(names []string) (waiting, failed []string) {
	for _, name := range names {
		mod := m.models[name]
		if mod.config == nil || mod.listed && len(mod.wanted) == 0 {
			continue
		}
		loading, available, why := false, false, error(nil)
		for _, v := range mod.wanted {
			ver := mod.versions[v]
			if ver != nil && ver.base != mod.config.GetBasePath() {
				ver = ver.next
			}
			switch {
			case ver == nil:
				loading = true
			case ver.state == servingpb.ModelVersionStatus_AVAILABLE:
				available = true
			case ver.state == servingpb.ModelVersionStatus_END && ver.err != nil:
				why = ver.err
			default:
				loading = true
			}
		}
		switch {
		case loading || !mod.listed:
			waiting = append(waiting, name)
		case !available:
			failed = append(failed, fmt.Sprintf("{name: %s due to error: %v}", name, why))
		}
	}
	return waiting, failed
}

// Ready reports whether every model has an available version.
func (m *Manager) Ready() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, mod := range m.models {
		if mod.config != nil && mod.latestLocked() < 0 {
			return false
		}
	}
	return true
}
