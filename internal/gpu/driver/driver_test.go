package driver

import (
	"errors"
	"strings"
	"testing"
)

// device is found by the drivers of the test.
type device struct{ Device }

func TestOpen(t *testing.T) {
	defer func(before []opener) { openers = before }(openers)
	openers = nil
	if _, err := Open(""); err == nil || !strings.Contains(err.Error(), "-tags gpu") {
		t.Errorf("no drivers: %v", err)
	}
	Register("broken", func() ([]Device, error) { return nil, errors.New("libbroken.so is not there") })
	Register("empty", func() ([]Device, error) { return nil, nil })
	const want = "no GPU devices: broken: libbroken.so is not there; empty: the library has no devices"
	if _, err := Open(""); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	Register("good", func() ([]Device, error) { return []Device{device{}}, nil })
	Register("other", func() ([]Device, error) { return []Device{device{}, device{}}, nil })
	for only, want := range map[string]string{"": "good", "other": "other"} {
		if d, err := Open(only); err != nil || d.Name != want {
			t.Errorf("Open(%q) = %s, %v", only, d.Name, err)
		}
	}
	if _, err := Open("absent"); err == nil || !strings.Contains(err.Error(), `"absent"`) {
		t.Errorf("absent: %v", err)
	}
}

func TestMemSlice(t *testing.T) {
	if got := (Mem{7, 100, 1000}).Slice(20, 30).Slice(1, 2); got != (Mem{7, 121, 2}) {
		t.Error(got)
	}
}
