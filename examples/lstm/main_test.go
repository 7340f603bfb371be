package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	c := config{target: "local", units: 48, window: 16, batch: 16, steps: 200, rate: 0.01}
	if err := c.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if want := "\n" + text + "the \n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("it wrote\n%s\nwant an end of %q", out.String(), want)
	}
}
