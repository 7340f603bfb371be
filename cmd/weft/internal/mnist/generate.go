package mnist

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Parameters of the generated digits. A change of the digits must change generation, the name of
// the folder in the cache.
const (
	generation = "digits-1"
	seed       = 20161
	trainSize  = 10_000
	testSize   = 2_000
)

// Generated returns a data set of generated digits, 10,000 for training and 2,000 for testing. It
// is the same on every call. The first call writes the four files to a folder in cacheDir, or in
// the user's cache folder if cacheDir is empty; later calls read them. Several processes may call
// it concurrently.
func Generated(cacheDir string) (*Dataset, error) {
	if cacheDir == "" {
		cacheDir = defaultCache()
	}
	dir := filepath.Join(cacheDir, generation)
	if set, err := Load(dir); err == nil {
		return set, nil
	}
	if err := write(cacheDir, dir); err != nil {
		return nil, fmt.Errorf("writing generated digits to %s: %w", dir, err)
	}
	return Load(dir)
}

func defaultCache() string {
	base, err := os.UserCacheDir()
	if err != nil { // no home folder
		base = os.TempDir()
	}
	return filepath.Join(base, "weft")
}

// write generates the data set in a temporary folder and renames that to dir, so that no process
// reads an incomplete one.
func write(cacheDir, dir string) error {
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(cacheDir, generation+"-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	rng := rand.New(rand.NewPCG(seed, 0))
	if err := writeSplit(fresh, trainImages, trainLabels, draw(rng, trainSize)); err != nil {
		return err
	}
	if err := writeSplit(fresh, testImages, testLabels, draw(rng, testSize)); err != nil {
		return err
	}
	return install(fresh, dir)
}

// install renames a folder to dir. If dir exists and is complete, another process has generated the
// same digits, and dir stays. Otherwise it is replaced.
func install(fresh, dir string) error {
	err := os.Rename(fresh, dir)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, damaged := Load(dir); damaged == nil {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

func writeSplit(dir, images, labels string, s *Split) error {
	if err := writeFile(filepath.Join(dir, images+".gz"), s.images, Side, Side); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, labels+".gz"), s.labels)
}

// draw generates n digits.
func draw(rng *rand.Rand, n int) *Split {
	s := &Split{images: make([]byte, n*Pixels), labels: make([]byte, n)}
	for i := range n {
		digit := rng.IntN(Classes)
		s.labels[i] = byte(digit)
		drawDigit(rng, digit, s.Image(i))
	}
	return s
}
