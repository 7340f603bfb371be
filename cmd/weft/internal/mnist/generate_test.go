package mnist

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
)

func TestGenerated(t *testing.T) {
	cache := t.TempDir()
	sets := make([]*Dataset, 2)
	var wg sync.WaitGroup
	for i := range sets { // concurrently, like two clients of one demo
		wg.Go(func() {
			set, err := Generated(cache)
			if err != nil {
				t.Error(err)
			}
			sets[i] = set
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	a, b := sets[0], sets[1]
	if a.Train.Len() != trainSize || a.Test.Len() != testSize {
		t.Errorf("%d images for training and %d for testing, want %d and %d", a.Train.Len(), a.Test.Len(), trainSize, testSize)
	}
	if !bytes.Equal(a.Train.images, b.Train.images) || !bytes.Equal(a.Test.labels, b.Test.labels) {
		t.Error("two calls return different data sets")
	}
	if left, err := filepath.Glob(filepath.Join(cache, "*")); err != nil || len(left) != 1 {
		t.Errorf("the cache contains %v (%v), want one folder", left, err)
	}
}

func TestInstallReplacesOnlyWhatIsDamaged(t *testing.T) {
	for name, tt := range map[string]struct {
		present   map[string][]byte // files that differ from a complete folder
		wantLabel int
	}{
		"whole":     {map[string][]byte{testLabels: idx(t, []byte{5})}, 5},
		"truncated": {map[string][]byte{testLabels: {0, 0}}, 3},
		"missing":   {map[string][]byte{testLabels: nil}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			fresh, dir := folder(t, nil), folder(t, tt.present)
			if err := install(fresh, dir); err != nil {
				t.Fatal(err)
			}
			set, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := set.Test.Label(0); got != tt.wantLabel {
				t.Errorf("label %d, want %d", got, tt.wantLabel)
			}
		})
	}
}

// The digits must be neither too easy nor too hard to classify: the nearest class mean must
// recognize most of them, but not all.
func TestDigitsAreNeitherTrivialNorHopeless(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	train, test := draw(rng, 2000), draw(rng, 500)
	var mean [Classes][Pixels]float64
	var count [Classes]float64
	for i := range train.Len() {
		count[train.Label(i)]++
		for j, v := range train.Image(i) {
			mean[train.Label(i)][j] += float64(v)
		}
	}
	right := 0
	for i := range test.Len() {
		best, bestDistance := -1, 0.0
		for digit := range mean {
			sum := 0.0
			for j, v := range test.Image(i) {
				d := float64(v) - mean[digit][j]/count[digit]
				sum += d * d
			}
			if best < 0 || sum < bestDistance {
				best, bestDistance = digit, sum
			}
		}
		if best == test.Label(i) {
			right++
		}
	}
	if share := float64(right) / float64(test.Len()); share < 0.6 || share > 0.95 {
		t.Errorf("nearest class mean: accuracy %.2f, want 0.6 to 0.95", share)
	}
}
