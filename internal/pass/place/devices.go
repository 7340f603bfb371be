package place

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/status"
)

// candidate is a device that nodes can be placed on.
type candidate struct {
	name  string
	spec  device.Spec
	local bool // on the task of the client
}

// deviceSet holds all devices.
type deviceSet struct {
	all    []*candidate
	byTask map[taskKey][]*candidate
	byName map[string]*candidate
	types  []string    // device types, in order of preference
	client device.Spec // task of the client; Any if there is none

	// cached results of match, because most groups have one of a few requests
	matched map[matchKey][]*candidate
}

// taskKey identifies a task without its replica, which most specifications omit.
type taskKey struct {
	job  string
	task int
}

type matchKey struct {
	spec  device.Spec
	types string
}

func newDeviceSet(names []string, client string) (*deviceSet, error) {
	s := &deviceSet{
		byTask: map[taskKey][]*candidate{}, byName: make(map[string]*candidate, len(names)), client: device.Any,
		matched: map[matchKey][]*candidate{},
	}
	if client != "" {
		spec, err := device.Parse(client)
		if err != nil {
			return nil, err
		}
		s.client = spec.AddressSpace()
	}
	for _, name := range names {
		spec, err := device.Parse(name)
		if err != nil {
			return nil, err
		}
		if !spec.IsFull() {
			return nil, status.InvalidArgumentf("Device '%s' has no full name", name)
		}
		d := &candidate{name: name, spec: spec, local: spec.SameAddressSpace(s.client)}
		s.all = append(s.all, d)
		task := taskKey{spec.Job, spec.Task}
		s.byTask[task] = append(s.byTask[task], d)
		s.byName[name], s.byName[spec.String()] = d, d
		if !slices.Contains(s.types, spec.Type) {
			s.types = append(s.types, spec.Type)
		}
	}
	slices.SortFunc(s.types, compareTypes)
	return s, nil
}

// typePriority returns the priority of a device type. Higher is preferred.
func typePriority(typ string) int {
	switch typ {
	case "GPU":
		return 210
	case "CPU":
		return 60
	default:
		return 50
	}
}

func compareTypes(a, b string) int {
	return cmp.Or(cmp.Compare(typePriority(b), typePriority(a)), cmp.Compare(a, b))
}

// match returns the devices that satisfy a specification and have one of the given types. They are
// sorted by kernel priority, device type, whether they are on the client's task, and name. The
// caller must not modify the slice.
func (s *deviceSet) match(spec device.Spec, types []supported) []*candidate {
	key := matchKey{spec: spec}
	for _, t := range types {
		key.types += t.typ + strconv.Itoa(t.priority) + " "
	}
	found, ok := s.matched[key]
	if !ok {
		found = s.findMatches(spec, types)
		s.matched[key] = found
	}
	return found
}

func (s *deviceSet) findMatches(spec device.Spec, types []supported) []*candidate {
	priority := map[string]int{}
	for _, t := range types {
		priority[t.typ] = t.priority
	}
	var found []*candidate
	for _, d := range s.near(spec) {
		if _, ok := priority[d.spec.Type]; ok && spec.Matches(d.spec) {
			found = append(found, d)
		}
	}
	slices.SortFunc(found, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(priority[b.spec.Type], priority[a.spec.Type]), compareTypes(a.spec.Type, b.spec.Type),
			compareBool(b.local, a.local), cmp.Compare(a.name, b.name))
	})
	return found
}

// near returns a superset of the devices that satisfy a specification. If the specification names a
// task, as most do, it contains the devices of that task only. There may be thousands of tasks.
func (s *deviceSet) near(spec device.Spec) []*candidate {
	if spec.Job != "" && spec.Task != device.Unset {
		return s.byTask[taskKey{spec.Job, spec.Task}]
	}
	return s.all
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// matchesAny reports whether any device satisfies a specification.
func (s *deviceSet) matchesAny(spec device.Spec) bool {
	return slices.ContainsFunc(s.near(spec), func(d *candidate) bool { return spec.Matches(d.spec) })
}

// names returns the device names in the order in which they were given.
func (s *deviceSet) names() []string { return namesOf(s.all) }

func namesOf(devices []*candidate) []string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.name
	}
	return names
}

func (s *deviceSet) sortedNames() string {
	names := s.names()
	slices.Sort(names)
	return strings.Join(names, ", ")
}
