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
	for i := range sets { // at once, as two clients of one demo would
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
		t.Errorf("%d images to train and %d to test, want %d and %d", a.Train.Len(), a.Test.Len(), trainSize, testSize)
	}
	if !bytes.Equal(a.Train.images, b.Train.images) || !bytes.Equal(a.Test.labels, b.Test.labels) {
		t.Error("two calls give two data sets")
	}
	if left, err := filepath.Glob(filepath.Join(cache, "*")); err != nil || len(left) != 1 {
		t.Errorf("the cache holds %v (%v), want one folder", left, err)
	}
}

func TestInstallReplacesOnlyWhatIsDamaged(t *testing.T) {
	for name, tt := range map[string]struct {
		present   map[string][]byte // what differs from a whole folder
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

// The classes must be apart enough to learn and close enough to need learning: the nearest class
// mean, which knows no strokes, gets most but by no means all of them.
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
		t.Errorf("nearest class mean: %.2f right, want 0.6 to 0.95", share)
	}
}
