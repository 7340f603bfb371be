package trust

import "github.com/weft-ml/weft/status"

// A Policy decides about calls by the table. The zero Policy opens nothing.
type Policy struct {
	HealthOpen  bool // Health/Check needs no certificate
	MetricsOpen bool // the metrics need no certificate
}

// Check returns the rule for a call, or an error if the role of the caller may not call the method
// at all. The rest of the rule depends on the request; the method applies it.
func (p *Policy) Check(caller *Principal, path string) (Rule, error) {
	m := Row(path)
	if m == nil {
		return Never, status.Errorf(status.PermissionDenied, "%s may not call %s: no role may", caller, path)
	}
	switch rule := m.Rules[caller.Role]; {
	case rule == OpenOnly && p.opens(m.Open):
		return Always, nil
	case rule == Never || rule == OpenOnly:
		return Never, Denied(caller, m)
	default:
		return rule, nil
	}
}

func (p *Policy) opens(flag string) bool {
	return flag == FlagHealth && p.HealthOpen || flag == FlagMetrics && p.MetricsOpen
}

// Denied returns the error for a call that the table does not allow.
func Denied(caller *Principal, m *Method) error {
	return status.Errorf(status.PermissionDenied, "%s may not call %s", caller, m.Name())
}
