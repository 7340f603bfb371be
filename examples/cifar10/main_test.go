package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-ml/weft/train"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	c := config{target: "local", trainDir: t.TempDir(), width: 8, batch: 20, steps: 60, rate: 0.02}
	if err := c.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	var accuracy float64
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if _, err := fmt.Sscanf(lines[len(lines)-1], "accuracy : %f", &accuracy); err != nil || accuracy < 0.5 {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if latest, err := train.LatestCheckpoint(c.trainDir); filepath.Base(latest) != "model.ckpt-60" {
		t.Errorf("the latest checkpoint is %s, %v", latest, err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	b := make([]byte, 2*record)
	for i := range 2 {
		b[i*record] = 7
		b[i*record+1] = 255
	}
	file := filepath.Join(dir, "data_batch_1.bin")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := newImages(dir)
	if err != nil {
		t.Fatal(err)
	}
	pixels, labels := d.next(3)
	if labels[0] != 7 || labels[2] != 7 || max(pixels[0], pixels[(side-1)*channels]) < 10 {
		t.Errorf("labels %v, first pixels %v", labels, pixels[:3])
	}
	for name, bad := range map[string][]byte{"cut": b[:record+1], "label": append([]byte{10}, b[1:record]...), "empty": nil} {
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := newImages(dir); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := newImages(t.TempDir()); err == nil {
		t.Error("no error for a folder without files")
	}
}
