package callsite

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestFindSkipsTheLibrary(t *testing.T) {
	if got := Find(); !strings.HasPrefix(got, "callsite_test.go:") {
		t.Errorf("got %q, want a line of this file", got)
	}
}

func TestInLibrary(t *testing.T) {
	for _, tt := range []struct {
		function, file string
		want           bool
	}{
		{module + ".(*Session).Run", "run.go", true},
		{module + ".TestRun", "run_test.go", false},
		{module + "/op.(*Scope).Add", "add.go", true},
		{module + "/op_test.TestAdd", "add_test.go", false},
		{module + "/opdef.Parse", "parse.go", false},
		{module + "/examples/hello.main", "main.go", false},
		{"main.main", "main.go", false},
	} {
		if got := inLibrary(runtime.Frame{Function: tt.function, File: tt.file}); got != tt.want {
			t.Errorf("%s in %s: got %t, want %t", tt.function, tt.file, got, tt.want)
		}
	}
}

// TestFindIn checks that there is no line for a call whose caller adds it, and for servers.
func TestFindIn(t *testing.T) {
	if got := FindIn(t.Context()); !strings.HasPrefix(got, "callsite_test.go:") {
		t.Errorf("got %q, want a line of this file", got)
	}
	ctx, line := Begin(t.Context())
	if got := FindIn(ctx); got != "" || !strings.HasPrefix(line, "callsite_test.go:") {
		t.Errorf("got %q, and %q from Begin", got, line)
	}
	for function, want := range map[string]bool{
		module + "/internal/dataservice.(*runningTask).take": true, module + "/cmd/weft.main": true, module + "/examples/hello.main": false, "main.main": false,
	} {
		if got := isServer(runtime.Frame{Function: function, File: "x.go"}); got != want {
			t.Errorf("%s: got %t, want %t", function, got, want)
		}
	}
}

// TestLibraryExists fails when a listed package was moved or removed: errors would then name a line
// of the library instead of one of the program.
func TestLibraryExists(t *testing.T) {
	for _, pkg := range library {
		files, err := filepath.Glob(filepath.Join("../../..", pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("package %q does not exist: %v", pkg, err)
		}
	}
}
