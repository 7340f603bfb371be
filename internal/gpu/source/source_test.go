package source

import (
	"os"
	"strings"
	"testing"
)

func TestPrograms(t *testing.T) {
	p := Find("add_f32_b")
	if p == nil || p.Family != "binary" || p.Name != "add" || len(p.Kernels) != 2 {
		t.Fatalf("the program of add_f32_b is %+v", p)
	}
	text := p.Text()
	if !strings.HasSuffix(text, "\nBINARY(add_f32, f32, a + b)\n") || strings.Count(text, "\nBINARY(") != 1 {
		t.Errorf("the program ends with %q", text[len(text)-200:])
	}
	if p := Find("pow_i8"); p == nil || !strings.Contains(p.Text(), "BINARY(pow_i8, i8, power_i8(a, b))") {
		t.Errorf("the type is not replaced in %+v", p)
	}
	if p := Find("cast_f32_bf16"); p == nil || len(p.Types) != 2 {
		t.Errorf("the program of a cast is %+v", p)
	}
	if Find("cast_f32_f32") != nil || Find("absent") != nil {
		t.Error("there are programs of absent kernels")
	}
}

func TestBrokenFiles(t *testing.T) {
	for text, want := range map[string]string{
		"#define A(name) KERNEL name(int x) {}":                                         "there is no line",
		"#define A(name) KERNEL name(int x) {}\n// kernels\nB(x, -)":                    "cannot read the line",
		"#define A(name) KERNEL name(int x) {}\n// kernels\nA(x)":                       "cannot read the line",
		"#define A(name, T) KERNEL name(int x) {}\n// kernels\nA(x, f32)\nA(x, FLOATS)": "x_f32 is defined twice",
	} {
		l := &library{byKernel: map[string]*Program{}}
		if err := l.parse("broken", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// TestNoVariadicMacros keeps out what NVIDIA's compiler of OpenCL C refuses and POCL's takes.
func TestNoVariadicMacros(t *testing.T) {
	for family, text := range Families() {
		for line := range strings.SplitSeq(text, "\n") {
			if strings.Contains(line, "...") || strings.Contains(line, "__VA_ARGS__") {
				t.Errorf("%s: variadic macro: %s", family, line)
			}
		}
	}
}

// TestPTXIsCurrent fails after a change of a kernel until "make ptx" has
// compiled it, which needs NVRTC and no GPU.
func TestPTXIsCurrent(t *testing.T) {
	made, err := os.ReadFile("ptx/" + SumsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(made) != Sums() {
		t.Errorf("the PTX was made from other sources: run make ptx")
	}
}

func TestSplitPTX(t *testing.T) {
	head, kernels, err := splitPTX("//\n.version 7.8\n\n.visible .entry a(\n)\n{\n\tret;\n}\n\t// .globl b\n.visible .entry b(\n)\n{\nL:\n}\n")
	if err != nil || head != "//\n.version 7.8\n\n\t// .globl b\n" || kernels["a"] != ".visible .entry a(\n)\n{\n\tret;\n}\n" || len(kernels) != 2 {
		t.Errorf("head %q, kernels %q, %v", head, kernels, err)
	}
	if _, _, err := splitPTX(".visible .entry a("); err == nil {
		t.Error("a kernel without end is accepted")
	}
}
