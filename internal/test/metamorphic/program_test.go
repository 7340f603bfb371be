package metamorphic

import (
	"os"
	"strings"
	"testing"
)

func TestTextIsReadAsItIsPrinted(t *testing.T) {
	for seed := range uint64(200) {
		text := Generate(seed).String()
		p, err := Parse(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if again := p.String(); again != text {
			t.Fatalf("seed %d:\n%s\nprinted again:\n%s", seed, text, again)
		}
	}
}

func TestInterpreter(t *testing.T) {
	text, err := os.ReadFile("testdata/tour.txt")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		// 3: p is true; sum is before+3; z is w, which is 0.5+0.5; 3 iterations on sum and on half.
		{"int32[3]{4,5,6}", "float32[]{1}", "int32[3]{7,8,9}", "float32[]{4}", "float32[]{16}", "int32[3]{5,6,7}", "float32[]{4}"},
		// -1: the other branches; 4 iterations.
		{"int32[3]{-4,-5,-6}", "float32[]{0.5}", "int32[3]{0,-1,-2}", "float32[]{8}", "float32[]{64}", "int32[3]{9,10,11}", "float32[]{8}"},
	}
	for step, values := range Interpret(p) {
		for i := range values {
			if got := formatTensor(&values[i]); got != want[step][i] {
				t.Errorf("step %d, result %d: got %s, want %s", step, i, got, want[step][i])
			}
		}
	}
}

func TestProgramsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "without yield",
		"yield x":                         "no value x",
		"a = const int32[]{1,2}\nyield a": "has 2 elements",
		"a = const int32[7]{1}\nyield a":  "is not a value",
		"a = Mul\nyield":                  "no such operation",
		"a = const bool[]{true}\nb = Neg a\nyield b":                          "not for",
		"a = const bool[]{true}\na = const bool[]{true}\nyield":               "already used",
		"feed n int32[]{1}\nx = repeat n n as i\n yield n\nyield x":           "has no end",
		"feed n int32[]{1}\nx = repeat n n as i\n yield\nend\nyield x":        "yields",
		"feed n int32[]{1}\nx = if n\n yield n\nelse\n yield n\nend\nyield x": "wrong arguments",
		"add v v\nyield":               "no value v",
		"var v ref string[]{a}\nyield": "holds numbers",
		"var v ref int32[]{1}\nx = call\n r = read v\n yield r\nend\nyield x": "functions do not take",
		"feed a int32[]{1}\nb = Neg a after a\nyield b":                       "not in the same block",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// TestMinimize looks for the smallest program with a loop that writes to a variable.
func TestMinimize(t *testing.T) {
	wanted := func(p *Program) bool {
		found := false
		p.Body.walk(func(s *Stmt) { found = found || s.Kind == kindRepeat && len(accessed(s.Blocks)) > 0 })
		return found
	}
	minimized := 0
	for seed := range uint64(60) {
		p := Generate(seed)
		if !wanted(p) {
			continue
		}
		small := Minimize(p, wanted)
		if _, err := Check(small); err != nil || !wanted(small) || small.Size() > 6 {
			t.Fatalf("seed %d: %v, %d statements\n%v", seed, err, small.Size(), small)
		}
		minimized++
	}
	if minimized == 0 {
		t.Error("no program has such a loop")
	}
}
