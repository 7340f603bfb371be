package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestRun trains on the file that the program ships. Petals of 5.4 by 2.1 are those of a crocus.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), "flowers.csv", filepath.Join(t.TempDir(), "model"), &out); err != nil {
		t.Fatal(err)
	}
	var accuracy, crocus float64
	for line := range strings.Lines(out.String()) {
		scan(t, line, "accuracy on the test data: ", &accuracy)
		scan(t, line, "crocus ", &crocus)
	}
	if accuracy < 0.9 || crocus < 0.8 {
		t.Errorf("the accuracy is %v, the probability of crocus %v:\n%s", accuracy, crocus, out.String())
	}
}

// scan reads the number after a prefix of a line, if the line has it.
func scan(t *testing.T, line, prefix string, v *float64) {
	t.Helper()
	text, ok := strings.CutPrefix(strings.TrimSpace(line), prefix)
	if !ok {
		return
	}
	var err error
	if *v, err = strconv.ParseFloat(text, 64); err != nil {
		t.Errorf("%s: %v", line, err)
	}
}
