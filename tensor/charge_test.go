package tensor

import (
	"runtime"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

func TestCharge(t *testing.T) {
	a := membudget.NewAccount(nil, "step", "--max-step-memory", 1<<20, nil)
	x, err := Alloc(Float32, Shape{100_000})
	if err != nil {
		t.Fatal(err)
	}
	if over := x.charge(a); over != nil {
		t.Fatal("400 kB exceed 1 MiB")
	}
	want := a.Used()
	if want < 400_000 || want > 600_000 {
		t.Errorf("%d bytes are charged for 400000", want)
	}
	shared := x.Retain()
	if over := shared.charge(a); over != nil || a.Used() != want {
		t.Errorf("a second reference costs %d bytes", a.Used()-want)
	}
	y, err := Alloc(Float32, Shape{200_000})
	if err != nil {
		t.Fatal(err)
	}
	if over := y.charge(a); over != a || a.Used() != want {
		t.Errorf("1.2 MB are charged to an account of 1 MiB: %d bytes", a.Used())
	}
	y.Release()
	x.Release()
	if a.Used() != want {
		t.Error("the charge ended before the last release")
	}
	shared.Release()
	if a.Used() != 0 {
		t.Errorf("%d bytes are charged after the last release", a.Used())
	}
}

// Strings are freed by the garbage collector.
func TestChargeOfStrings(t *testing.T) {
	a := membudget.NewAccount(nil, "step", "", 0, nil)
	func() {
		s := Vector("abc", "defgh")
		if over := s.charge(a); over != nil || a.Used() != 2*16+8+headers {
			t.Errorf("%d bytes are charged, want %d", a.Used(), 40+headers)
		}
		runtime.KeepAlive(s)
	}()
	for range 100 {
		if runtime.GC(); a.Used() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d bytes are charged after a garbage collection", a.Used())
}
