package invariants

import "testing"

func TestCheckPanicsOnlyWhenEnabled(t *testing.T) {
	panics := func(ok bool) (message any) {
		defer func() { message = recover() }()
		Check(ok, "%d is odd", 3)
		return nil
	}
	if got := panics(true); got != nil {
		t.Errorf("a check that holds panics: %v", got)
	}
	want := any(nil)
	if Enabled {
		want = "invariant broken: 3 is odd"
	}
	if got := panics(false); got != want {
		t.Errorf("a check that does not hold: %v, want %v", got, want)
	}
}
