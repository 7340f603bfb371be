package membudget

import "testing"

func TestAccount(t *testing.T) {
	refused := 0
	tenant := NewAccount(nil, "tenant", "--max-tenant-memory", 100, func() { refused++ })
	session := NewAccount(tenant, "session", "--max-session-memory", 60, nil)
	step := NewAccount(session, "step", "--max-step-memory", 0, nil)
	first, over := step.Charge(50)
	if over != nil {
		t.Fatalf("50 of 60 bytes exceed the limit of the %s", over.Name())
	}
	if _, over := step.Charge(20); over != session {
		t.Errorf("70 of 60 bytes: got %v, want the session", over)
	}
	other := NewAccount(tenant, "session", "--max-session-memory", 60, nil)
	if _, over := other.Charge(55); over != tenant {
		t.Errorf("105 of 100 bytes: got %v, want the tenant", over)
	}
	if refused != 1 {
		t.Errorf("the tenant has refused %d charges, want 1", refused)
	}
	for _, a := range []*Account{step, session, tenant} {
		if a.Used() != 50 {
			t.Errorf("%s: %d bytes are charged, want 50", a.Name(), a.Used())
		}
	}
	if step.Fits(10) != nil || step.Fits(11) != session {
		t.Error("Fits disagrees with Charge")
	}
	first.End()
	first.End()
	if step.Used() != 0 || session.Used() != 0 || tenant.Used() != 0 || other.Used() != 0 {
		t.Errorf("left: %d, %d, %d, %d", step.Used(), session.Used(), tenant.Used(), other.Used())
	}
	var none *Account
	if none.Fits(1<<60) != nil || none.Owner() != nil || none.Used() != 0 {
		t.Error("a nil account bounds memory")
	}
}
