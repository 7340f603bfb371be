package quota

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/status"
)

func TestCheck(t *testing.T) {
	q := New(Limits{Sessions: 2})
	for n, want := range []status.Code{status.OK, status.OK, status.OK, status.ResourceExhausted} {
		err := q.Check(Sessions, n)
		if status.CodeOf(err) != want {
			t.Errorf("%d sessions: %v, want %v", n, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "2, set by --max-sessions") {
			t.Errorf("the error does not name limit and flag: %v", err)
		}
	}
	if err := q.Check(Callables, 1<<40); err != nil {
		t.Errorf("a limit of 0: %v", err)
	}
	if n := q.Limited()["sessions"]; n != 1 {
		t.Errorf("%d clients are counted, want 1", n)
	}
	var none *Quota
	if none.Check(Sessions, 1<<40) != nil || none.SessionAccount("") != nil || none.StepAccount(nil) != nil {
		t.Error("a nil quota has limits")
	}
}

// Sessions of a tenant share its account, and those of other tenants do not.
func TestTenants(t *testing.T) {
	q := New(Limits{TenantMemory: 100, SessionMemory: 80})
	a, b, other := q.SessionAccount("x"), q.SessionAccount("x"), q.SessionAccount("y")
	first, over := q.StepAccount(a).Charge(70)
	if over != nil {
		t.Fatalf("refused by the %s", over.Name())
	}
	if _, over := q.StepAccount(b).Charge(40); over == nil || over.Name() != "tenant" {
		t.Errorf("110 of 100 bytes of the tenant: refused by %v", over)
	}
	if _, over := q.StepAccount(other).Charge(40); over != nil {
		t.Errorf("another tenant: refused by the %s", over.Name())
	}
	if _, over := q.StepAccount(a).Charge(20); over == nil || over.Name() != "session" {
		t.Errorf("90 of 80 bytes of the session: refused by %v", over)
	}
	first.End()
	if used := q.TenantMemory(); used["x"] != 0 || used["y"] != 40 {
		t.Errorf("used: %v", used)
	}
	if hits := q.Limited(); hits["tenant_memory"] != 1 || hits["session_memory"] != 1 {
		t.Errorf("hits: %v", hits)
	}
}

// TestWeights gives a tenant more memory than others, and then less.
func TestWeights(t *testing.T) {
	weights := map[string]float64{"research": 2.5, "guest": 0.1}
	q := New(Limits{TenantMemory: 100, Weight: func(tenant string) float64 {
		if w, ok := weights[tenant]; ok {
			return w
		}
		return 1
	}})
	for tenant, want := range map[string]int64{"research": 250, "guest": 10, "other": 100, "": 100} {
		session := q.SessionAccount(tenant)
		if _, over := session.Charge(want + 1); over == nil || over.Name() != "tenant" {
			t.Errorf("%q: %d bytes are refused by %v", tenant, want+1, over)
		}
		all, over := session.Charge(want)
		if over != nil {
			t.Fatalf("%q: %d bytes are refused by the %s", tenant, want, over.Name())
		}
		all.End()
	}
	old := q.SessionAccount("research")
	weights["research"] = 0.5
	if _, over := q.SessionAccount("research").Charge(51); over == nil {
		t.Error("51 bytes of a tenant with the weight 0.5 are not refused")
	}
	if _, over := old.Charge(51); over == nil {
		t.Error("51 bytes of an old session are not refused")
	}
	if q := New(Limits{Weight: func(string) float64 { return 3 }, StepMemory: 1}); q.tenantLimit("x") != 0 {
		t.Error("tenants without a limit have got one")
	}
}
