package device

import "github.com/weft-ml/weft/status"

// Matches reports whether the device d, whose name is full, satisfies the specification.
func (s Spec) Matches(d Spec) bool {
	return (s.Job == "" || s.Job == d.Job) && (s.Replica == Unset || s.Replica == d.Replica) &&
		(s.Task == Unset || s.Task == d.Task) && (s.Type == "" || s.Type == d.Type) && (s.ID == Unset || s.ID == d.ID)
}

// IsCompatible reports whether some device satisfies both specifications.
func (s Spec) IsCompatible(t Spec) bool {
	return agree(s.Job, t.Job, "") && agree(s.Replica, t.Replica, Unset) && agree(s.Task, t.Task, Unset) &&
		agree(s.Type, t.Type, "") && agree(s.ID, t.ID, Unset)
}

// SameAddressSpace reports whether both specifications give the same job, replica and task.
func (s Spec) SameAddressSpace(t Spec) bool {
	return s.Job != "" && s.Replica != Unset && s.Task != Unset && s.AddressSpace() == t.AddressSpace()
}

// DifferentAddressSpace reports whether no task has devices for both specifications.
func (s Spec) DifferentAddressSpace(t Spec) bool {
	return !s.AddressSpace().IsCompatible(t.AddressSpace())
}

func agree[T comparable](a, b, unset T) bool { return a == unset || b == unset || a == b }

// Merge returns the specification that satisfies both, or an error if they contradict each other.
func (s Spec) Merge(t Spec) (Spec, error) {
	out, err := s.mergeTask(t)
	if err != nil {
		return s, err
	}
	if !agree(out.Type, t.Type, "") {
		return s, conflict("types", out, t)
	}
	out.Type = first(t.Type, out.Type, "")
	if !agree(out.ID, t.ID, Unset) {
		return s, conflict("ids", out, t)
	}
	out.ID = first(t.ID, out.ID, Unset)
	return out, nil
}

// MergeSoft is Merge with fewer errors: contradicting types leave type and number open, and
// contradicting numbers the number. Job, replica and task must agree.
func (s Spec) MergeSoft(t Spec) (Spec, error) {
	out, err := s.mergeTask(t)
	if err != nil {
		return s, err
	}
	switch {
	case !agree(out.Type, t.Type, ""):
		out.Type, out.ID = "", Unset
		return out, nil
	case !agree(out.ID, t.ID, Unset):
		out.ID = Unset
	default:
		out.ID = first(t.ID, out.ID, Unset)
	}
	out.Type = first(t.Type, out.Type, "")
	return out, nil
}

// MergeOverride is Merge, except that t takes precedence if types or numbers contradict each other.
func (s Spec) MergeOverride(t Spec) (Spec, error) {
	out, err := s.mergeTask(t)
	if err != nil {
		return s, err
	}
	out.Type, out.ID = first(t.Type, out.Type, ""), first(t.ID, out.ID, Unset)
	return out, nil
}

// With returns s with every part that t gives replaced by that of t.
func (s Spec) With(t Spec) Spec {
	return Spec{
		Job: first(t.Job, s.Job, ""), Replica: first(t.Replica, s.Replica, Unset), Task: first(t.Task, s.Task, Unset),
		Type: first(t.Type, s.Type, ""), ID: first(t.ID, s.ID, Unset),
	}
}

// mergeTask returns s with the job, replica and task of t added.
func (s Spec) mergeTask(t Spec) (Spec, error) {
	out := s
	if !agree(s.Job, t.Job, "") {
		return s, conflict("jobs", out, t)
	}
	out.Job = first(t.Job, s.Job, "")
	if !agree(s.Replica, t.Replica, Unset) {
		return s, conflict("replicas", out, t)
	}
	out.Replica = first(t.Replica, s.Replica, Unset)
	if !agree(s.Task, t.Task, Unset) {
		return s, conflict("tasks", out, t)
	}
	out.Task = first(t.Task, s.Task, Unset)
	return out, nil
}

func first[T comparable](a, b, unset T) T {
	if a != unset {
		return a
	}
	return b
}

func conflict(parts string, s, t Spec) error {
	return status.InvalidArgumentf("Cannot merge devices with incompatible %s: '%v' and '%v'", parts, s, t)
}
