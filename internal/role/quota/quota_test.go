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
