//go:build gpu

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/gpu/nvrtc"
	"github.com/weft-ml/weft/internal/gpu/source"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: makeptx FOLDER, with WEFT_NVRTC=libnvrtc.so of CUDA 11.8")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "makeptx:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	major, minor, err := nvrtc.Version()
	if err != nil {
		return err
	}
	if major != 11 || minor != 8 {
		return fmt.Errorf("NVRTC is of CUDA %d.%d, and not 11.8", major, minor)
	}
	families := source.Families()
	sums := filepath.Join(folder, source.SumsFile)
	old, _ := os.ReadFile(sums) // there is none the first time
	made := source.ParseSums(string(old))
	wanted := source.ParseSums(source.Sums())
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := map[string]error{}
	slots := make(chan struct{}, 2)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		path := filepath.Join(folder, name+".ptx.gz")
		if _, err := os.Stat(path); err == nil && made[name] == wanted[name] {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			err := compile(name, families[name], path)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs[name] = err
			}
		})
	}
	wg.Wait()
	for _, name := range slices.Sorted(maps.Keys(errs)) {
		return errs[name]
	}
	return os.WriteFile(sums, []byte(source.Sums()), 0o644)
}

// compile writes the PTX of a family. The file does not depend on the time.
func compile(name, text, path string) error {
	ptx, err := nvrtc.Compile(name+".cu", text, "compute_52")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(ptx)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
