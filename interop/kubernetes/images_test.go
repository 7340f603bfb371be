package kubernetes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// images returns the images that the manifests name: the program bin/weft alone, and a Python with
// TensorFlow that is made of this machine's programs and of the virtual environment .venv.
func images(t *testing.T) map[string]*image {
	t.Helper()
	weft := filepath.Join(repository(t), "bin", "weft")
	if _, err := os.Stat(weft); err != nil {
		t.Fatalf("%v; use 'make kubernetes'", err)
	}
	out := map[string]*image{"weft": {entrypoint: []string{"/weft"}, files: map[string]string{"/weft": weft}}}
	venv, err := filepath.EvalSymlinks(filepath.Join(repository(t), ".venv"))
	if err != nil {
		t.Fatalf("%v; use 'make kubernetes'", err)
	}
	base, err := exec.Command(filepath.Join(venv, "bin/python"), "-c", "import sys; print(sys.base_prefix)").Output()
	if err != nil {
		t.Fatal(err)
	}
	prefix := strings.TrimSpace(string(base))
	python := &image{path: []string{filepath.Join(venv, "bin"), "/usr/bin", "/bin"}, files: map[string]string{venv: venv, prefix: prefix}}
	for _, dir := range []string{"/usr", "/lib", "/lib64", "/bin", "/etc"} {
		if _, err := os.Stat(dir); err == nil {
			python.files[dir] = dir
		}
	}
	out["tensorflow/tensorflow:2.21.0"] = python
	return out
}
