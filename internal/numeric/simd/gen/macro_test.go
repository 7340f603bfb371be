package main

import (
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// TestMacros checks which marked bodies become macros: those that make the file shorter.
func TestMacros(t *testing.T) {
	add := func(t *target, n int) {
		for i := range n {
			t.ADDQ(operand.U8(i), reg.RAX)
		}
	}
	emit := func(t *target) {
		for _, name := range []string{"f", "g"} {
			t.plainFunction(name, "func()", "is a test")
			t.macro("long", func() { add(t, 6) })
			t.macro("short", func() { add(t, 2) })
			t.macro("nested", func() {
				t.macro("long", func() { add(t, 6) })
				add(t, 5)
			})
			for disp := range 3 {
				t.vectorMacro("load", 64*disp, func() {
					for i := range 3 {
						t.load(t.regs[i], operand.Mem{Base: reg.RSI, Index: reg.R8, Scale: 1, Disp: 64 * disp}, false)
					}
				})
			}
			t.plainRet()
		}
		t.plainFunction("h", "func()", "is a test")
		t.macro("long", func() { add(t, 7) })
		t.plainRet()
	}
	asm, _, _, err := source{"simd", "macros", avx512, emit, []int{32}}.print()
	if err != nil {
		t.Fatal(err)
	}
	for text, n := range map[string]int{
		"#define LONG \\\n":                                   1,
		"#define NESTED \\\n\tLONG; \\\n":                     1,
		"#define LOAD(d) \\\n\tVMOVUPS d(SI)(R8*1), Z0; \\\n": 1,
		"\tLONG\n":      2,
		"\tNESTED\n":    2,
		"\tLOAD(128)\n": 2,
		"SHORT":         0,
		"LONG_2":        0,
		"macro":         0,
	} {
		if got := strings.Count(string(asm), text); got != n {
			t.Errorf("%q occurs %d times, want %d", text, got, n)
		}
	}
	if t.Failed() {
		t.Logf("%s", asm)
	}
}
