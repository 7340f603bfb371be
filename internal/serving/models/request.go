package models

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/status"
)

// Held is a version that answers a request. It stays loaded until it is released.
type Held struct {
	*servable.Servable
	Version int64

	version *version
}

// Release ends the use of a version.
func (h Held) Release() { h.version.holders.Done() }

// Hold returns the version that a request names: by number, by label, or the highest one that is
// available. The caller releases it.
func (m *Manager) Hold(spec *servingpb.ModelSpec) (Held, error) {
	name := spec.GetName()
	if name == "" {
		return Held{}, status.InvalidArgumentf("ModelSpec has no name specified.")
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	mod := m.models[name]
	v := int64(-1)
	switch choice := spec.GetVersionChoice().(type) {
	case *servingpb.ModelSpec_Version:
		v = choice.Version.GetValue()
	case *servingpb.ModelSpec_VersionLabel:
		labelled := false
		if mod != nil {
			v, labelled = mod.labels[choice.VersionLabel]
		}
		if !labelled {
			return Held{}, status.InvalidArgumentf("Unrecognized servable version label: %s", choice.VersionLabel)
		}
	default:
		if mod != nil {
			v = mod.latestLocked()
		}
		if v < 0 {
			return Held{}, status.NotFoundf("Servable not found for request: Latest(%s)", name)
		}
	}
	if mod != nil {
		if ver := mod.versions[v]; ver != nil && ver.state == servingpb.ModelVersionStatus_AVAILABLE {
			ver.holders.Add(1)
			return Held{ver.servable, v, ver}, nil
		}
	}
	return Held{}, status.NotFoundf("Servable not found for request: Specific(%s, %d)", name, v)
}

// latestLocked returns the highest version that is available, or -1.
func (mod *model) latestLocked() int64 {
	latest := int64(-1)
	for v, ver := range mod.versions {
		if ver.state == servingpb.ModelVersionStatus_AVAILABLE {
			latest = max(latest, v)
		}
	}
	return latest
}

// Available returns the versions of a model that are available, lowest first. known is false for a
// model that is not configured.
func (m *Manager) Available(name string) (list []int64, known bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	mod := m.models[name]
	if mod == nil || mod.config == nil {
		return nil, false
	}
	for v, ver := range mod.versions {
		if ver.state == servingpb.ModelVersionStatus_AVAILABLE {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	return list, true
}

// Status returns the states of the versions of a model, highest first, or that of one version.
// Versions that were unloaded stay in the list. A label is ignored.
func (m *Manager) Status(spec *servingpb.ModelSpec) ([]*servingpb.ModelVersionStatus, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all map[int64]*version
	if mod := m.models[spec.GetName()]; mod != nil {
		all = mod.versions
	}
	if spec.GetVersion() != nil {
		v := spec.GetVersion().GetValue()
		ver := all[v]
		if ver == nil {
			return nil, status.NotFoundf("Could not find version %d of model %s", v, spec.GetName())
		}
		return []*servingpb.ModelVersionStatus{ver.statusLocked(v)}, nil
	}
	if len(all) == 0 {
		return nil, status.NotFoundf("Could not find any versions of model %s", spec.GetName())
	}
	var list []*servingpb.ModelVersionStatus
	for _, v := range slices.SortedFunc(maps.Keys(all), func(a, b int64) int { return cmp.Compare(b, a) }) {
		list = append(list, all[v].statusLocked(v))
	}
	return list, nil
}

func (ver *version) statusLocked(v int64) *servingpb.ModelVersionStatus {
	return &servingpb.ModelVersionStatus{Version: v, State: ver.state, Status: Status(ver.err)}
}
