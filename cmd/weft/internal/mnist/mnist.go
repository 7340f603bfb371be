// Package mnist reads handwritten digits in the format of the MNIST database and returns them in
// batches. It can also generate a data set in the same format.
//
// A data set is four IDX files (Yann LeCun's format, http://yann.lecun.com/exdb/mnist/), gzipped or
// not: images of 28x28 bytes and one label byte each, for training and for testing.
package mnist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Sizes of a data set.
const (
	Side    = 28          // pixels per row and rows per image
	Pixels  = Side * Side // values per image
	Classes = 10
)

// A Dataset holds images for training and for testing.
type Dataset struct {
	Train, Test *Split
}

// A Split is an immutable set of labelled images. It may be used concurrently.
type Split struct {
	images []byte // Len() * Pixels, row by row, 0 is background and 255 ink
	labels []byte // Len(), below Classes
}

// Names of the files of a data set, without the suffix .gz.
const (
	trainImages = "train-images-idx3-ubyte"
	trainLabels = "train-labels-idx1-ubyte"
	testImages  = "t10k-images-idx3-ubyte"
	testLabels  = "t10k-labels-idx1-ubyte"
)

// Load reads the four files of a data set from a folder. An error names the file that is missing or
// damaged.
func Load(dir string) (*Dataset, error) {
	train, err := loadSplit(dir, trainImages, trainLabels)
	if err != nil {
		return nil, err
	}
	test, err := loadSplit(dir, testImages, testLabels)
	if err != nil {
		return nil, err
	}
	return &Dataset{Train: train, Test: test}, nil
}

// Len returns the number of images.
func (s *Split) Len() int { return len(s.labels) }

// Image returns the Pixels bytes of one image, which the caller must not change.
func (s *Split) Image(i int) []byte { return s.images[i*Pixels : (i+1)*Pixels] }

// Label returns the digit in one image.
func (s *Split) Label(i int) int { return int(s.labels[i]) }

func loadSplit(dir, images, labels string) (*Split, error) {
	imagePath, err := find(dir, images)
	if err != nil {
		return nil, err
	}
	labelPath, err := find(dir, labels)
	if err != nil {
		return nil, err
	}
	imageData, err := readFile(imagePath, Side, Side)
	if err != nil {
		return nil, err
	}
	labelData, err := readFile(labelPath)
	if err != nil {
		return nil, err
	}
	s := &Split{images: imageData, labels: labelData}
	if n := len(imageData) / Pixels; n != s.Len() {
		return nil, fmt.Errorf("%s has %d images, but %s has %d labels", imagePath, n, labelPath, s.Len())
	}
	for i, label := range s.labels {
		if label >= Classes {
			return nil, fmt.Errorf("%s: label %d is %d, want 0 to %d", labelPath, i, label, Classes-1)
		}
	}
	return s, nil
}

// find returns the path of a file with one of its usual names: train-images-idx3-ubyte, as
// published, train-images.idx3-ubyte, as some programs unpack it, or one of these with .gz.
func find(dir, name string) (string, error) {
	dotted := strings.Replace(name, "-idx", ".idx", 1)
	for _, candidate := range []string{name, name + ".gz", dotted, dotted + ".gz"} {
		path := filepath.Join(dir, candidate)
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().IsRegular():
			return path, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return "", fmt.Errorf("%s: no %s or %s.gz: the folder must contain the MNIST files %s, %s, %s and %s: %w",
		dir, name, name, trainImages, trainLabels, testImages, testLabels, fs.ErrNotExist)
}
