package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const history = `{"epochs": [
 {"epoch": 1, "step": 10, "seconds": 1, "values": {"loss": 1, "val_loss": 1.2, "accuracy": 0.5}},
 {"epoch": 2, "step": 20, "seconds": 1, "values": {"loss": 0.5, "val_loss": 0.8, "accuracy": 0.8}}]}`

func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "history.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPNG(t *testing.T) {
	dir := folder(t, history)
	var out strings.Builder
	if err := run([]string{dir}, &out, &out); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "history.png")
	b, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(out.String()) != path {
		t.Fatal(out.String(), err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil || img.Bounds().Dx() < 500 || img.Bounds().Dy() < 500 {
		t.Fatalf("the image has the bounds %v, %v", img.Bounds(), err)
	}
	colors := map[[3]uint32]bool{}
	for x := range img.Bounds().Dx() {
		for y := range img.Bounds().Dy() {
			r, g, b, _ := img.At(x, y).RGBA()
			colors[[3]uint32{r, g, b}] = true
		}
	}
	if len(colors) < 4 {
		t.Errorf("the image has %d colors, want those of two curves, text and background", len(colors))
	}
}

func TestSVG(t *testing.T) {
	dir := folder(t, history)
	path := filepath.Join(dir, "a.svg")
	var out strings.Builder
	if err := run([]string{"--out=" + path, "--values=loss,val_loss", dir}, &out, &out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), "val_loss") || strings.Contains(string(b), "accuracy") {
		t.Errorf("got %.200s, %v", b, err)
	}
}

func TestErrors(t *testing.T) {
	for name, args := range map[string][]string{
		"no folder": {}, "no history": {t.TempDir()}, "no epochs": {folder(t, "{}")},
		"no value": {"--values=auc", folder(t, history)}, "format": {"--out=a.xyz", folder(t, history)},
	} {
		var out strings.Builder
		if err := run(args, &out, &out); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
